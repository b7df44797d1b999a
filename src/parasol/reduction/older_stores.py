"""Stores of version 1, a HDF5 file per chunk, are read; a run that goes on with one turns it into the present layout."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np

from parasol.errors import FileError
from parasol.reduction.chunks import FORMAT, Chunk, StoredChunk, damaged

VERSION = 1
_HEADER = 512  # the smallest user block HDF5 knows: holds length and SHA-256 of the rest
_CHUNK = re.compile(r"chunk-(\d{6,})\.h5")
_PIECE = 1 << 20  # bytes hashed at a time


class OlderChunk(StoredChunk):
    """A chunk in a HDF5 file of its own, which is its path."""

    def load(self) -> Chunk:
        """Read the whole chunk and verify it."""
        return read_chunk(self.path, self.index, self.fingerprint)

    def rows(self, name: str) -> np.ndarray:
        """One of its arrays."""
        return self.load().rows(name)


def chunk_files(folder: Path) -> dict[int, Path]:
    """The chunks of version 1 in a folder, by number."""
    matches = [(_CHUNK.fullmatch(path.name), path) for path in sorted(folder.iterdir())]
    return {int(match[1]): path for match, path in matches if match}


def _sha256(path: Path) -> str:
    checksum = hashlib.sha256()
    with open(path, "rb") as raw:
        raw.seek(_HEADER)
        while piece := raw.read(_PIECE):
            checksum.update(piece)
    return checksum.hexdigest()


def read_chunk(path: Path, index: int, fingerprint: str, *, arrays: bool = True) -> Chunk:
    """Read and verify one chunk; without `arrays`, solutions and hidden values have no rows."""
    import h5py

    try:
        with open(path, "rb") as raw:
            head = raw.read(_HEADER)
        match = re.match(rb"%b (\d+)\nsha256 ([0-9a-f]{64})\nbytes (\d+)\n+\Z" % FORMAT.encode(), head)
        if not match:
            raise damaged(path, "its first 512 bytes are not those of a chunk")
        if int(match[1]) > VERSION:
            raise FileError(f"{path} has version {int(match[1])}, this parasol reads up to {VERSION}. Update parasol.")
        size = path.stat().st_size
        if size != int(match[3]):
            raise damaged(path, f"it has {size} bytes instead of {int(match[3])}")
        if _sha256(path) != match[2].decode():
            raise damaged(path, "its checksum is wrong")
        with h5py.File(path, "r", locking=False) as file:
            owner, number = bytes(file.attrs["fingerprint"]).decode(), int(file.attrs["index"])
            rows = slice(None) if arrays else slice(0)
            chunk = Chunk(
                np.asarray(file["mus"]),
                np.asarray(file["solved"]).astype(bool),
                np.asarray(file["solutions"][rows]),  # type: ignore[index]
                np.asarray(file["hidden"][rows]),  # type: ignore[index]
                tuple(bytes(r).decode() for r in np.asarray(file["reasons"])),
            )
    except (OSError, KeyError, RuntimeError, UnicodeDecodeError) as error:
        raise damaged(path, f"it cannot be read ({error})") from None
    if (owner, number) != (fingerprint, index):
        raise FileError(f"{path} belongs to another store or place (chunk {number} of {owner[:12]}). Remove it.")
    return chunk

"""Snapshots on disk: a folder with a manifest and one checked HDF5 file per chunk; a kill costs the chunk in flight at most.

Files appear under their name only when complete, nothing in them depends on when or by whom they were written, and
workers write them without knowing of each other. The first 512 bytes of a chunk file, which HDF5 leaves to its users,
hold length and SHA-256 of the rest: `tail -c +513 chunk-000000.h5 | sha256sum` compares with `head -3`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from parasol.cache import disk
from parasol.errors import FileError
from parasol.reduction.fingerprints import difference

FORMAT = "parasol snapshots"
VERSION = 1
MANIFEST = "manifest.json"
_HEADER = 512  # the smallest user block HDF5 knows
_CHUNK = re.compile(r"chunk-(\d{6,})\.h5")
_PIECE = 1 << 20  # bytes hashed at a time
_RESUME = "Finished chunks are kept; run again to resume."


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive parameters with what came of them; only those that were solved have a row in `solutions`."""

    mus: np.ndarray  # (n_rows, n_parameters)
    solved: np.ndarray  # (n_rows,) bool
    solutions: np.ndarray  # (n_solved, n_values)
    hidden: np.ndarray  # (n_solved, n_hidden)
    reasons: tuple[str, ...]  # one for each that was not solved

    @property
    def n_values(self) -> int:
        """Values in a solution, 0 where there is none."""
        return self.solutions.shape[1]

    def load(self) -> Chunk:
        """The chunk itself: its arrays are here."""
        return self


@dataclass(frozen=True, eq=False)
class StoredChunk:
    """A chunk whose arrays stay on disk until asked for; what travels back from a worker."""

    path: Path
    index: int
    fingerprint: str
    mus: np.ndarray
    solved: np.ndarray
    reasons: tuple[str, ...]
    n_values: int

    def load(self) -> Chunk:
        """Read the whole chunk."""
        return read_chunk(self.path, self.index, self.fingerprint)


@dataclass(frozen=True)
class Manifest:
    """What a store is about: chunk c holds the parameters c·chunk_size to (c+1)·chunk_size."""

    fingerprint: str
    solver: str  # in words, for messages
    parameters: tuple[str, ...]
    n_samples: int
    n_parameters: int
    chunk_size: int
    mus_sha256: str
    parts: dict[str, str] | None = None  # what the fingerprint is made of; None in stores of version 0.1.0

    @property
    def n_chunks(self) -> int:
        """Number of chunks when complete."""
        return -(-self.n_samples // self.chunk_size)


def digest(array: np.ndarray) -> str:
    """SHA-256 of an array's numbers and shape."""
    array = np.ascontiguousarray(array, dtype="<f8")
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()


# ---- manifest -------------------------------------------------------------------------------------------------------
def _checksum(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`."""
    content = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    content = json.loads(json.dumps(content))
    text = json.dumps({**content, "sha256": _checksum(content)}, indent=1, sort_keys=True) + "\n"
    disk.publish(folder / MANIFEST, lambda path: path.write_text(text, encoding="utf-8"), advice=_RESUME)


def is_store(folder: Path) -> bool:
    """Whether a folder says that it is a store, whatever is in it.

    >>> is_store(Path("nowhere"))
    False
    """
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Read `manifest.json`; a folder that is not a store, is damaged or comes from a newer version is refused."""
    if not folder.exists():
        raise FileError(f"there is no snapshot store at {folder}. Check the path.")
    path = folder / MANIFEST
    if not path.is_file():
        raise FileError(f"{folder} is not a snapshot store: it has no {MANIFEST}. Choose another path.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise FileError(f"the snapshot store {folder} is damaged: {MANIFEST} cannot be read ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{folder} is not a snapshot store: {MANIFEST} is about something else. Choose another path.")
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise FileError(
            f"the snapshot store {folder} has version {version}, this parasol reads up to {VERSION}. Update parasol."
        )
    stated = content.pop("sha256", None)
    if version != VERSION or stated != _checksum(content):
        raise FileError(
            f"the snapshot store {folder} is damaged: the checksum of {MANIFEST} is wrong. Restore it from a copy."
        )
    stated = {f.name: content.get(f.name) for f in fields(Manifest)}
    return Manifest(**{**stated, "parameters": tuple(content["parameters"])})


# ---- chunks ---------------------------------------------------------------------------------------------------------
def chunk_path(folder: Path, index: int) -> Path:
    """Where chunk number `index` lies."""
    return folder / f"chunk-{index:06d}.h5"


def write_chunk(folder: Path, index: int, fingerprint: str, chunk: Chunk) -> StoredChunk:
    """Write one chunk: equal chunks give equal bytes."""
    import h5py  # a quarter of a second that only this needs

    longest = max([1, *[len(r.encode()) for r in chunk.reasons]])
    arrays = {"mus": chunk.mus, "solved": chunk.solved.astype(np.uint8)}
    arrays |= {"solutions": chunk.solutions, "hidden": chunk.hidden}

    def fill(path: Path) -> None:
        # no locks: the name is nobody else's, and some shared file systems have none
        with h5py.File(path, "w", userblock_size=_HEADER, locking=False) as file:
            file.attrs["index"] = index
            file.attrs["fingerprint"] = np.bytes_(fingerprint)
            for name, array in arrays.items():
                file.create_dataset(name, data=array, track_times=False)
            kind = h5py.string_dtype("utf-8", longest)
            reasons = np.array([r.encode() for r in chunk.reasons], dtype=kind)
            file.create_dataset("reasons", data=reasons, track_times=False)
        head = f"{FORMAT} {VERSION}\nsha256 {_sha256(path)}\nbytes {path.stat().st_size}\n"
        with open(path, "rb+") as raw:
            raw.write(head.encode().ljust(_HEADER, b"\n"))

    path = chunk_path(folder, index)
    disk.publish(path, fill, advice=_RESUME)
    return StoredChunk(path, index, fingerprint, chunk.mus, chunk.solved, chunk.reasons, chunk.n_values)


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as raw:
        raw.seek(_HEADER)
        while piece := raw.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def read_chunk(path: Path, index: int, fingerprint: str, *, arrays: bool = True) -> Chunk:
    """Read and verify one chunk; without `arrays`, solutions and hidden values have no rows."""
    import h5py

    try:
        with open(path, "rb") as raw:
            head = raw.read(_HEADER)
        found = re.match(rb"%b (\d+)\nsha256 ([0-9a-f]{64})\nbytes (\d+)\n+\Z" % FORMAT.encode(), head)
        if not found:
            raise _damaged(path, "its first 512 bytes are not those of a chunk")
        if int(found[1]) > VERSION:
            raise FileError(f"{path} has version {int(found[1])}, this parasol reads up to {VERSION}. Update parasol.")
        size = path.stat().st_size
        if size != int(found[3]):
            raise _damaged(path, f"it has {size} bytes instead of {int(found[3])}")
        if _sha256(path) != found[2].decode():
            raise _damaged(path, "its checksum is wrong")
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
        raise _damaged(path, f"it cannot be read ({error})") from None
    if (owner, number) != (fingerprint, index):
        raise FileError(f"{path} belongs to another store or place (chunk {number} of {owner[:12]}). Remove it.")
    return chunk


def _damaged(path: Path, why: str) -> FileError:
    return FileError(
        f"the snapshot store is damaged: {path}: {why}. Delete this file and run again: only its parameters are solved anew."
    )


def stored_chunks(folder: Path, manifest: Manifest, mus: np.ndarray | None = None) -> dict[int, StoredChunk]:
    """All chunks on disk, verified; where `mus` are given their rows must be those."""
    out = {}
    for path in sorted(folder.iterdir()):
        match = _CHUNK.fullmatch(path.name)
        if not match:
            continue
        index = int(match[1])
        chunk = read_chunk(path, index, manifest.fingerprint, arrays=False)
        start = index * manifest.chunk_size
        n_rows = min(manifest.chunk_size, manifest.n_samples - start)
        # fewer rows than the chunk has place for: those of a run that was extended later
        fits = 0 < len(chunk.mus) <= n_rows and chunk.mus.shape[1] == manifest.n_parameters
        if not fits or (mus is not None and not np.array_equal(chunk.mus, mus[start : start + len(chunk.mus)])):
            raise _damaged(path, "its parameters are not those of the manifest")
        about = chunk.mus, chunk.solved, chunk.reasons, chunk.n_values
        out[index] = StoredChunk(path, index, manifest.fingerprint, *about)
    lengths = {c.n_values for c in out.values() if c.solved.any()}
    if len(lengths) > 1:
        raise FileError(f"the snapshot store {folder} holds solutions of different lengths {sorted(lengths)}.")
    return out


def prepare(folder: Path, wanted: Manifest, mus: np.ndarray) -> tuple[Manifest, dict[int, StoredChunk]]:
    """Create the store, or check that it is the one wanted and extend it; the manifest in force and what is there."""
    if not (folder / MANIFEST).exists():
        write_manifest(folder, wanted)
        return wanted, {}
    there = read_manifest(folder)
    if there.parts is None:
        raise FileError(
            f"the snapshot store {folder} was written by an earlier version of parasol, whose solves are not reused. "
            f"Choose another path, or read what it holds with ps.reduction.open_snapshots."
        )
    if there.fingerprint != wanted.fingerprint:
        raise FileError(
            f"the snapshot store {folder} belongs to another problem or discretisation: {there.solver}, this is "
            f"{wanted.solver}; {difference(there.parts, wanted.parts)}. Choose another path, or read what it holds with "
            f"ps.reduction.open_snapshots."
        )
    n = there.n_samples
    if there.n_parameters == wanted.n_parameters and len(mus) < n:
        _check_not_fewer(folder, there, mus)
    if there.n_parameters != wanted.n_parameters or len(mus) < n or digest(mus[:n]) != there.mus_sha256:
        raise FileError(
            f"the snapshot store {folder} was begun for {n} other parameters than the {len(mus)} given. "
            f"Give the same ones, with more after them if you like, or choose another path."
        )
    chunks = stored_chunks(folder, there, mus)
    if len(mus) > n:
        there = Manifest(**{**asdict(wanted), "chunk_size": there.chunk_size})
        write_manifest(folder, there)
    return there, chunks


def _check_not_fewer(folder: Path, there: Manifest, mus: np.ndarray) -> None:
    """Say so where the parameters are the first ones of a store that has more, as far as its chunks tell."""
    known = [chunk for chunk in stored_chunks(folder, there).values() if chunk.index * there.chunk_size < len(mus)]
    starts = [chunk.index * there.chunk_size for chunk in known]
    pairs = [(mus[i : i + len(c.mus)], c.mus) for i, c in zip(starts, known, strict=True)]
    if pairs and all(np.array_equal(given, stored[: len(given)]) for given, stored in pairs):
        raise FileError(
            f"the {len(mus)} parameters given are the first ones of the {there.n_samples} of the snapshot store {folder}. "
            f"Read what it has with ps.reduction.open_snapshots({str(folder)!r}), or give all its parameters."
        )


# ---- one run at a time ----------------------------------------------------------------------------------------------
def claim(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Hold the store for one run; a folder with other things in it is refused."""

    def check(names: list[str]) -> None:
        known = [name for name in names if name == disk.LOCK or disk.TEMPORARY.fullmatch(name)]
        if MANIFEST not in names and len(known) < len(names):
            raise FileError(f"{folder} is not a snapshot store: it has no {MANIFEST}. Choose another path.")

    return disk.claim(folder, "snapshot store", check)

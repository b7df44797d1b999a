"""One chunk of snapshots on disk: rows of arrays in Zarr's layout, and a receipt that makes them count.

A receipt is written last, in one step, and holds the checksums of the rows: without it, or with others, they do not count.
So a chunk is there with its failures or not at all, and workers write chunks without knowing of each other.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from parasol.cache import disk
from parasol.errors import FileError
from parasol.reduction.zarr_files import chunk_file, decoded, encoded
from parasol.runtime.plain import Plain

FORMAT = "parasol snapshots"
RECEIPTS = "receipts"
RESUME = "Finished chunks are kept; run again to resume."


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

    @property
    def n_hidden(self) -> int:
        """Hidden values of a solution."""
        return self.hidden.shape[1]

    def load(self) -> Chunk:
        """The chunk itself: its arrays are here."""
        return self

    def rows(self, name: str) -> np.ndarray:
        """One of its arrays, "solutions" or "hidden"."""
        return getattr(self, name)


@dataclass(frozen=True, eq=False)
class StoredChunk:
    """A chunk whose arrays stay on disk until asked for; what travels back from a worker."""

    path: Path  # of its receipt
    index: int
    fingerprint: str
    mus: np.ndarray
    solved: np.ndarray
    reasons: tuple[str, ...]
    n_values: int
    n_hidden: int = 0
    sums: dict[str, str] = field(default_factory=dict)  # SHA-256 of its file in each array

    def load(self) -> Chunk:
        """Read the whole chunk and verify it."""
        return Chunk(self.mus, self.solved, self.rows("solutions"), self.rows("hidden"), self.reasons)

    def rows(self, name: str) -> np.ndarray:
        """One of its arrays, "solutions" or "hidden", read and verified."""
        n_columns = self.n_values if name == "solutions" else self.n_hidden
        if name not in self.sums:
            return np.empty((int(np.count_nonzero(self.solved)), n_columns))
        rows = decoded(self.verified(name), n_columns)[: len(self.solved)]
        return rows if self.solved.all() else rows[self.solved]

    def verified(self, name: str) -> bytes:
        """What an array's file of this chunk holds, if it is what was written there."""
        path = chunk_file(self.path.parents[1], name, self.index)
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise damaged(path, f"it cannot be read ({error.strerror})") from None
        if hashlib.sha256(raw).hexdigest() != self.sums[name]:
            raise damaged(path, "its checksum is wrong")
        return raw

    def why_damaged(self) -> str:
        """What is wrong with the files of this chunk; nothing where they are as they were written."""
        try:
            for name in self.sums:
                self.verified(name)
        except FileError as error:
            return str(error)
        return ""


def damaged(path: Path, why: str) -> FileError:
    """The error that a file of a store is not what was written there."""
    return FileError(
        f"the snapshot store is damaged: {path}: {why}. Run again with this store: only the parameters of this file are solved anew."
    )


def digest(array: np.ndarray) -> str:
    """SHA-256 of an array's numbers and shape."""
    array = np.ascontiguousarray(array, dtype="<f8")
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()


def checksum(content: Plain) -> str:
    """SHA-256 of what a JSON file says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_json(path: Path, content: Plain) -> None:
    """Write a file that carries its own checksum; equal contents give equal bytes."""
    content = json.loads(json.dumps(content))
    text = json.dumps({**content, "sha256": checksum(content)}, indent=1, sort_keys=True) + "\n"
    write_bytes(path, text.encode())


def write_bytes(path: Path, raw: bytes) -> None:
    """Write a file of a store, and the folder of its array where it is the first one."""

    def fill(temporary: Path) -> None:
        temporary.parent.mkdir(exist_ok=True)
        temporary.write_bytes(raw)

    disk.publish(path, fill, advice=RESUME)


def receipt_path(folder: Path, index: int) -> Path:
    """Where the receipt of chunk number `index` lies."""
    return folder / RECEIPTS / f"{index:06d}.json"


def write_chunk(folder: Path, index: int, fingerprint: str, chunk: Chunk, size: int) -> StoredChunk:
    """Write one chunk, with room for `size` rows: equal chunks give equal bytes."""
    receipt = receipt_path(folder, index)
    disk.remove(receipt, advice=RESUME)  # of fewer rows, where a store is extended
    sums = {}
    for name, rows in (("solutions", chunk.solutions), ("hidden", chunk.hidden)):
        if rows.size:
            sums[name] = _write_rows(folder, name, index, _placed(rows, chunk.solved, size))
    n_hidden = chunk.hidden.shape[1]
    content = {"format": FORMAT, "fingerprint": fingerprint, "index": index, "mus_sha256": digest(chunk.mus)}
    content |= {"solved": "".join("1" if one else "0" for one in chunk.solved), "reasons": list(chunk.reasons)}
    write_json(receipt, content | {"n_values": chunk.n_values, "n_hidden": n_hidden, "sums": sums})
    about = chunk.mus, chunk.solved, chunk.reasons, chunk.n_values, n_hidden, sums
    return StoredChunk(receipt, index, fingerprint, *about)


def _placed(rows: np.ndarray, solved: np.ndarray, size: int) -> np.ndarray:
    """Rows at the places of those that were solved, NaN at the others and behind them."""
    if len(rows) == size:
        return rows
    out = np.full((size, rows.shape[1]), np.nan)
    out[np.flatnonzero(solved)] = rows
    return out


def _write_rows(folder: Path, name: str, index: int, rows: np.ndarray) -> str:
    raw = encoded(rows)
    write_bytes(chunk_file(folder, name, index), raw)
    return hashlib.sha256(raw).hexdigest()


def read_receipt(path: Path, index: int, fingerprint: str, mus: np.ndarray) -> StoredChunk:
    """A chunk by its receipt, given the parameters that it may have, first to last; its rows are not read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        stated = content.pop("sha256")
        if stated != checksum(content):
            raise damaged(path, "its checksum is wrong")
        owner, number, solved = content["fingerprint"], int(content["index"]), content["solved"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise error if isinstance(error, FileError) else damaged(path, f"it cannot be read ({error})") from None
    if (owner, number) != (fingerprint, index):
        raise FileError(f"{path} belongs to another store or place (chunk {number} of {owner[:12]}). Remove it.")
    mus = mus[: len(solved)]
    if not solved or len(mus) < len(solved) or digest(mus) != content["mus_sha256"]:
        raise damaged(path, "its parameters are not those of the manifest")
    facts = tuple(content["reasons"]), content["n_values"], content["n_hidden"], content["sums"]
    return StoredChunk(path, index, owner, mus, np.array([one == "1" for one in solved]), *facts)

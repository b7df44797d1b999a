"""Snapshots on disk: a folder with a manifest and arrays in Zarr's layout; a kill costs the chunk in flight at most.

    manifest.json             what the store is about
    mus/                      the parameters, all that were asked for
    solutions/, hidden/       rows of values, a file per chunk, NaN where a parameter could not be solved
    receipts/000000.json      which parameters of a chunk were solved, why others were not, checksums of its files
    zarr.json, */zarr.json    for others: xarray.open_zarr(folder), dask.array.from_zarr(folder, "solutions")

Files appear under their name only when complete, nothing in them depends on when or by whom they were written, and
workers write them without knowing of each other.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from parasol.cache import disk
from parasol.errors import FileError, ParasolWarning
from parasol.reduction import older_stores
from parasol.reduction.chunks import (
    FORMAT,
    RECEIPTS,
    Chunk,
    StoredChunk,
    checksum,
    damaged,
    digest,
    read_receipt,
    write_bytes,
    write_chunk,
    write_json,
)
from parasol.reduction.fingerprints import difference
from parasol.reduction.zarr_files import chunk_file, decoded, encoded, has_layout, write_layout

VERSION = 2
MANIFEST = "manifest.json"
_COPY = "Restore it from a copy, or delete the folder and solve anew."
_QUOTED = 3  # damaged chunks named one by one
_RECEIPT = re.compile(r"(\d{6,})\.json")


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
    version: int = VERSION  # of the store

    @property
    def n_chunks(self) -> int:
        """Number of chunks when complete."""
        return -(-self.n_samples // self.chunk_size)


# ---- manifest -------------------------------------------------------------------------------------------------------
def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`."""
    write_json(folder / MANIFEST, {"format": FORMAT, **asdict(manifest)})


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
        raise FileError(
            f"the snapshot store {folder} is damaged: {MANIFEST} cannot be read ({error}). {_COPY}"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{folder} is not a snapshot store: {MANIFEST} is about something else. Choose another path.")
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise FileError(
            f"the snapshot store {folder} has version {version}, this parasol reads up to {VERSION}. Update parasol."
        )
    stated = content.pop("sha256", None)
    if version not in (older_stores.VERSION, VERSION) or stated != checksum(content):
        raise FileError(f"the snapshot store {folder} is damaged: the checksum of {MANIFEST} is wrong. {_COPY}")
    stated = {f.name: content.get(f.name) for f in fields(Manifest)}
    return Manifest(**{**stated, "parameters": tuple(content["parameters"])})


# ---- what is there ---------------------------------------------------------------------------------------------------
def n_chunks_in(folder: Path) -> int:
    """How many chunks a folder holds, of whatever store and version."""
    return sum(1 for _ in folder.glob(f"{RECEIPTS}/*.json")) + sum(1 for _ in folder.glob("chunk-*.h5"))


def stored_chunks(folder: Path, manifest: Manifest, mus: np.ndarray | None = None) -> dict[int, StoredChunk]:
    """All chunks on disk; where `mus` are given their rows must be those. Their arrays are verified when read."""
    if manifest.version == older_stores.VERSION:
        out = _older_chunks(folder, manifest, mus)
    else:
        receipts = _receipts(folder)
        mus = read_mus(folder, manifest) if receipts and mus is None else mus
        out = {index: _chunk(path, index, manifest, mus) for index, path in receipts.items()}  # type: ignore[arg-type]
    lengths = {c.n_values for c in out.values() if c.solved.any()}
    if len(lengths) > 1:
        raise FileError(f"the snapshot store {folder} holds solutions of different lengths {sorted(lengths)}.")
    return out


def _receipts(folder: Path) -> dict[int, Path]:
    matches = [(_RECEIPT.fullmatch(path.name), path) for path in sorted((folder / RECEIPTS).glob("*.json"))]
    return {int(match[1]): path for match, path in matches if match}


def _chunk(path: Path, index: int, manifest: Manifest, mus: np.ndarray) -> StoredChunk:
    rows = slice(index * manifest.chunk_size, min((index + 1) * manifest.chunk_size, manifest.n_samples))
    return read_receipt(path, index, manifest.fingerprint, mus[rows])


def _older_chunks(folder: Path, manifest: Manifest, mus: np.ndarray | None) -> dict[int, StoredChunk]:
    out: dict[int, StoredChunk] = {}
    for index, path in older_stores.chunk_files(folder).items():
        chunk = older_stores.read_chunk(path, index, manifest.fingerprint, arrays=False)
        start = index * manifest.chunk_size
        n_rows = min(manifest.chunk_size, manifest.n_samples - start)
        # fewer rows than the chunk has place for: those of a run that was extended later
        fits = 0 < len(chunk.mus) <= n_rows and chunk.mus.shape[1] == manifest.n_parameters
        if not fits or (mus is not None and not np.array_equal(chunk.mus, mus[start : start + len(chunk.mus)])):
            raise damaged(path, "its parameters are not those of the manifest")
        about = chunk.mus, chunk.solved, chunk.reasons, chunk.n_values, chunk.n_hidden
        out[index] = older_stores.OlderChunk(path, index, manifest.fingerprint, *about)
    return out


def read_mus(folder: Path, manifest: Manifest) -> np.ndarray:
    """The parameters that a store was begun for, (n_samples, n_parameters)."""
    path = chunk_file(folder, "mus", 0)
    try:
        mus = decoded(path.read_bytes(), manifest.n_parameters)[: manifest.n_samples]
    except (OSError, ValueError) as error:
        raise damaged(path, f"it cannot be read ({error})") from None
    if digest(mus) != manifest.mus_sha256:
        raise damaged(path, "its parameters are not those of the manifest")
    return mus


def drop_damaged(folder: Path, manifest: Manifest, mus: np.ndarray) -> list[str]:
    """Verify every chunk and take the receipts of damaged ones away, so that they count as not solved; what was wrong."""
    reasons = []
    for index, path in _receipts(folder).items():
        try:
            why = _chunk(path, index, manifest, mus).why_damaged()
        except FileError as error:
            why = str(error)
        if why:
            path.unlink()
            reasons.append(why)
    return reasons


# ---- the layout for others -----------------------------------------------------------------------------------------
def describe(folder: Path, manifest: Manifest, n_values: int, n_hidden: int) -> None:
    """Write what xarray, Dask and zarr need to open the store, as soon as somebody knows how long solutions are."""
    n, size = manifest.n_samples, manifest.chunk_size
    arrays = {"mus": ((n, manifest.n_parameters), n), "solutions": ((n, n_values), size)}
    arrays |= {"hidden": ((n, n_hidden), size)} if n_hidden else {}
    write_layout(folder, arrays, {"parameters": list(manifest.parameters), "solver": manifest.solver})


def add_chunk(folder: Path, index: int, fingerprint: str, chunk: Chunk, size: int) -> StoredChunk:
    """Write one chunk, and what others need to open the store where it is the first one."""
    stored = write_chunk(folder, index, fingerprint, chunk, size)
    if stored.n_values and not has_layout(folder):
        describe(folder, read_manifest(folder), stored.n_values, stored.n_hidden)
    return stored


def _write_mus(folder: Path, mus: np.ndarray) -> None:
    raw, path = encoded(mus), chunk_file(folder, "mus", 0)
    if not path.is_file() or path.read_bytes() != raw:
        write_bytes(path, raw)


# ---- the beginning of a run ----------------------------------------------------------------------------------------
def prepare(folder: Path, wanted: Manifest, mus: np.ndarray) -> tuple[Manifest, dict[int, StoredChunk]]:
    """Create the store, or check that it is the one wanted and extend it; the manifest in force and what is there."""
    if not (folder / MANIFEST).exists():
        write_manifest(folder, wanted)
        _write_mus(folder, mus)
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
    if there.version == older_stores.VERSION:
        there = _renewed(folder, there, mus)
    say_damaged(drop_damaged(folder, there, mus))
    chunks = stored_chunks(folder, there, mus)
    _write_mus(folder, mus)  # before the manifest: what is more than it says does no harm
    if len(mus) > n:
        there = replace(wanted, chunk_size=there.chunk_size)
        write_manifest(folder, there)
    known = next((chunk for chunk in chunks.values() if chunk.n_values), None)
    if known is not None:
        describe(folder, there, known.n_values, known.n_hidden)
    return there, chunks


def say_damaged(reasons: list[str]) -> None:
    """Warn of chunks that are damaged and will be solved again."""
    for why in reasons[:_QUOTED]:
        warnings.warn(
            f"{why.split('. Run again')[0].removesuffix(f'. {_COPY}')}. Its parameters are solved anew.",
            ParasolWarning,
            stacklevel=4,
        )
    if len(reasons) > _QUOTED:
        warnings.warn(f"and {len(reasons) - _QUOTED} more damaged chunks.", ParasolWarning, stacklevel=4)


def _renewed(folder: Path, there: Manifest, mus: np.ndarray) -> Manifest:
    """Turn a store of version 1 into one of today; a kill on the way leaves the old one or the new one."""
    files, renewed = older_stores.chunk_files(folder), replace(there, version=VERSION)
    for index, path in files.items():
        with contextlib.suppress(FileError):  # a damaged one is solved anew
            chunk = older_stores.read_chunk(path, index, there.fingerprint)
            write_chunk(folder, index, there.fingerprint, chunk, there.chunk_size)
    _write_mus(folder, mus)
    write_manifest(folder, renewed)
    for path in files.values():
        path.unlink()
    return renewed


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
@contextlib.contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Hold the store for one run; a folder with other things in it is refused."""

    def check(names: list[str]) -> None:
        known = [name for name in names if name == disk.LOCK or disk.TEMPORARY.fullmatch(name)]
        if MANIFEST not in names and len(known) < len(names):
            raise FileError(f"{folder} is not a snapshot store: it has no {MANIFEST}. Choose another path.")

    with disk.claim(folder, "snapshot store", check):
        _tidy(folder)
        try:
            yield
        finally:
            _tidy(folder)  # after processes that were ended while they wrote


def _tidy(folder: Path) -> None:
    for path in folder.glob("*/.*"):
        if disk.TEMPORARY.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()

"""Arrays in the layout of Zarr version 3, written with NumPy alone: one file per chunk of rows, a CRC-32C at its end.

xarray, Dask and zarr open what is written here and check the same sums. Numbers are float64, little-endian, not compressed:
the last digits of solutions are noise.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from parasol.cache import disk
from parasol.runtime.plain import Plain

_METADATA = "zarr.json"
_COLUMNS = {"mus": "parameter", "solutions": "value", "hidden": "ghost"}  # what the second axis of an array counts
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed
_LANES = 4096  # parts of the data that go through the register side by side
_ALL = np.uint32(0xFFFFFFFF)
_BITS = np.uint32(1) << np.arange(32, dtype="<u4")


def chunk_file(folder: Path, name: str, index: int) -> Path:
    """Where a chunk of rows of an array lies."""
    return folder / name / f"c.{index}.0"


def encoded(rows: np.ndarray) -> bytes:
    """A chunk as its file holds it."""
    raw = np.ascontiguousarray(rows, dtype="<f8").tobytes()
    return raw + crc32c(raw).to_bytes(4, "little")


def decoded(raw: bytes, n_columns: int) -> np.ndarray:
    """The rows of a chunk, without a copy and without checking."""
    return np.frombuffer(raw, dtype="<f8", count=(len(raw) - 4) // 8).reshape(-1, n_columns)


def write_layout(folder: Path, arrays: dict[str, tuple[tuple[int, int], int]], attributes: Plain) -> None:
    """Say what lies in the folder, for others: by name the shape of each array and how many rows a chunk has."""
    members = {name: _array(shape, n_rows, ("sample", _COLUMNS[name])) for name, (shape, n_rows) in arrays.items()}
    inline = {"kind": "inline", "must_understand": False, "metadata": members}
    group = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": attributes,
        # with this nobody has to list the folder, which holds more than arrays
        "consolidated_metadata": inline,
    }
    for name, content in members.items():
        _write(folder / name / _METADATA, content)
    _write(folder / _METADATA, group)


def has_layout(folder: Path) -> bool:
    """Whether others can open the folder."""
    return (folder / _METADATA).exists()


def _write(path: Path, content: Plain) -> None:
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        with disk.replacing(path) as temporary:  # not brought to the disk: it can be written again
            temporary.write_text(text, encoding="utf-8")


def _array(shape: Sequence[int], n_rows: int, names: Sequence[str]) -> Plain:
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [n_rows, shape[1]]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN",
        "codecs": codecs,
        "attributes": {},
        "dimension_names": list(names),
        "storage_transformers": [],
    }


# ---- CRC-32C -------------------------------------------------------------------------------------------------------
def crc32c(raw: bytes) -> int:
    """The sum that Zarr, iSCSI and others end their data with.

    The register is linear over GF(2): the data are cut into lanes that go through it side by side, and the results are
    joined in pairs, each shifted by the length of what follows it.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    lanes = min(_LANES, 1 << (len(raw) // 64).bit_length())
    n_words = max(1, -(-len(raw) // (4 * lanes)))  # of 32 bits, in each lane
    padded = np.zeros(4 * lanes * n_words, dtype=np.uint8)  # zeros in front leave an empty register empty
    padded[len(padded) - len(raw) :] = np.frombuffer(raw, dtype=np.uint8)
    words = np.ascontiguousarray(padded.view("<u4").reshape(lanes, n_words).T)
    lower, upper = _tables()
    register = np.zeros(lanes, dtype="<u4")
    for word in words:
        register ^= word
        halves = register.view("<u2")
        register = lower[halves[0::2]] ^ upper[halves[1::2]]
    shift = _power(_by_a_byte(), 4 * n_words)
    while len(register) > 1:
        register = _applied(shift, register[0::2]) ^ register[1::2]
        shift = _applied(shift, shift)
    started = _applied(_power(_by_a_byte(), len(raw)), np.array([_ALL]))  # the register begins with ones
    return int(register[0] ^ started[0] ^ _ALL)


@functools.cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """What the register becomes after four bytes: the parts from its lower and its upper 16 bits."""
    halves = np.arange(65536, dtype="<u4")
    return _stepped(halves, 32), _stepped(halves << 16, 32)


@functools.cache
def _by_a_byte() -> np.ndarray:
    """What a zero byte makes of each bit of the register, (32,)."""
    return _stepped(_BITS, 8)


def _stepped(values: np.ndarray, n_bits: int) -> np.ndarray:
    for _ in range(n_bits):
        values = (values >> 1) ^ ((values & 1) * np.uint32(_POLYNOMIAL))
    return values


def _applied(images: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A linear map, given by the images of the 32 bits, of many values."""
    return np.bitwise_xor.reduce(((values[:, None] & _BITS) != 0) * images, axis=1)


def _power(images: np.ndarray, n: int) -> np.ndarray:
    """The n-th power of a linear map."""
    out = _BITS
    while n:
        if n & 1:
            out = _applied(images, out)
        images, n = _applied(images, images), n >> 1
    return out

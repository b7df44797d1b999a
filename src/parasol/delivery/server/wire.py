"""Bytes in and out of the server: JSON and npy read with suspicion, answers written as JSON, npy or Arrow."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from parasol.checks import ParasolError, check_count

JSON, NPY, ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"
BYTES_PER_NUMBER = {JSON: 24, NPY: 8, ARROW: 8}  # at most, in float64
_NPY_TYPES = ("<f4", "<f8", "<i4", "<i8")
_LONGEST_MESSAGE = 400
_AT_ONCE = 4096  # numbers


class Refusal(Exception):
    """A request that is answered with a status of 4xx and one line: what was wrong, what was given, what to do."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status, self.message = status, one_line(message)


@dataclass(frozen=True)
class Limits:
    """What one request may cost; what exceeds a limit is refused with status 413 before it is computed."""

    body: int = 8 * 2**20  # bytes of a request
    response: int = 64 * 2**20  # bytes of an answer
    batch: int = 10_000  # parameter vectors
    points: int = 10_000  # selected points, nodes or times
    seconds: int = 30  # for a head to arrive, and then for a body; not for the answer
    requests: int = 256  # answered at a time; each may hold a body

    def __post_init__(self):
        for name, value in vars(self).items():
            check_count(value, f"the limit {name!r}")


def one_line(message: str) -> str:
    """The message in one line, cut where somebody's whole input is quoted in it.

    >>> one_line("mus is" + chr(10) + "empty.")
    'mus is empty.'
    """
    text = " ".join(message[: 2 * _LONGEST_MESSAGE].split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} ..."


def parse_json(data: bytes | str) -> Any:
    """What JSON says; what is not JSON, too deep, or uses NaN (which JSON has not) is refused with 400."""
    try:
        return json.loads(data, parse_constant=_no_constant, object_pairs_hook=_no_repetition)
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply. Send an object of plain lists.") from None
    except ValueError as error:  # broken text, broken UTF-8, whole numbers of thousands of digits
        raise Refusal(400, f"the body is not JSON: {error}. Send an object, as /docs shows.") from None


def read_json(data: bytes) -> dict[str, Any]:
    """The object in a body.

    >>> read_json(b'{"mus": [1, 2.5]}')
    {'mus': [1, 2.5]}
    """
    found = parse_json(data)
    if not isinstance(found, dict):
        raise Refusal(422, f"the body is a JSON {_kind(found)}, expected an object. /docs shows examples.")
    return found


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; JSON leaves open which of two equal names counts, so there may be none."""
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has the name {next(n for n in names if names.count(n) > 1)[:40]!r} twice")
    return out


def _no_constant(name: str) -> float:
    raise ValueError(f"it has {name}, and numbers must be finite")


def read_npy(data: bytes) -> np.ndarray:
    """The real numbers of an npy body, (n,) or (n, p), as float64; its header is checked before anything is allocated.

    >>> read_npy(write_npy(np.array([[1.0, 2.0]])))
    array([[1., 2.]])
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, by_columns, dtype = header(stream)
        fits = dtype.str in _NPY_TYPES and math.prod(shape) * dtype.itemsize == len(data) - stream.tell()
    except Exception as error:  # a header is a piece of Python text: its parser raises anything, tokenizer's errors too
        raise Refusal(400, f"the body is not an npy array: {error}. Send what numpy.save writes.") from None
    if not fits or len(shape) not in (1, 2) or min(shape) < 1:
        raise Refusal(
            422, f"the npy body declares {shape} numbers of type {dtype.str}. Send (n, p) or (p,) of {_NPY_TYPES[1]}."
        )
    found = np.frombuffer(data, dtype, offset=stream.tell())
    return found.reshape(shape, order="F" if by_columns else "C").astype(float)


def numbers(value: Any, name: str, ndims: tuple[int, ...]) -> np.ndarray:
    """Lists of JSON numbers as finite floats with one of the given numbers of axes, else 422.

    Texts, truth values and nulls are not numbers, though NumPy would make some of them.

    >>> numbers([[1, 2], [3, 4.5]], "mus", (1, 2))
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    rows = value if isinstance(value, list) and value and all(type(row) is list for row in value) else [value]
    wanted = " or ".join({1: "a list of numbers", 2: "a list of equally long lists of numbers"}[n] for n in ndims)
    for row in rows:
        if type(row) is not list or not row or not set(map(type, row)) <= {int, float} or len(row) != len(rows[0]):
            raise Refusal(422, f"{name} must be {wanted}, got {_shown(value)}.")
    try:
        found = np.array(value, dtype=float)
    except OverflowError:
        raise Refusal(422, f"{name} has a number beyond the range of floating point.") from None
    if found.ndim not in ndims:
        raise Refusal(422, f"{name} must be {wanted}, got {_shown(value)}.")
    if not np.isfinite(found).all():
        raise Refusal(422, f"{name} has a number beyond the range of floating point.")
    return found


def _shown(value: Any) -> str:
    return "an empty list" if value == [] else f"{_kind(value)} {value!r}"[:80]


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def write_json(content: Any) -> bytes:
    """Compact JSON; NaN and infinity, which it has not, become null.

    >>> write_json({"values": np.array([1.5, np.inf])})
    b'{"values":[1.5,null]}'
    """
    return b"".join(_pieces(content))


def _pieces(content: Any) -> Iterator[bytes]:
    """JSON in pieces of a few thousand numbers: between them other threads, the one that listens among them, get a turn."""
    if isinstance(content, dict):
        for i, (name, value) in enumerate(content.items()):
            yield (b"," if i else b"{") + json.dumps(str(name)).encode() + b":"
            yield from _pieces(value)
        yield b"}" if content else b"{}"
    elif isinstance(content, np.ndarray) and content.size > _AT_ONCE:
        step = max(1, _AT_ONCE * len(content) // content.size)
        for start in range(0, len(content), step):
            part = content[start : start + step]
            yield b"," if start else b"["
            if part.size > _AT_ONCE:  # one row, and it is long itself
                yield from _pieces(part[0])
            else:
                yield json.dumps(plain(part), allow_nan=False, separators=(",", ":"))[1:-1].encode()
        yield b"]"
    else:
        yield json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """Numbers, texts, lists and objects for JSON; NaN and infinity, which it has not, become null."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            value = np.where(np.isfinite(value), value.astype(object), None)  # type: ignore[call-overload]
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def write_npy(array: np.ndarray) -> bytes:
    """An array as a file of NumPy."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def write_arrow(array: np.ndarray) -> bytes:
    """An array (n, ...) as an Arrow stream of one table: the column `values` has a list of fixed length for each row."""
    import pyarrow

    rows = array.reshape(len(array), -1)
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), rows.shape[1])
    table = pyarrow.table({"values": column})
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return buffer.getvalue()


def binary_kinds() -> tuple[str, ...]:
    """The binary forms this server can write: Arrow only where pyarrow is installed."""
    return (NPY, ARROW) if find_spec("pyarrow") else (NPY,)


def accepted(header: str, offers: tuple[str, ...]) -> str:
    """The best of `offers` that an Accept header allows, else 406; the first of them where all are welcome.

    >>> accepted("application/x-npy;q=0.9, text/html", (JSON, NPY))
    'application/x-npy'
    >>> accepted("*/*", (JSON, NPY))
    'application/json'
    """
    wanted = dict(_weighted(part) for part in header.split(",") if part.strip()) or {"*/*": 1.0}
    weights = {
        offer: next((wanted[kind] for kind in (offer, "application/*", "*/*") if kind in wanted), 0.0)
        for offer in offers
    }
    best = max(offers, key=lambda offer: (weights[offer], offer in wanted))
    if weights[best] <= 0:
        raise Refusal(406, f"cannot answer as {header!r}. Accept one of: {', '.join(offers)}.")
    return best


def _weighted(part: str) -> tuple[str, float]:
    kind, *options = (piece.strip().lower() for piece in part.split(";"))
    for option in options:
        if option.startswith("q="):
            try:
                return kind, float(option[2:])
            except ValueError:
                return kind, 0.0
    return kind, 1.0


def require_starlette() -> None:
    """Advice where the packages behind the server are missing."""
    missing = [name for name in ("starlette", "uvicorn") if not find_spec(name)]
    if missing:
        raise ParasolError(f"serving needs {' and '.join(missing)}. Install it with: pip install 'parasol-pde[serve]'.")

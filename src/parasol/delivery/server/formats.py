"""Request bodies, which may be anything, read as JSON or npy; answers written as JSON or npy."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parasol.errors import ParasolError
from parasol.runtime.plain import Plain, plain

JSON, NPY = "application/json", "application/x-npy"
_NPY_TYPES = ("<f4", "<f8", "<i4", "<i8")
_LONGEST_MESSAGE = 400
_NUMBERS_AT_ONCE = 256  # with 1024 the listening thread waited half a second for its turn
_NUMBERS_OF_ROWS = 2**13  # computed at a time where an array is computed while it is written
CHUNK = 2**16  # bytes of an answer that are made and sent at a time


class Refusal(ParasolError):
    """A request that is answered with a status of 4xx and one line; `kind` is the type of error in UM-Bridge."""

    def __init__(self, status: int, message: str, kind: str = "InvalidInput"):
        super().__init__(message)
        self.status, self.kind = status, kind


@dataclass(frozen=True, eq=False)
class Rows:
    """An array (n_samples, ...) whose rows are computed when they are written, so that none of it is kept."""

    shape: tuple[int, ...]
    dtype: type
    compute: Callable[[slice], np.ndarray]

    def blocks(self) -> Iterator[np.ndarray]:
        """The rows in order, some thousand numbers at a time."""
        step = max(1, _NUMBERS_OF_ROWS // math.prod(self.shape[1:]))
        return (self.compute(slice(start, start + step)) for start in range(0, self.shape[0], step))


def one_line(message: str) -> str:
    """The message in one line, cut where it quotes a long input.

    >>> one_line("mus is" + chr(10) + "empty.")
    'mus is empty.'
    """
    text = " ".join(message[: 2 * _LONGEST_MESSAGE].split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} ..."


def parse_json(data: bytes | str) -> Any:
    """The content of strict JSON; NaN, infinity, repeated names and deep nesting are refused with 400."""
    # the parser alone lets no other thread run until it is done; where it calls Python for each number, they do
    calls = {"parse_float": lambda text: float(text), "parse_int": lambda text: int(text)} if len(data) > CHUNK else {}
    try:
        return json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_without_repetition, **calls)
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply. Send an object of plain lists.") from None
    except ValueError as error:  # broken text, broken UTF-8, whole numbers of thousands of digits
        raise Refusal(400, f"the body is not JSON: {error}. Send an object, as /docs shows.") from None


def read_json(data: bytes) -> Plain:
    """The JSON object in a body.

    >>> read_json(b'{"mus": [1, 2.5]}')
    {'mus': [1, 2.5]}
    """
    content = parse_json(data)
    if not isinstance(content, dict):
        raise Refusal(422, f"the body is a JSON {_kind(content)}, expected an object. /docs shows examples.")
    return content


def _without_repetition(pairs: list[tuple[str, Any]]) -> Plain:
    out = dict(pairs)
    if len(out) < len(pairs):  # JSON does not say which of two equal names counts
        names = [name for name, _ in pairs]
        raise ValueError(f"it has the name {next(n for n in names if names.count(n) > 1)[:40]!r} twice")
    return out


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it has {name}, and numbers must be finite")


def read_npy(data: bytes) -> np.ndarray:
    """The real numbers of an npy body, (n,) or (n, p), as float64; its header is checked before memory is allocated.

    >>> read_npy(write_npy(np.array([[1.0, 2.0]])))
    array([[1., 2.]])
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, by_columns, dtype = header(stream)
        fits = dtype.str in _NPY_TYPES and math.prod(shape) * dtype.itemsize == len(data) - stream.tell()
    except Exception as error:  # a header is Python source: its parser may raise anything, tokenizer errors included
        raise Refusal(400, f"the body is not an npy array: {error}. Send what numpy.save writes.") from None
    if not fits or len(shape) not in (1, 2) or min(shape) < 1:
        raise Refusal(
            422, f"the npy body declares {shape} numbers of type {dtype.str}. Send (n, p) or (p,) of {_NPY_TYPES[1]}."
        )
    values = np.frombuffer(data, dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if by_columns else "C").astype(float)


def numbers(value: Any, name: str, ndims: tuple[int, ...]) -> np.ndarray:
    """Lists of JSON numbers as finite floats with one of the given numbers of axes, else 422.

    Strings, booleans and nulls are refused, though NumPy would convert some of them.

    >>> numbers([[1, 2], [3, 4.5]], "mus", (1, 2))
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    rows = value if isinstance(value, list) and value and all(type(row) is list for row in value) else [value]
    wanted = " or ".join({1: "a list of numbers", 2: "a list of equally long lists of numbers"}[n] for n in ndims)
    regular = all(
        type(row) is list and row and set(map(type, row)) <= {int, float} and len(row) == len(rows[0]) for row in rows
    )
    if not regular or (1 if rows[0] is value else 2) not in ndims:
        shown = "an empty list" if value == [] else f"{_kind(value)} {value!r}"[:80]
        raise Refusal(422, f"{name} must be {wanted}, got {shown}.")
    try:
        array = np.array(value, dtype=float)
    except OverflowError:
        array = np.array(np.inf)
    if not np.isfinite(array).all():
        raise Refusal(422, f"{name} has a number beyond the range of floating point.")
    return array


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def write_json(content: Any) -> bytes:
    """Compact JSON; NaN and infinity, which JSON does not have, become null.

    >>> write_json({"values": np.array([1.5, np.inf])})
    b'{"values":[1.5,null]}'
    """
    return b"".join(json_pieces(content))


def json_pieces(content: Any) -> Iterator[bytes]:
    """JSON in pieces of a few hundred numbers, so that other threads, above all the listening one, run in between."""
    if isinstance(content, dict):
        for i, (name, value) in enumerate(content.items()):
            yield (b"," if i else b"{") + json.dumps(str(name)).encode() + b":"
            yield from json_pieces(value)
        yield b"}" if content else b"{}"
    elif isinstance(content, Rows) or (isinstance(content, np.ndarray) and content.size > _NUMBERS_AT_ONCE):
        before = b"["
        for block in content.blocks() if isinstance(content, Rows) else [content]:
            step = max(1, _NUMBERS_AT_ONCE * len(block) // block.size)
            for start in range(0, len(block), step):
                part = block[start : start + step]
                yield before
                if part.size > _NUMBERS_AT_ONCE:  # one row, and a long one
                    yield from json_pieces(part[0])
                else:
                    yield json.dumps(plain(part), allow_nan=False, separators=(",", ":"))[1:-1].encode()
                before = b","
        yield b"]"
    else:
        yield json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode()


def npy_pieces(array: np.ndarray | Rows) -> tuple[int, Iterator[bytes]]:
    """The length of an npy file and its bytes in pieces.

    >>> length, pieces = npy_pieces(Rows((2, 3), np.float64, lambda rows: np.ones((2, 3))[rows]))
    >>> length == len(b"".join(pieces)) == len(write_npy(np.ones((2, 3))))
    True
    """
    head = io.BytesIO()
    about = {"descr": np.dtype(array.dtype).str, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(head, about)
    blocks = array.blocks() if isinstance(array, Rows) else [array]
    length = head.tell() + math.prod(array.shape) * np.dtype(array.dtype).itemsize

    def pieces() -> Iterator[bytes]:
        yield head.getvalue()
        for block in blocks:
            flat = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
            yield from (flat[start : start + CHUNK].tobytes() for start in range(0, len(flat), CHUNK))

    return length, pieces()


def next_chunk(pieces: Iterator[bytes]) -> bytes:
    """The next bytes of an answer, CHUNK of them or a little more; fewer only at its end.

    >>> next_chunk(iter([b"ab", b"c"]))
    b'abc'
    """
    parts, size = [], 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= CHUNK:
            break
    return b"".join(parts)


def write_npy(array: np.ndarray) -> bytes:
    """An array as an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def accepted(header: str, offers: tuple[str, ...]) -> str:
    """The best of `offers` that an Accept header allows, else 406; the first of them where all are equally welcome.

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
    weight = next((option[2:] for option in options if option.startswith("q=")), "1")
    try:
        return kind, float(weight)
    except ValueError:
        return kind, 0.0

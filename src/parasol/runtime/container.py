"""Any of parasol's objects in one file: a ZIP of a readable manifest and plain arrays, nothing that could be executed.

The manifest has facts, the hash of every array, and the tree of named kinds the arrays belong to. What a file declares is
checked before it is believed. Reading needs NumPy alone; SciPy only for sparse matrices.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.cache.disk import check_output, missing, replacing
from parasol.errors import FileError, InputError, NotInstalled, ParasolError
from parasol.runtime.above import borrowed
from parasol.runtime.basis import Basis
from parasol.runtime.certificate import Certificate
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.defects import Defects
from parasol.runtime.duals import RandomDuals
from parasol.runtime.expansions import Chebyshev, Radial
from parasol.runtime.features import Features
from parasol.runtime.formulas import Formula
from parasol.runtime.jackknife import Jackknife
from parasol.runtime.layout import GivenJumps, Layout, RegionNodes
from parasol.runtime.min_theta import MinTheta
from parasol.runtime.older_files import OLDER
from parasol.runtime.operations import Activation, Affine, Log, Scale, Sum
from parasol.runtime.outline import Outline
from parasol.runtime.parameters import ParameterFunction, ParameterSpace
from parasol.runtime.parts import CalibratedParts
from parasol.runtime.plain import Plain
from parasol.runtime.products import MatrixProduct
from parasol.runtime.program import Program, StoredMap, program_of
from parasol.runtime.quantities import Mixing, Quantities
from parasol.runtime.random_fields import GaussianField, SphereField
from parasol.runtime.ranges import ParameterRange
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.residuals import WeightedResidual
from parasol.runtime.rows import RowFunction
from parasol.runtime.surrogate import Surrogate
from parasol.runtime.theta import Theta

VERSION = 3  # 1 was never released; 2, of parasol 0.1, held maps by their own fields
_OLDEST = 2
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 4 * 2**20  # what is large is in arrays; parsed JSON takes twenty times its size
_LONGEST_EMPTY = 10_000  # an array without numbers may have no longer axis
_TYPES = ("<f4", "<f8", "<i4", "<i8", "|b1")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no dates: the same object gives the same bytes
# what does not go into a file, and what stands there instead after loading
_LEFT_OUT: dict[str, dict[str, Any]] = {
    "Surrogate": {"solver": None, "origin": None, "facts": {}},  # facts stand at the head of the manifest
    "Layout": {"domain": None},
    "ReducedModel": {"model": None},
}
# what a file may contain, by the names that files use; a kind is made by its own constructor, which checks it
_KINDS: dict[str, type] = {
    "Readings": Quantities,
    "PlainParameter": ParameterRange,
    "PlainFunction": ParameterFunction,
    "Frame": WeightedResidual,
    **{
        kind.__name__: kind
        for kind in (
            *(
                Surrogate,
                Layout,
                RegionNodes,
                Outline,
                Features,
                Basis,
                MatrixProduct,
                MinTheta,
                ReducedModel,
                RandomDuals,
                Theta,
                Certificate,
                ConformalBound,
                Jackknife,
                CalibratedParts,
            ),
            *(RowFunction, Formula, ParameterSpace, SphereField, GaussianField, Mixing, Defects, GivenJumps),
            *(StoredMap, Program, Log, Scale, Affine, Activation, Sum, Chebyshev, Radial),
        )
    },
}
_RENAMED = {
    "ReducedModel": {"residuals": "frames"},
    "PlainFunction": {"distribution": "law"},
}  # fields that files call otherwise
_NAMES = {kind: name for name, kind in _KINDS.items()}
_STENCILS = ("Scheme", "IMQ", "MQ", "IQ", "Gaussian", "PHS", "Matern", "Wendland")  # of a room above
# how fields are declared that hold nothing of these kinds, and what may stand in them
_SIMPLE = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "np.ndarray": (np.ndarray,),
    "None": (type(None),),
}


def pack(value: Any, path: str | Path, *, form: str, facts: Plain) -> Path:
    """Write an object to one file of the named form, which appears complete or not at all; of the facts what is plain."""
    path = check_output(path, None)
    arrays: list[np.ndarray] = []
    content = _encode(value, arrays)
    entries = {_name(i): _npy(array) for i, array in enumerate(arrays)}
    manifest = {
        "format": form,
        "version": VERSION,
        "parasol": __version__,
        "facts": _encode({key: fact for key, fact in facts.items() if _is_plain(fact)}, [])["dict"],
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()},
        "content": content,
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    if len(text) > _LARGEST_MANIFEST:
        raise InputError(f"the formulas and facts of this surrogate take {len(text)} bytes, too many for a file.")
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        for name, data in {_MANIFEST: text, **entries}.items():
            file.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return path


def unpack(path: str | Path, build: Callable[[Any, Plain], Any], *, form: str) -> Any:
    """Read what `pack` wrote, as `build(value, facts)`; a damaged, hostile, foreign or newer file is refused with the reason.

    Nothing larger than the file is read, and every kind is made by its own constructor, which checks it.
    """
    path = Path(path)
    try:
        with _Honest(path) as whole, zipfile.ZipFile(whole) as file:
            return build(*_read(file, path, form))
    except FileNotFoundError:
        raise missing(path) from None
    except ImportError as error:
        raise NotInstalled(f"{str(path)!r} needs {error.name}, which is not installed.") from None
    except NotInstalled as error:
        raise NotInstalled(f"{str(path)!r} cannot be read here: {error}") from None
    except FileError:  # which names the file
        raise
    except ParasolError as error:  # `Damaged`, or what a constructor says of the values in the file
        raise FileError(f"{str(path)!r} is damaged: {error}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RecursionError, OSError, RuntimeError) as error:
        raise FileError(f"{str(path)!r} is not a surrogate, or is damaged: {error}.") from None
    except (TypeError, ValueError, AttributeError, LookupError, MemoryError, ArithmeticError) as error:
        raise FileError(f"{str(path)!r} is damaged: {type(error).__name__}: {error}.") from error


class Damaged(ParasolError):
    """What is wrong inside a file, without its name."""


class _Honest(io.BufferedReader):
    """A file of which nobody gets more than there is: zipfile reserves memory for whatever a file declares."""

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path))
        self._size = path.stat().st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self.tell())
        return super().read(left if size is None or size < 0 else min(size, left))


def _read(file: zipfile.ZipFile, path: Path, form: str) -> tuple[Any, Plain]:
    entries = file.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
        raise Damaged("an entry is packed or locked.")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise Damaged("its entries are larger than the file.")
    if file.getinfo(_MANIFEST).file_size > _LARGEST_MANIFEST:
        raise Damaged("its manifest is too large.")
    manifest = json.loads(file.read(_MANIFEST), parse_constant=_no_number)
    _check_version(manifest, path, form)
    names = list(manifest["sha256"])
    if names != [_name(i) for i in range(len(names))] or sorted(e.filename for e in entries) != sorted(
        [_MANIFEST, *names]
    ):
        raise Damaged("its entries are not those of its manifest.")
    arrays = []
    for name, wanted in manifest["sha256"].items():
        data = file.read(name)
        if hashlib.sha256(data).hexdigest() != wanted:
            raise Damaged(f"{name} has changed since it was written.")
        arrays.append(_array(data, name))
    return _decode(manifest["content"], arrays), _decode({"dict": manifest["facts"]}, [])


def _check_version(manifest: Any, path: Path, form: str) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        raise FileError(f"{str(path)!r} is not a surrogate of parasol.")
    version = manifest["version"]
    if type(version) is not int or version < 1:
        raise Damaged(f"its version is {version!r}.")
    if version > VERSION:
        raise FileError(
            f"{str(path)!r} has version {version} of the format, written by parasol {manifest['parasol']}, and is "
            f"newer than this parasol ({__version__}) can read. Update parasol."
        )
    if version < _OLDEST:
        raise FileError(
            f"{str(path)!r} has version {version} of the format, which is no longer read. Make the surrogate again."
        )


def _name(i: int) -> str:
    return f"arrays/{i:04d}.npy"


def _no_number(text: str) -> float:
    raise Damaged(f"its manifest has the number {text}.")


def _array(data: bytes, name: str) -> np.ndarray:
    """The array of an entry, if it is one of finite numbers and exactly as large as the entry."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if header is None:
        raise Damaged(f"the header of {name} has version {version}.")
    shape, fortran, dtype = header(stream)
    size = math.prod(shape)
    if dtype.str not in _TYPES or any(n < 0 for n in shape) or size * dtype.itemsize != len(data) - stream.tell():
        raise Damaged(f"{name} declares {shape} numbers of type {dtype}.")
    if size == 0 and any(n > _LONGEST_EMPTY for n in shape):
        raise Damaged(f"{name} is empty and declares the shape {shape}.")
    out = np.frombuffer(data, dtype=dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")
    if dtype.kind == "f" and not np.isfinite(out).all():
        raise Damaged(f"{name} has numbers that are NaN or infinite.")
    if dtype.kind == "b" and not (out.view(np.uint8) <= 1).all():
        raise Damaged(f"{name} has truth values that are neither true nor false.")
    return out


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    # rows or columns first, as it was: products are then the same to the last bit
    np.save(buffer, array if array.flags.forc else np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _is_plain(value: Any) -> bool:
    """Whether a fact is made of numbers and texts, for only these go into a file."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """A tree of plain data; arrays are put aside and referred to by number."""
    if isinstance(value, np.ndarray) and value.dtype.newbyteorder("<").str in _TYPES:
        array = value.astype(value.dtype.newbyteorder("<"), copy=False)
        known = [i for i, other in enumerate(arrays) if _memory(other) == _memory(array)]
        if not known:
            arrays.append(array)
        return {"array": known[0] if known else len(arrays) - 1}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, tuple | list):
        return [_encode(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): _encode(item, arrays) for key, item in value.items()}}
    return _encode_kind(value, arrays)


def _memory(array: np.ndarray) -> tuple:
    """Where an array lies and how it is read: a basis that two parts of a surrogate share is written once."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype


def _encode_kind(value: Any, arrays: list[np.ndarray]) -> Any:
    if getattr(value, "format", None) == "csr":
        parts = (value.data, value.indices, value.indptr)
        return {"csr": [_encode(part, arrays) for part in parts], "shape": [int(n) for n in value.shape]}
    name = _NAMES.get(type(value)) or (type(value).__name__ if type(value).__name__ in _STENCILS else None)
    if name is None:
        if program_of(value) is not None:  # a map of any kind is kept by its program
            return _encode_kind(StoredMap.of(value), arrays)
        if hasattr(value, "expression"):
            raise InputError(
                f"the bounds of this surrogate need {str(value.expression)[:80]}, and files cannot hold such a function of the "
                "parameters. Write it with +, *, **, sin, exp, Abs, Max, Min and the like, or keep the surrogate in memory."
            )
        raise InputError(
            f"a surrogate with a {type(value).__module__}.{type(value).__name__} in it cannot be saved: files hold maps that "
            "have a program. Keep it in memory, or fit one of parasol's recipes."
        )
    left_out = _LEFT_OUT.get(name, {})
    # what few objects have is left out of the others, so that earlier versions read them
    common = lambda f: not f.metadata.get("optional") or not _is_default(getattr(value, f.name), f.default)  # noqa: E731
    kept = [f.name for f in fields(value) if f.init and f.name not in left_out and common(f)]
    called = _RENAMED.get(name, {})
    return {"kind": name, "fields": {called.get(f, f): _encode(getattr(value, f), arrays) for f in kept}}


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and value == default)


def _decode(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return tuple(_decode(item, arrays) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        place = tree["array"]
        if type(place) is not int or not 0 <= place < len(arrays):
            raise Damaged(f"the file refers to array {place!r} of {len(arrays)}.")
        return arrays[place]
    if "float" in tree:
        return float(tree["float"])
    if "csr" in tree:
        return _sparse(*[_decode(part, arrays) for part in tree["csr"]], shape=tuple(tree["shape"]))
    if "dict" in tree:
        return {key: _decode(item, arrays) for key, item in tree["dict"].items()}
    kind = tree["kind"]
    called = {stored: name for name, stored in _RENAMED.get(kind, {}).items()}
    values = {str(called.get(name, name)): _decode(item, arrays) for name, item in tree["fields"].items()}
    if kind in OLDER:
        return OLDER[kind](**values)
    if kind not in _KINDS and kind not in _STENCILS:
        raise Damaged(f"the file holds a {kind!r}, which this version of parasol does not know.")
    cls = borrowed(kind) if kind in _STENCILS else _KINDS[kind]
    for f in fields(cls):
        if f.name in values and values[f.name] is not f.default and not _fits(values[f.name], str(f.type)):
            raise Damaged(f"{f.name} of a {kind} in it is a {type(values[f.name]).__name__}.")
    return cls(**(values | _LEFT_OUT.get(kind, {})))


def _fits(value: Any, declared: str) -> bool:
    """Whether a value is what its field is declared as, where that says so simply: a constructor looks at the rest.

    >>> _fits(1, "float | None"), _fits("1", "float | None"), _fits(True, "int"), _fits((), "tuple[str, ...]")
    (True, False, False, True)
    """
    names = declared.split(" | ")
    kinds = {kind.__name__ for kind in _NAMES}
    if not all(name in _SIMPLE or name in kinds for name in names):
        return True
    return any(type(value) in _SIMPLE.get(name, ()) or type(value).__name__ == name for name in names)


def _sparse(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, *, shape: tuple[int, ...]) -> Any:
    """A sparse matrix, if its rows and columns are what they should be: SciPy would read beyond its arrays otherwise."""
    n_rows, n_columns = shape
    whole = indices.dtype.kind == "i" and indptr.dtype.kind == "i" and all(type(n) is int and n >= 0 for n in shape)
    if not whole or not data.ndim == indices.ndim == indptr.ndim == 1 or len(indptr) != n_rows + 1:
        raise Damaged("a sparse matrix in it has arrays of the wrong kind.")
    if indptr[0] != 0 or indptr[-1] != len(data) or len(indices) != len(data) or np.any(np.diff(indptr) < 0):
        raise Damaged("the rows of a sparse matrix in it are out of order.")
    if n_columns > 2**31 or (len(indices) and (indices.min() < 0 or indices.max() >= n_columns)):
        raise Damaged("a sparse matrix in it has entries outside of its columns.")
    return borrowed("csr_array")((data, indices, indptr), shape=shape)

"""A surrogate in one file: a ZIP of a readable manifest and plain arrays, nothing that could be executed."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.checks import ParasolError
from parasol.delivery.files import check_output, replacing
from parasol.surrogate.surrogate import Surrogate

FORMAT = "parasol-surrogate"
VERSION = 1
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 * 2**20
_TYPES = ("<f4", "<f8", "<i4", "<i8", "|b1")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no dates: the same surrogate gives the same bytes
# what does not go into a file, and what stands there instead after loading
_LEFT_OUT: dict[str, dict[str, Any]] = {
    "Surrogate": {"solver": None},
    "Layout": {"domain": None},
    "ReducedModel": {"model": None},
    "TrainedNetwork": {"history": ()},
}
# what a file may contain; a kind is made by its own constructor, which checks it
_KINDS = {
    name: home
    for home, names in {
        "parasol.surrogate.surrogate": "Surrogate Layout",
        "parasol.surrogate.features": "Features",
        "parasol.surrogate.training": "TrainedNetwork",
        "parasol.surrogate.linear": "FittedLinear",
        "parasol.surrogate.polynomial": "FittedPolynomial",
        "parasol.surrogate.kernel": "FittedProcess",
        "parasol.surrogate.random_features": "FittedNetwork",
        "parasol.networks.network": "Network",
        "parasol.reduction.basis": "Basis",
        "parasol.reduction.reduced": "ReducedModel",
        "parasol.reduction.affine": "Theta",
        "parasol.reduction.frames": "Frame",
        "parasol.reduction.certificate": "Certificate",
        "parasol.reduction.conformal": "ConformalBound",
        "parasol.pde.rows": "RowFunction",
        "parasol.pde.parameters": "ParameterSpace Parameter FunctionParameter",
        "parasol.pde.fields": "SphereField",
        "parasol.formulas": "Formula",
        "parasol.space.stencils": "Scheme",
        "parasol.space.kernels": "IMQ MQ IQ Gaussian PHS Matern Wendland",
    }.items()
    for name in names.split()
}


def save(surrogate: Surrogate, path: str | Path) -> Path:
    """Write a surrogate to one file, which appears complete or not at all; the full solver is not part of it."""
    if not isinstance(surrogate, Surrogate):
        raise ParasolError(f"cannot save a {type(surrogate).__name__}. Pass a surrogate.")
    path = check_output(path, None)
    arrays: list[np.ndarray] = []
    content = _encode(surrogate, arrays)
    entries = {f"arrays/{i:04d}.npy": _npy(array) for i, array in enumerate(arrays)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "parasol": __version__,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()},
        "content": content,
    }
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        text = json.dumps(manifest, indent=1, allow_nan=False).encode()
        for name, data in {_MANIFEST: text, **entries}.items():
            file.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return path


def load(path: str | Path) -> Surrogate:
    """Read a surrogate from a file; a file that is damaged, foreign or newer is refused with the reason."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            return _read(file, path)
    except FileNotFoundError:
        raise ParasolError(f"there is no file {str(path)!r}.") from None
    except (
        zipfile.BadZipFile,
        KeyError,
        EOFError,
        NotImplementedError,
        UnicodeDecodeError,
        RecursionError,
        OSError,
    ) as error:
        raise ParasolError(f"{str(path)!r} is not a surrogate, or is damaged: {error}.") from None
    except (TypeError, ValueError, AttributeError, IndexError, MemoryError, ArithmeticError) as error:
        if isinstance(error, ParasolError):
            raise
        raise ParasolError(f"{str(path)!r} is damaged: {error}.") from None


def _read(file: zipfile.ZipFile, path: Path) -> Surrogate:
    size = path.stat().st_size
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size for entry in file.infolist()):
        raise ParasolError(f"{str(path)!r} is damaged: an entry is packed or larger than the file.")
    if file.getinfo(_MANIFEST).file_size > _LARGEST_MANIFEST:
        raise ParasolError(f"{str(path)!r} has a manifest of unreasonable size.")
    manifest = json.loads(file.read(_MANIFEST))
    if manifest.get("format") != FORMAT:
        raise ParasolError(f"{str(path)!r} is not a surrogate of parasol.")
    if type(manifest["version"]) is not int or manifest["version"] < 1:
        raise ParasolError(f"{str(path)!r} is damaged: its version is {manifest['version']!r}.")
    if manifest["version"] > VERSION:
        raise ParasolError(
            f"{str(path)!r} has version {manifest['version']} of the format, written by parasol {manifest['parasol']}, and is "
            f"newer than this parasol ({__version__}) can read. Update parasol."
        )
    arrays = []
    for name, wanted in manifest["sha256"].items():
        data = file.read(name)
        if hashlib.sha256(data).hexdigest() != wanted:
            raise ParasolError(f"{str(path)!r} is damaged: {name} has changed since it was written.")
        arrays.append(_array(data, name))
    found = _decode(manifest["content"], arrays)
    if not isinstance(found, Surrogate):
        raise ParasolError(f"{str(path)!r} holds a {type(found).__name__}, not a surrogate.")
    return found


def _array(data: bytes, name: str) -> np.ndarray:
    """The array of an entry, if it is one of finite numbers and no larger than the entry itself."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if header is None:
        raise ParasolError(f"{name} is damaged: its header has version {version}.")
    shape, _, dtype = header(stream)
    if dtype.str not in _TYPES or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ParasolError(f"{name} is damaged: it declares {shape} numbers of type {dtype}.")
    out = np.load(io.BytesIO(data), allow_pickle=False)
    if not np.all(np.isfinite(out)):
        raise ParasolError(f"{name} is damaged: it has numbers that are NaN or infinite.")
    return out


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """A tree of plain data; arrays are put aside and referred to by number."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays.append(value)
        return {"array": len(arrays) - 1}
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
    kind = type(value).__name__
    if kind not in _KINDS or type(value).__module__ != _KINDS[kind]:
        raise ParasolError(
            f"a surrogate with a {type(value).__module__}.{kind} in it cannot be saved: files hold parasol's own maps only. "
            "Keep it in memory, or fit one of parasol's recipes."
        )
    return {"kind": kind, "fields": {n: _encode(v, arrays) for n, v in _fields(value).items()}}


def _fields(value) -> dict[str, Any]:
    if is_dataclass(value):
        left_out = _LEFT_OUT.get(type(value).__name__, {})
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init and f.name not in left_out}
    arguments, options = value.__getnewargs_ex__()  # a parameter
    names = ("name", "low", "high") if len(arguments) == 3 else ("name", "law")
    return {**dict(zip(names, arguments, strict=True)), **options}


def _decode(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return tuple(_decode(item, arrays) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        place = tree["array"]
        if type(place) is not int or not 0 <= place < len(arrays):
            raise ParasolError(f"the file refers to array {place!r} of {len(arrays)}.")
        return arrays[place]
    if "float" in tree:
        return float(tree["float"])
    if "dict" in tree:
        return {key: _decode(item, arrays) for key, item in tree["dict"].items()}
    kind = tree["kind"]
    if kind not in _KINDS:
        raise ParasolError(f"the file holds a {kind!r}, which this version of parasol does not know.")
    made = getattr(import_module(_KINDS[kind]), kind)
    found = {name: _decode(item, arrays) for name, item in tree["fields"].items()}
    return made(**(found | _LEFT_OUT.get(kind, {})))

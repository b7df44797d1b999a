"""Shape, finiteness and range checks that say what to do next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from parasol.errors import InputError, did_you_mean
from parasol.errors import ParasolError as ParasolError
from parasol.errors import ParasolWarning as ParasolWarning

Progress = Callable[[float], Any] | None  # called with the fraction that is done


def unmasked(given: Any) -> Any:
    """What is given, with NaN for masked entries, also of arrays in lists: NumPy would use the numbers under the mask.

    >>> unmasked(np.ma.masked_array([1.0, 2.0], mask=[False, True]))
    array([ 1., nan])
    """
    if isinstance(given, list | tuple) and _has_masks(given):
        return [unmasked(part) for part in given]
    if not isinstance(given, np.ma.MaskedArray) or given.dtype.names is not None or not np.ma.is_masked(given):
        return given
    if given.dtype.kind in "iub":
        given = given.astype(float)
    elif given.dtype.kind not in "fcmM":
        given = given.astype(object)
    return np.ma.filled(given, "NaT" if given.dtype.kind in "mM" else np.nan)


def _has_masks(parts: Sequence[Any]) -> bool:
    return any(
        isinstance(part, np.ma.MaskedArray) or (isinstance(part, list | tuple) and _has_masks(part)) for part in parts
    )


def is_missing(value: Any) -> bool:
    """Whether an entry of a table says that there is none: None, NaN, NaT, masked, or NA of pandas.

    >>> [is_missing(value) for value in (None, float("nan"), np.ma.masked, 0.0, "")]
    [True, True, True, False, False]
    """
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except (TypeError, ValueError):  # NA says neither yes nor no
        return True


def check_labels(labels: Any, n: int, name: str, what: str) -> np.ndarray:
    """Labels (n,), one for each of n things, none of them missing.

    >>> check_labels(["a", None], 2, "groups", "runs")
    Traceback (most recent call last):
    parasol.errors.InputError: groups has labels that are missing. Give one for each of the 2 runs.
    """
    array = np.asarray(unmasked(labels))
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}: give one label for each of the {n} {what}.")
    if any(is_missing(label) for label in array.tolist()):
        raise InputError(f"{name} has labels that are missing. Give one for each of the {n} {what}.")
    return array.astype(str) if array.dtype.kind == "O" else array


def is_date(array: np.ndarray) -> bool:
    """Whether an array holds dates or spans of time, which NumPy would turn into numbers of some unit or other."""
    kinds = (date, timedelta, np.datetime64, np.timedelta64)
    return array.dtype.kind in "mM" or (
        array.dtype.kind == "O" and any(isinstance(v, kinds) or hasattr(v, "isoformat") for v in array.ravel().tolist())
    )


def dates_refused(name: str = "") -> InputError:
    """What to do with dates."""
    return InputError(
        f"{name}{': ' if name else ''}dates are no numbers. Give the time since one of them in a unit of your choice, such as "
        "(dates - dates[0]) / np.timedelta64(1, 's')."
    )


def as_floats(given: Any, name: str = "") -> np.ndarray:
    """An array of floats, NaN where masked; complex numbers are a TypeError, where NumPy drops their imaginary parts.

    Dates are refused: NumPy would count them in a unit that nobody sees.
    """
    if type(given) is np.ndarray and given.dtype == np.float64:
        return given
    array = np.asarray(unmasked(given))
    if array.dtype.kind == "c":
        raise TypeError("complex numbers")
    if is_date(array):
        raise dates_refused(name)
    try:
        return array.astype(float, copy=False)
    except OverflowError:
        raise ValueError("whole numbers beyond the range of floats") from None


def check_shape(array, shape: Sequence[int | None], name: str) -> np.ndarray:
    """Return `array` as floats if its shape matches (`None` matches any length), else say what was expected.

    >>> check_shape([[1, 2]], (None, 2), "points").shape
    (1, 2)
    """
    try:
        out = as_floats(array, name)
    except ParasolError:
        raise
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be real numbers, got {type(array).__name__}. Pass a NumPy array or nested lists."
        ) from None
    if out.ndim != len(shape) or any(
        want is not None and want != got for want, got in zip(shape, out.shape, strict=True)
    ):
        wanted = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise InputError(
            f"{name} has shape {out.shape}, expected {wanted}. Reshape it: samples and points run along axis 0."
        )
    return out


def check_finite(array: np.ndarray, name: str, *, error: type[ParasolError] = InputError) -> np.ndarray:
    """Return `array` if it holds neither NaN nor infinity; else `error` says whose fault that is.

    >>> check_finite(np.array([1.0, np.nan]), "values")
    Traceback (most recent call last):
    parasol.errors.InputError: values has 1 entry of 2 that is NaN or infinite. Remove or repair it first.
    """
    bad = int(np.size(array) - np.count_nonzero(np.isfinite(array)))
    if bad:
        which = "1 entry" if bad == 1 else f"{bad} entries"
        verb, it = ("is", "it") if bad == 1 else ("are", "them")
        raise error(f"{name} has {which} of {np.size(array)} that {verb} NaN or infinite. Remove or repair {it} first.")
    return array


def check_positive(value: float, name: str) -> float:
    """Return `value` as a float if it is a positive finite number."""
    try:
        if isinstance(value, str | bytes):  # float would read it, and sums and comparisons would not
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a positive number, got {value!r}.") from None
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} must be positive and finite, got {value!r}.")
    return number


def check_count(value, name: str) -> int:
    """Return `value` as an int if it is a whole number of at least 1.

    >>> check_count(3, "n_samples")
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def check_progress(progress: Any) -> Any:
    """Return `progress` if it can be called, or is None.

    >>> check_progress(True)
    Traceback (most recent call last):
    parasol.errors.InputError: progress=True cannot be called. Pass a function, such as progress=print, or None.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress={progress!r} cannot be called. Pass a function, such as progress=print, or None.")
    return progress


def check_choice(value: str, choices: Sequence[str], name: str) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise InputError(
            f"{name}={value!r} is unknown. {did_you_mean(str(value), choices)}Use one of: {', '.join(choices)}."
        )
    return value

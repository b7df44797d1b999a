"""What a kind of map is: a recipe with `fit(x, y)`, which returns something with `predict(x)`, whoever wrote it."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError

Pair = tuple[ArrayLike, ArrayLike] | None  # inputs and outputs to validate with


class Recipe(Protocol):
    """A kind of map before it is fitted, whoever wrote it; scikit-learn's regressors are recipes."""

    def fit(self, x: Any, y: Any, /) -> Any:
        """Fit inputs (n, p) to outputs (n, d); what is returned has `predict(x)`."""
        ...


def check_data(
    x: ArrayLike, y: ArrayLike, validation: Pair = None
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Inputs (n, p) and outputs (n, d) as finite floats of at least two different samples; validation alike."""
    x = check_finite(check_shape(x, (None, None), "x"), "x")
    y = check_finite(check_shape(y, (None, None), "y"), "y")
    if len(x) != len(y):
        raise InputError(f"x has {len(x)} samples and y has {len(y)}. Pass one row of outputs for each row of inputs.")
    if not x.shape[1] or not y.shape[1]:
        raise InputError(f"x has shape {x.shape} and y has shape {y.shape}. A map needs an input and an output.")
    if len(x) < 2:
        raise InputError(f"a map cannot be fitted to {len(x)} sample{'' if len(x) else 's'}. Pass at least 2.")
    if not np.any(np.ptp(x, axis=0)):
        raise InputError(f"all {len(x)} rows of x are the same. Pass samples of different parameters.")
    if validation is None:
        return x, y, None
    try:
        x_val, y_val = validation
    except (TypeError, ValueError):
        raise InputError("validation must be a pair (x, y) of inputs and outputs.") from None
    x_val = check_finite(check_shape(x_val, (None, x.shape[1]), "validation x"), "validation x")
    y_val = check_finite(check_shape(y_val, (len(x_val), y.shape[1]), "validation y"), "validation y")
    if not len(x_val):
        raise InputError("validation has no samples. Pass some, or validation=None to leave one out instead.")
    return x, y, (x_val, y_val)


def fit_map(recipe, x, y, *, validation=None, progress=None, rng=0):
    """`recipe.fit(x, y)` of a copy of the recipe, with those of the options that its `fit` knows.

    A regressor that keeps what it learned in itself, as scikit-learn's do, is thereby left as it was.
    """
    if not callable(getattr(recipe, "fit", None)):
        raise InputError(f"{recipe!r} is no recipe: it has no method fit(x, y).")
    given = {"validation": validation, "progress": progress, "rng": rng}
    recipe = copy.deepcopy(recipe)
    try:
        known = inspect.signature(recipe.fit).parameters
    except (TypeError, ValueError):  # compiled code without a signature
        known = {}
    fitted = recipe.fit(x, y, **{name: value for name, value in given.items() if name in known})
    if not callable(getattr(fitted, "predict", None)):
        raise InputError(
            f"fit of {type(recipe).__name__} returned {type(fitted).__name__}, which has no method predict(x)."
        )
    return fitted


def predictions(fitted, x: np.ndarray, n_outputs: int) -> np.ndarray:
    """What a regressor from anywhere predicts, as floats (n, n_outputs)."""
    out = np.asarray(fitted.predict(x), dtype=float)
    if out.ndim == 1 and n_outputs == 1:  # scikit-learn drops the axis of a single output
        out = out[:, None]
    return check_shape(out, (len(x), n_outputs), "the prediction")

"""The maps by name."""

from __future__ import annotations

import warnings

from parasol.errors import InputError, ParasolWarning, did_you_mean
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.kernel_ridge import KernelRidge
from parasol.fitting.linear import Linear
from parasol.fitting.maps import Recipe
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.training import NetworkRecipe

RECIPES = {
    "best": NetworkRecipe.best,
    "compact": NetworkRecipe.compact,
    "paper": NetworkRecipe.paper,
    "polynomial": Polynomial,
    "gaussian process": GaussianProcess,
    "kernel ridge": KernelRidge,
    "linear": Linear,
}


def recipe_named(recipe: str | Recipe) -> Recipe:
    """A recipe by its name; anything with `fit` and `predict` passes through as it is.

    >>> type(recipe_named("linear")).__name__
    'Linear'
    """
    names = ", ".join(RECIPES)
    if not isinstance(recipe, str):
        if callable(getattr(recipe, "fit", None)):
            if callable(getattr(recipe, "predict", None)):  # it will be its own map, as scikit-learn's regressors are
                warnings.warn(
                    f"a surrogate with a {type(recipe).__name__} stays in this process: it cannot be saved, exported or "
                    f"explored. For a file use one of: {names}.",
                    ParasolWarning,
                    stacklevel=3,
                )
            return recipe
        raise InputError(f"recipe is {type(recipe).__name__}, which has no fit. Use one of: {names}.")
    if recipe == "random features":
        raise InputError('recipe="random features" was removed in version 0.2. Use "polynomial" or "gaussian process".')
    if recipe not in RECIPES:
        near = did_you_mean(recipe, RECIPES)
        raise InputError(f"recipe={recipe!r} is unknown. {near}Use one of: {names}, or an object with fit and predict.")
    return RECIPES[recipe]()

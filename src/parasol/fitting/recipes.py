"""The maps by name."""

from __future__ import annotations

from parasol.checks import ParasolError


def recipe_named(recipe):
    """A recipe by its name; anything with `fit` and `predict` passes through as it is.

    >>> type(recipe_named("linear")).__name__
    'Linear'
    """
    if not isinstance(recipe, str):
        if callable(getattr(recipe, "fit", None)):
            return recipe
        raise ParasolError(f"recipe is {type(recipe).__name__}, which has no fit. Use one of: {', '.join(RECIPES)}.")
    if recipe not in RECIPES:
        raise ParasolError(
            f"recipe={recipe!r} is unknown. Use one of: {', '.join(RECIPES)}, or an object with fit and predict."
        )
    return RECIPES[recipe]()


def _linear():
    from parasol.fitting.linear import Linear

    return Linear()


def _polynomial():
    from parasol.fitting.polynomial import Polynomial

    return Polynomial()


def _process():
    from parasol.fitting.kernel import GaussianProcess

    return GaussianProcess()


def _features():
    from parasol.fitting.random_features import RandomFeatures

    return RandomFeatures()


def _network(preset: str):
    def make():
        from parasol.fitting.training import NetworkRecipe

        return getattr(NetworkRecipe, preset)()

    return make


RECIPES = {
    "best": _network("best"),
    "compact": _network("compact"),
    "paper": _network("paper"),
    "random features": _features,
    "polynomial": _polynomial,
    "gaussian process": _process,
    "linear": _linear,
}

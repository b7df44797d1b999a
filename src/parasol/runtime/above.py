"""What answers can be asked for that needs more than NumPy: one table of functions in the rooms above."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from parasol.errors import NotInstalled

_ABOVE = {  # name: module, function, what it does
    "html": ("parasol.report.notebook", "html", "showing it in a notebook"),
    "problem_html": ("parasol.report.problems", "problem_html", "showing it in a notebook"),
    "plot_answer": ("parasol.report.figures", "plot_answer", "drawing"),
    "draw": ("parasol.report.figures", "draw", "drawing"),
    "view": ("parasol.report.cards", "view", "showing it in a notebook"),
    "notebook_progress": ("parasol.report.progress", "notebook_progress", "showing progress"),
    "to_xarray": ("parasol.delivery.datasets", "to_xarray", "an xarray dataset"),
    "to_pandas": ("parasol.delivery.datasets", "to_pandas", "a pandas table"),
    "as_jax": ("parasol.delivery.functions", "as_jax", "a JAX function"),
    "as_torch": ("parasol.delivery.functions", "as_torch", "a PyTorch function"),
    "updated": ("parasol.learning.adding", "updated", "learning again"),
    "interpolation_weights": ("parasol.space.interpolation", "interpolation_weights", "answering between nodes"),
    "fitted_sums": ("parasol.fitting.matrix_functions", "fitted_sums", "a reduced model of operator(mu)"),
    "weights_by_region": ("parasol.space.interpolation", "weights_by_region", "answering between nodes"),
    "Scheme": ("parasol.space.stencils", "Scheme", "reading its stencils"),
    **{
        name: ("parasol.space.kernels", name, "reading its stencils")
        for name in ("IMQ", "MQ", "IQ", "Gaussian", "PHS", "Matern", "Wendland")
    },
    "csr_array": ("scipy.sparse", "csr_array", "a sparse matrix"),
}


def borrowed(name: str) -> Any:
    """A function or class of a room above, imported when first used; where a package is missing, one line says which."""
    module, attribute, purpose = _ABOVE[name]
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise NotInstalled(
            f"{purpose} needs {error.name}, which is not installed. Use pip install {error.name}."
        ) from None

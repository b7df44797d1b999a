"""A surrogate as a function of JAX or PyTorch: compiled, differentiated, on a GPU, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np

from parasol.checks import check_choice
from parasol.delivery.onnx_export import check_dense
from parasol.delivery.traced import Library, Traced, jax_library, required, torch_library
from parasol.errors import InputError
from parasol.runtime.expansions import KERNELS, Radial, distances
from parasol.runtime.operation import Operation
from parasol.runtime.operations import Affine, Sum
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.surrogate import Surrogate

OUTPUTS = ("values", "quantities", "coefficients")
_APART = 1e-16  # added to squared distances: √s has no derivative at 0, where a point meets a centre


def as_jax(surrogate: Surrogate, output: str = "values", *, extrapolate: bool = False) -> Callable[[Any], Any]:
    """The surrogate as a JAX function of parameters (n_parameters,) or (n_samples, n_parameters), in float64.

    It gives the `output`: "values" (n_values,), "coefficients" (n_modes,), or "quantities", a dict of numbers (with an axis of
    times in time) by name; with an axis of samples first where there are several. It is compiled, may be differentiated, mapped
    and compiled with more (grad, jacfwd, hessian, vmap, jit), and runs where JAX runs. A compiled function cannot refuse: outside the box,
    unless `extrapolate` is True, and between choices it gives NaN, in value and derivative.

    >>> import jax
    >>> from parasol.fitting.data import fit_snapshots
    >>> mus = np.linspace(0, 1, 9)[:, None]
    >>> parabola = fit_snapshots(mus, mus**2 * [1.0, 2.0], "polynomial", level=None)
    >>> with jax.enable_x64(True):
    ...     jax.jacfwd(as_jax(parabola))(np.array([0.5])).round(9).tolist()
    [[1.0], [2.0]]
    """
    check_choice(output, OUTPUTS, "output")
    jax, library = required("jax"), jax_library()
    compiled = jax.jit(partial(_evaluation(surrogate, output, extrapolate, _lifting(surrogate)), library))

    def function(mu: Any) -> Any:
        if not jax.config.jax_enable_x64:
            raise InputError(
                'as_jax computes in float64, which JAX has switched off. Use jax.config.update("jax_enable_x64", True).'
            )
        return compiled(jax.numpy.asarray(mu, dtype=float))

    return function


def as_torch(surrogate: Surrogate, output: str = "values", *, extrapolate: bool = False) -> Callable[[Any], Any]:
    """The surrogate as a PyTorch function of a tensor of parameters, on its device, in float64, with derivatives by autograd.

    What it takes and gives is that of `as_jax`; torch.func (vmap, jacrev, hessian) works on it too.
    """
    check_choice(output, OUTPUTS, "output")
    torch = required("torch")
    lifting, libraries = _lifting(surrogate), {}
    evaluate = _evaluation(surrogate, output, extrapolate, lifting)
    layers = () if surrogate.map is None else surrogate.program.all_operations
    large = (lifting, *[op._columns for op in layers if isinstance(op, Affine) and not op.is_sparse])

    def function(mu: Any) -> Any:
        mu = torch.as_tensor(mu).to(torch.float64)
        if mu.device not in libraries:
            libraries[mu.device] = torch_library(mu.device, large)
        return evaluate(libraries[mu.device], mu)

    return function


def _lifting(surrogate: Surrogate) -> np.ndarray:
    """What coefficients are multiplied by, (n_modes, n_values)."""
    return np.ascontiguousarray((surrogate.basis.modes if surrogate.readout is None else surrogate.readout).T)


def _evaluation(
    surrogate: Surrogate, output: str, extrapolate: bool, lifting: np.ndarray
) -> Callable[[Library, Any], Any]:
    """The function of an array of some library."""
    parts = [surrogate]
    if output == "quantities":  # those that are no functionals of the field have a map of their own
        parts = [part for part in (surrogate, surrogate.scalars) if part is not None and part.quantities is not None]
        if not parts:
            raise InputError("this surrogate has no quantities. Name some in the problem, or ask for its values.")
    for part in parts:
        if part.map is not None:
            check_dense(part.program)

    def evaluate(library: Library, mu: Any) -> Any:
        if mu.ndim not in (1, 2) or mu.shape[-1] != surrogate.n_parameters:
            raise InputError(
                f"mu has shape {tuple(mu.shape)}, expected ({surrogate.n_parameters},) or (n_samples, {surrogate.n_parameters})."
            )
        single = mu.ndim == 1
        mus = Traced(mu[None] if single else mu, library)
        of_parts = [_coefficients_or_nan(part, mus, extrapolate) for part in parts]
        if output == "quantities":
            quantities = [_quantities(part, mus, c) for part, c in zip(parts, of_parts, strict=True)]
            return {name: (q[0] if single else q).value for own in quantities for name, q in own.items()}
        (c,) = of_parts
        out = c if output == "coefficients" else c @ lifting
        return (out[0] if single else out).value

    return evaluate


def _coefficients_or_nan(surrogate: Surrogate, mus: Traced, extrapolate: bool) -> Any:
    """c(μ), not a number where a surrogate would refuse to answer."""
    c = coefficients(surrogate, mus)
    c = c if isinstance(c, Traced) else c + 0.0 * mus[:, :1]  # of a map that is constant
    for known in _known(surrogate.parameters, mus, extrapolate):
        c = c * np.where(known, 1.0, np.nan)[:, None]  # a factor, so that derivatives are not numbers either
    return c


def _known(space: ParameterSpace, mus: Any, extrapolate: bool) -> Iterator[Any]:
    """Which of the vectors a surrogate would not refuse, (n_samples,) bool, one reason after the other."""
    if not extrapolate:
        yield space.inside(mus)
    for j, p in enumerate(space.scalars):
        if p.choices:
            yield np.min(np.abs(mus[:, j, None] - np.asarray(p.choices)) / p.misses, axis=1) <= 1.0


def coefficients(surrogate: Surrogate, mus: Traced) -> Any:
    """c(μ), (n_samples, n_modes), of the map or of the reduced model."""
    if surrogate.map is None:
        assert surrogate.reduced is not None
        return _by_reduced_model(surrogate.reduced, mus)
    return _run(surrogate.program.operations, mus)


def _run(operations: tuple[Operation, ...], x: Any) -> Any:
    """One operation after the other, each as it is written for NumPy but for what other libraries lack."""
    for op in operations:
        if isinstance(op, Sum):
            x = reduce(np.add, [_run(branch, x) for branch in op.branches])
        elif isinstance(op, Affine) and op.is_sparse:
            x = Affine(op.dense, op.bias)(x)
        elif isinstance(op, Radial) and op.name.startswith("matern"):
            x = KERNELS[op.name].value(distances(x / op.lengths, op.centres / op.lengths) + _APART)
        else:
            x = op(x)
    return x


def _by_reduced_model(reduced: ReducedModel, mus: Any) -> Any:
    """Solutions with all preconditioners, of which each sample takes the one that NumPy would."""
    theta, phi = reduced.operator_theta(mus), reduced.load_theta(mus)
    choice, out = reduced.choice(theta), None
    for k, residual in enumerate(reduced.residuals):
        c = residual.solve(theta, phi)
        out = c if out is None else np.where((choice == k)[:, None], c, out)
    return out


def _quantities(surrogate: Surrogate, mus: Any, c: Any) -> dict[str, Any]:
    """As `answer.quantities`: corrected by the residual where there are duals for that."""
    known, reduced = surrogate.quantities, surrogate.reduced
    assert known is not None
    quantities = known(c, mus)  # (n_quantities, n_samples, n_times)
    if reduced is not None and reduced.duals is not None and reduced.duals.corrects(known.rows[:, 0]):
        theta, phi = reduced.operator_theta(mus), reduced.load_theta(mus)
        quantities[:, :, 0] += reduced.duals.corrections(theta, phi, c, known.weighting(mus)).values.T
    quantities = quantities[:, :, 0] if surrogate.layout.times is None else quantities
    return {name: quantities[i] for i, name in enumerate(known.names)}

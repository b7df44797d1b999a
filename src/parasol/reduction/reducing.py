"""One verb for all models: `reduce`."""

from __future__ import annotations

from typing import overload

import numpy as np

from parasol.checks import Progress
from parasol.errors import InputError
from parasol.pde.model import Model
from parasol.reduction.energy import energy_preparation
from parasol.reduction.in_time import TimeReducedModel, reduce_trajectories
from parasol.reduction.nonlinear import NonlinearReducedModel, reduce_nonlinear
from parasol.reduction.reduced import modes_on_unknowns, reduce_linear
from parasol.reduction.snapshots import Snapshots
from parasol.runtime.basis import Basis
from parasol.runtime.reduced import ReducedModel

_OPTIONS = {  # besides the tolerance
    "steady and linear": ("weighting", "n_anchors", "progress"),
    "nonlinear": (),
    "in time": ("projection", "n_steps"),
}


@overload
def reduce(
    model: Model,
    basis: Basis,
    *,
    tolerance: float | None = None,
    weighting: str | None = None,
    n_anchors: int | None = None,
    progress: Progress = None,
) -> ReducedModel: ...
@overload
def reduce(
    model: Model,
    basis: Basis,
    snapshots: Snapshots,
    *,
    tolerance: float | None = None,
    weighting: str | None = None,
    n_anchors: int | None = None,
    projection: str | None = None,
    n_steps: int | None = None,
    progress: Progress = None,
) -> ReducedModel | NonlinearReducedModel | TimeReducedModel: ...
def reduce(
    model: Model,
    basis: Basis,
    snapshots: Snapshots | None = None,
    *,
    tolerance: float | None = None,
    weighting: str | None = None,
    n_anchors: int | None = None,
    projection: str | None = None,
    n_steps: int | None = None,
    progress: Progress = None,
) -> ReducedModel | NonlinearReducedModel | TimeReducedModel:
    """The reduced model of a model in a basis: its coefficients come at a cost that does not know the number of nodes.

    What it is depends on the model:

    - steady and linear: a `ReducedModel`, with error bounds (`reduce_linear`). Coefficients that the equation does not
      separate are interpolated to `tolerance` (1e-10). Options: `weighting`, `n_anchors`, `progress`.
    - steady and nonlinear: a `NonlinearReducedModel`, Newton's method in few rows (`reduce_nonlinear`). It needs the
      `snapshots` behind the basis. The nonlinear part is fitted to `tolerance`, by default a hundredth of what the
      basis leaves.
    - in time: a `TimeReducedModel`, the full model's steps with few modes (`reduce_trajectories`). It needs the
      `snapshots`, and a basis in space (`ps.reduction.space_basis`). The nonlinear part and the steps are fitted to
      `tolerance`, by default what the basis leaves. Options: `projection`, `n_steps`.

    >>> import parasol as ps
    >>> x, y = ps.coordinates("x y")
    >>> u, (a,) = ps.unknown("u", x, y), ps.parameters(a=(1.0, 2.0))
    >>> problem = ps.Problem(ps.Disc(), ps.Eq(ps.laplacian(u), u**3 - a**3), ps.Dirichlet(a))  # the solution is a
    >>> model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    >>> snapshots = ps.solve_many(model, [[1.0], [2.0]])
    >>> reduced = ps.reduce(model, ps.pod(snapshots, n_modes=1), snapshots)
    >>> bool(abs(reduced.solve([[1.5]]).values - 1.5).max() < 1e-8)
    True
    """
    modes_on_unknowns(model, basis)  # refuses what does not fit
    kind = "steady and linear"
    if model.problem.time is not None or model.terms.nonlinear:
        kind = "nonlinear" if model.problem.time is None else "in time"
    every = {"weighting": weighting, "n_anchors": n_anchors, "progress": progress}
    every |= {"projection": projection, "n_steps": n_steps}
    options = {name: value for name, value in every.items() if value is not None}
    for name in options:
        if name not in _OPTIONS[kind]:
            known = ", ".join(("tolerance", *_OPTIONS[kind]))
            raise InputError(f"{name} is no option for a model that is {kind}. Its options are: {known}.")
    if kind == "steady and linear":
        prepared = energy_preparation(model, basis.weights) if weighting in (None, "solve") else None
        modes = modes_on_unknowns(model, basis)
        if prepared is not None and not np.any(modes[model.terms.pattern.stated]):  # there nothing but 0 is right
            return prepared.reduced(basis, prepared.builders(modes))
        return reduce_linear(model, basis, tolerance=1e-10 if tolerance is None else tolerance, **options)
    if snapshots is None:
        raise InputError(
            f"the model is {kind}: how its terms behave is learnt from solutions. Use ps.reduce(model, basis, snapshots)."
        )
    if kind == "nonlinear":
        return reduce_nonlinear(model, snapshots, basis, tolerance=tolerance)
    return reduce_trajectories(model, basis, snapshots, tolerance=tolerance, **options)

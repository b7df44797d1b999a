"""A reduced model that grows where an estimate of its errors is largest: no constants, few factorisations besides the solves."""

from __future__ import annotations

import numpy as np

from parasol.checks import check_count
from parasol.pde.model import Model
from parasol.reduction.affine import AffineForm, affine_form
from parasol.reduction.duals import N_VECTORS, DualBuilder
from parasol.reduction.products import root_of
from parasol.reduction.reduced import assembled, candidates_for
from parasol.reduction.residuals import ResidualBuilder
from parasol.runtime.basis import Basis
from parasol.runtime.duals import RandomDuals
from parasol.runtime.products import MatrixProduct, Weights
from parasol.runtime.reduced import ReducedModel

_INTERPOLATED = 1e-10  # relative error of coefficients that do not separate
_CLOSE = 0.03  # at every candidate P_μ A_μ should be as near as this to the identity on the modes
_MOST_SNAPSHOTS, _MOST_FURTHER = 40, 12  # duals at so many parameters at most; of these where nothing was solved
_MOST_PRECONDITIONERS = 8
_N_WATCHED = 256  # candidates that are looked at after every solve
_ALIKE = 0.7  # one inverse by itself serves where what it leaves of the identity is less


class ByEstimate:
    """A reduced model that grows; the error of its answers is estimated by random duals.

    Duals and preconditioners are made at parameters that are solved anyway, with the same factors, until inverses can be
    interpolated well at all candidates.
    """

    def __init__(
        self,
        model: Model,
        *,
        weights: Weights | None = None,
        n_vectors: int = N_VECTORS,
        rng: int = 0,
        attempt: int = 0,
    ):
        """`weights` (n_values,) is the inner product; another `attempt` chooses as the first did, and has sealed vectors of its own."""
        check_count(n_vectors, "n_vectors")
        self.model, self.weights, self.n_factorizations = model, weights, 0
        self.form: AffineForm = affine_form(model, tolerance=_INTERPOLATED)
        self.root = root_of(model, weights)
        seen = self.root if isinstance(weights, MatrixProduct) else root_of(model, weights, ghosts=False)
        generator = np.random.default_rng([rng, 73])
        outputs = mixing = None
        if model.problem.quantities:
            rows, mixing = model.quantities.rows, model.quantities.mixing
            outputs = model.layout.unknowns(rows, np.zeros((len(rows), model.n_unknowns - rows.shape[1])))
        sealed = np.random.default_rng([rng, 73, attempt]) if attempt else None
        self.duals = DualBuilder(self.form, seen, self.root.scale, generator, n_vectors, outputs, mixing, sealed)
        self.builders: list[ResidualBuilder] = []
        self.candidates = candidates_for(model)
        self._theta = self.form.operator_theta(self.candidates)
        self._some = self._theta[:: max(1, len(self._theta) // _N_WATCHED)]
        self._missed = 1.0  # how far P_μ A_μ is from the identity at the worst of the candidates

    def add(self, mu: np.ndarray, mode: np.ndarray) -> None:
        """Append a mode (n_unknowns,), which the solution at mu has brought; duals and a preconditioner there if it needs them."""
        for builder in self.builders:
            builder.add(mode)
        self.duals.add_mode(mode)
        lonely = self._lonely(mu)
        if not self.duals.mus or lonely or (self._missed > _CLOSE and len(self.duals.mus) < _MOST_SNAPSHOTS):
            factors = self.model.factors(mu)
            self.duals.add_snapshot(mu, factors)
            if lonely:
                builder = ResidualBuilder(self.form, mu, factors, None, self.root)
                builder.add(*self.duals.modes.T)
                self.builders.append(builder)
        self._missed = float(np.max(self.duals.steering().inverses(self._some)[1]))

    @property
    def missed(self) -> float:
        """How far the interpolated inverse is from the inverse on the modes, relative, at the worst of the candidates."""
        return self._missed

    def _lonely(self, mu: np.ndarray) -> bool:
        """Whether no preconditioner is near to the inverse at mu."""
        if not self.builders:
            return True
        if len(self.builders) >= _MOST_PRECONDITIONERS:
            return False
        duals = self.duals.steering()
        return bool(duals.alone(self.form.operator_theta(mu[None]), self._places(duals))[0] > _ALIKE)

    def _places(self, duals: RandomDuals) -> np.ndarray:
        return np.array([int(np.flatnonzero(np.all(duals.mus == b.mu, axis=1))[0]) for b in self.builders])

    def complete(self, close: float = _CLOSE) -> None:
        """Factorise further matrices where inverses are not interpolated as closely, the worst candidate first."""
        for _ in range(_MOST_FURTHER):
            missed = self.duals.steering().inverses(self._theta)[1]
            worst = int(np.argmax(missed))
            self._missed = float(missed[worst])
            if self._missed <= close or len(self.duals.mus) >= _MOST_SNAPSHOTS + _MOST_FURTHER:
                return
            mu = self.candidates[worst]
            self.duals.add_snapshot(mu, self.model.factors(mu))
            self.n_factorizations += 1
        self._missed = float(np.max(self.duals.steering().inverses(self._theta)[1]))

    @property
    def n_triangular(self) -> int:
        """Triangular solves with factors at hand, so far."""
        return self.duals.n_triangular + sum(builder.n_triangular for builder in self.builders)

    def reduced(self, basis: Basis) -> ReducedModel:
        """The reduced model of the modes so far, which the basis holds, with the steering duals."""
        return assembled(self.model, self.form, basis, self.builders, duals=self.duals.steering())

    def sealed(self, basis: Basis) -> ReducedModel:
        """The same with the sealed duals: for whoever decides nothing more by them."""
        return assembled(self.model, self.form, basis, self.builders, duals=self.duals.sealed())

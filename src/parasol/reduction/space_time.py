"""A linear problem in time as one affine system for all its steps: S(mu) U = F(mu), solved by marching, also backwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import sympy
from scipy import sparse

from parasol.errors import NoCertificate
from parasol.expressions import as_formula, as_function
from parasol.pde.esdirk import PLACES, STAGES
from parasol.pde.integrators import Rows
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.rows import Varying
from parasol.pde.sparse_direct import Factors, factorize
from parasol.reduction.affine import AffineForm, separated_operators
from parasol.reduction.constraints import INSTEAD, stored_times
from parasol.reduction.interpolation import interpolate
from parasol.reduction.products import Root, root_of_weights
from parasol.runtime.products import Weights, repeated
from parasol.runtime.rows import ScalarFunction
from parasol.runtime.theta import Theta

_FINE = 1e-10  # to which loads and starts that the equation does not separate are interpolated
_N_SAMPLES = 200
_MOST_SAMPLED = 3e7  # numbers of a load at all times, rows and samples


@dataclass(frozen=True, eq=False)
class Grid:
    """Steps of ESDIRK4 that meet all stored times, the first one divided by halving: there solutions change fastest.

    Blocks of unknowns: the start, then the five implicit stages of each step, of which the last is the state after it.
    """

    times: np.ndarray  # (n_blocks,)
    in_time: sparse.csr_array  # D, (n_blocks, n_blocks): what multiplies M u
    weights: sparse.csr_array  # H, (n_blocks, n_blocks): what multiplies K u and f in equations with a time derivative
    stored: np.ndarray  # (n_times,) blocks that are stored

    @classmethod
    def of(cls, times: np.ndarray, per_interval: int, halvings: int) -> Grid:
        """`per_interval` steps between stored times, the first of all of them halved so many times."""
        ends = np.concatenate([[times[0]], *[np.linspace(a, b, per_interval + 1)[1:] for a, b in pairwise(times)]])
        first = ends[0] + (ends[1] - ends[0]) * 0.5 ** np.arange(halvings, 0, -1)
        return cls.between(np.concatenate([ends[:1], first, ends[1:]]), times)

    @classmethod
    def between(cls, ends: np.ndarray, times: np.ndarray) -> Grid:
        """The steps between `ends`, among which all stored `times` are."""
        n_steps, n_stages = len(ends) - 1, len(PLACES) - 1
        n = 1 + n_steps * n_stages
        in_time, weights = sparse.lil_array((n, n)), sparse.lil_array((n, n))
        in_time[0, 0], when = 1.0, [ends[0]]
        for k in range(n_steps):
            before, h = k * n_stages, float(ends[k + 1] - ends[k])
            h = float(
                np.round(h, 12 - int(np.floor(np.log10(h))))
            )  # steps that are equal but for rounding share factors
            for i in range(1, n_stages + 1):
                in_time[before + i, before + i], in_time[before + i, before] = 1.0, -1.0
                weights[before + i, before : before + i + 1] = h * STAGES[i, : i + 1]
            when.extend(ends[k] + h * PLACES[1:])
        stored = n_stages * np.argmin(np.abs(ends[None, :] - np.asarray(times)[:, None]), axis=1)
        return cls(np.array(when), in_time.tocsr(), weights.tocsr(), stored)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.times)

    def finer(self) -> Grid:
        """Two steps for each."""
        ends = self.times[:: len(PLACES) - 1]
        both = np.sort(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))
        return Grid.between(both, self.times[self.stored])


class BlockMatrix:
    """Σ T ⊗ B of matrices T in time and B in space, with `@` for vectors (n_blocks * n,) and columns of them."""

    def __init__(self, parts: list[tuple[sparse.csr_array, sparse.csr_array]]):
        self.parts = parts

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        out = np.zeros(x.shape)
        for time, space in self.parts:
            b, n = time.shape[0], space.shape[0]
            m = x.size // (b * n)
            applied = space @ x.reshape(b, n, m).transpose(1, 0, 2).reshape(n, b * m)
            out += (time @ applied.reshape(n, b, m).transpose(1, 0, 2).reshape(b, n * m)).reshape(x.shape)
        return out

    @property
    def T(self) -> BlockMatrix:
        """The transposed matrix."""
        return BlockMatrix([(time.T.tocsr(), space.T.tocsr()) for time, space in self.parts])

    def __abs__(self) -> BlockMatrix:
        return BlockMatrix([(abs(time), abs(space)) for time, space in self.parts])


class Marching:
    """The inverse of S(mu) by steps: forwards, and of its transpose backwards."""

    refines = False  # the difference to the model's own steps is far above rounding

    def __init__(self, grid: Grid, model: Model, mu: np.ndarray):
        rows = Rows.of(model.system(mu))
        system = rows.system
        held = rows.constrained[rows.of_entry]
        self.grid = grid
        self._damping = rows.damping
        self._moving, fixed = (system.matrix(np.where(some, system.stiffness, 0.0)) for some in (~held, held))
        eye = sparse.eye_array(grid.n_blocks, format="csr")
        self.matrix = BlockMatrix([(grid.in_time, self._damping), (grid.weights, self._moving), (eye, fixed)])
        known: dict[float, Factors] = {}
        for weight in np.unique(grid.weights.diagonal()).tolist():
            entries = np.where(held, system.stiffness, system.damping + weight * system.stiffness)
            known[weight] = factorize(system.pattern, entries, backend=system.solver)
        self._factors = [known[weight] for weight in grid.weights.diagonal().tolist()]

    def solve(self, right: np.ndarray) -> np.ndarray:
        """S⁻¹ right, (n_blocks * n,) or (n_blocks * n, m)."""
        lower = [sparse.tril(part, -1, format="csr") for part in (self.grid.in_time, self.grid.weights)]
        solvers = [factors.solve for factors in self._factors]
        return _substituted(range(self.grid.n_blocks), lower, [self._damping, self._moving], solvers, right)

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """S⁻ᵀ right."""
        upper = [sparse.tril(part, -1, format="csr").T.tocsr() for part in (self.grid.in_time, self.grid.weights)]
        solvers = [factors.solve_transposed for factors in self._factors]
        matrices = [self._damping.T.tocsr(), self._moving.T.tocsr()]
        return _substituted(range(self.grid.n_blocks - 1, -1, -1), upper, matrices, solvers, right)


def _substituted(order: range, coupling, matrices, solvers, right: np.ndarray) -> np.ndarray:
    """Blocks one after the other: x_b = A_b⁻¹ (r_b − Σ_p B_p Σ_j T_p[b, j] x_j)."""
    n = matrices[0].shape[0]
    blocks = right.reshape(len(order), n, -1)
    out = np.empty(blocks.shape)
    for b in order:
        left = blocks[b].copy()
        for time, space in zip(coupling, matrices, strict=True):
            at = slice(time.indptr[b], time.indptr[b + 1])
            if at.stop > at.start:
                left -= space @ np.tensordot(time.data[at], out[time.indices[at]], axes=1)
        out[b] = solvers[b](left)
    return out.reshape(right.shape)


class StoredRoot:
    """The root of an inner product over the values at nodes and stored times; all other unknowns do not count."""

    def __init__(self, system: SpaceTime, weights: Weights | None):
        n_values, n_times = len(system.model.problem.names) * system.model.n_nodes, len(system.grid.stored)
        self.inner: Root = root_of_weights(repeated(weights, n_times), n_times * n_values)
        self.system = system
        self.scale = np.ones(system.n_unknowns)
        self.scale[:] = np.sqrt(np.mean(self.inner.scale**2))  # of an average value, for unknowns of any kind

    def into(self, u: np.ndarray) -> np.ndarray:
        """R u."""
        return self.inner.into(self.system.values(u.T).T)

    def into_transposed(self, w: np.ndarray) -> np.ndarray:
        """Rᵀ w, of as many numbers as there are unknowns, of which those of values count."""
        return self.system.unknowns(self.inner.into_transposed(self.system.values(w.T).T).T).T


@dataclass(frozen=True, eq=False)
class SpaceTime:
    """M u' + K u = f of a model, by the steps of a grid: blocks of unknowns U with S(μ) U = F(μ), both affine.

    Rows with a time derivative:  M (U_i − u) + h Σ_j a_ij (K U_j − f_j) = 0  for the stages i of a step from u; the others,
    and those of the start, hold at the time of their block.
    """

    model: Model
    grid: Grid

    def __post_init__(self):
        model = self.model
        rows = Rows.of(model.system(model.vector()))
        if np.any(rows.second) or model.terms.nonlinear or model.parameters.functions:
            raise NoCertificate(f"steps are no affine system: there is u'', a nonlinear term or a function. {INSTEAD}.")
        if any(form.leading_moves for form in model.problem.forms) or (
            not isinstance(model, AffineModel) and model.jumps
        ):
            raise NoCertificate(f"a coefficient of u' depends on time, or values jump. {INSTEAD}.")

    @property
    def parameters(self):
        """Those of the model."""
        return self.model.parameters

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return self.model.n_parameters

    @property
    def n_unknowns(self) -> int:
        """Unknowns of all blocks."""
        return self.grid.n_blocks * self.model.n_unknowns

    def factors(self, mu: np.ndarray) -> Marching:
        """What solves with S(mu) and its transpose."""
        return Marching(self.grid, self.model, mu)

    def values(self, unknowns: np.ndarray) -> np.ndarray:
        """Values at nodes and stored times, (..., n_times * n_values), of unknowns (..., n_unknowns)."""
        blocks = unknowns.reshape(*unknowns.shape[:-1], self.grid.n_blocks, -1)[..., self.grid.stored, :]
        return self.model.layout.at_nodes(blocks).reshape(*unknowns.shape[:-1], -1)

    def unknowns(self, values: np.ndarray) -> np.ndarray:
        """The unknowns with these values, and 0 elsewhere: (..., n_unknowns)."""
        layout, shape = self.model.layout, values.shape[:-1]
        at_nodes = values.reshape(*shape, len(self.grid.stored), -1)
        none = np.zeros((*at_nodes.shape[:-1], self.model.n_unknowns - at_nodes.shape[-1]))
        out = np.zeros((*shape, self.grid.n_blocks, self.model.n_unknowns))
        out[..., self.grid.stored, :] = layout.unknowns(at_nodes, none)
        return out.reshape(*shape, -1)

    @cached_property
    def held(self) -> np.ndarray:
        """(n,) bool: equations without a time derivative."""
        return Rows.of(self.model.system(self.model.vector())).constrained

    @cached_property
    def form(self) -> AffineForm:
        """S and F as sums of functions of μ times fixed matrices and vectors."""
        model, grid, terms = self.model, self.grid, self.model.terms
        scalars = model.inputs.scalars
        mus = model.sample(_N_SAMPLES, rng=0)
        stiffness, rows, errors = separated_operators(model, mus, _FINE)
        damping = [terms.matrix(entries) for _, _, entries in terms.time_data]
        apart = [sparse.diags_array(some.astype(float)).tocsr() for some in (~self.held, self.held)]
        eye = sparse.eye_array(grid.n_blocks, format="csr")
        operators = [BlockMatrix([(grid.in_time, matrix)]) for matrix in damping]
        operators += [
            BlockMatrix([(grid.weights, (apart[0] @ k).tocsr()), (eye, (apart[1] @ k).tocsr())]) for k in stiffness
        ]
        in_time = [as_formula(as_function(theta, scalars)) for _, theta, _ in terms.time_data]
        loads = [self._load(np.tile(f, (grid.n_blocks, 1))) for f in terms.loads]
        thetas: list[ScalarFunction] = [as_formula(f) for f in terms.theta_functions[1]]
        load_errors = [0.0] * len(loads)
        for part in terms.varying_load:
            moving_loads, formulas, error = self._moving_load(part, mus)
            loads += moving_loads
            thetas += formulas
            load_errors += [error] * len(moving_loads)
        start, formulas, error = self._start(damping, mus)
        loads, thetas, load_errors = loads + start, thetas + formulas, load_errors + [error] * len(start)
        if not loads:
            raise NoCertificate("there are no sources, boundary values or initial values: the solution is zero.")
        n = len(scalars)
        stiff = tuple(as_formula(f) for f in terms.theta_functions[0])
        return AffineForm(
            operators=tuple(operators),  # type: ignore[arg-type]
            loads=np.array(loads),
            operator_theta=Theta((*in_time, *stiff), tuple(rows), n),
            load_theta=Theta(tuple(thetas), (), n),
            operator_errors=np.array([0.0] * len(damping) + errors),
            load_errors=np.array(load_errors),
        )

    def _load(self, forces: np.ndarray) -> np.ndarray:
        """F of f at the times of the blocks, (n_blocks, n): (n_blocks * n,)."""
        return np.where(self.held, forces, self.grid.weights @ forces).ravel()

    def _moving_load(self, part: Varying, mus: np.ndarray) -> tuple[list[np.ndarray], list[ScalarFunction], float]:
        """A load that changes in time, or is not affine, by empirical interpolation over times and rows."""
        model, coefficient = self.model, part.coefficient
        function = coefficient.function
        symbols, n_columns = list(function.symbols), len(coefficient.columns)  # type: ignore[attr-defined]
        apart = set(symbols[:n_columns]) & function.expression.free_symbols
        few = part if apart else part.take(np.zeros(1, dtype=int))
        times, where = np.unique(self.grid.times, return_inverse=True)
        if len(mus) * len(times) * len(few.positions) > _MOST_SAMPLED:
            raise NoCertificate(f"a source depends on places, times and parameters at too many of them. {INSTEAD}.")
        values = np.stack([few.coefficient(mus, float(t)) for t in times], axis=1)  # (n_samples, n_times, n_rows)
        interpolation = interpolate(values.reshape(len(mus), -1), tolerance=_FINE)
        formulas = []
        for point in interpolation.points:
            k, row = divmod(int(point), len(few.positions))
            given = {s: sympy.Float(float(c[row])) for s, c in zip(symbols, few.coefficient.columns, strict=False)}
            if coefficient.n_times:
                given[symbols[n_columns + len(coefficient.places)]] = sympy.Float(float(times[k]))
            formulas.append(as_formula(as_function(function.expression.subs(given), model.inputs.scalars)))
        cardinal = interpolation.cardinal.T.reshape(interpolation.n_points, len(times), -1)
        loads = []
        for one in cardinal:
            forces = np.zeros((self.grid.n_blocks, model.n_unknowns))
            for b, k in enumerate(where):
                np.add.at(forces[b], part.positions, one[k] * part.values)
            loads.append(self._load(forces))
        return loads, formulas, max(interpolation.error, np.finfo(float).tiny) if loads else 0.0

    def _start(
        self, damping: list[sparse.csr_array], mus: np.ndarray
    ) -> tuple[list[np.ndarray], list[ScalarFunction], float]:
        """M g of the initial state g, in the rows of the first block."""
        model, scalars, error = self.model, self.model.inputs.scalars, 0.0
        if isinstance(model, AffineModel):
            state = model.start[0]
            vectors, thetas = state.vectors, [theta.expression for theta in state.thetas]
        else:
            vectors = np.nan_to_num(np.array([model.initial(mu)[0] for mu in mus]))
            states = [model.problem.initial_states[name][0] for name in model.problem.names]
            if not any(set(scalars) & state.free_symbols for state in states):
                vectors, thetas = vectors[:1], [sympy.Integer(1)]
            else:
                interpolation = interpolate(vectors, tolerance=_FINE)
                points, n = model.terms.pattern.points, model.n_unknowns // len(states)
                places = [
                    dict(zip(model.problem.coordinates, map(float, points[i]), strict=True))
                    for i in interpolation.points
                ]
                thetas = [states[i // n].subs(at) for i, at in zip(interpolation.points, places, strict=True)]
                vectors, error = interpolation.cardinal.T, max(interpolation.error, np.finfo(float).tiny)
        loads, formulas = [], []
        for vector, theta in zip(vectors, thetas, strict=True):
            for matrix, (_, factor, _) in zip(damping, model.terms.time_data, strict=True):
                load = np.zeros((self.grid.n_blocks, model.n_unknowns))
                load[0] = np.where(self.held, 0.0, matrix @ vector)
                if np.any(load):
                    loads.append(load.ravel())
                    formulas.append(as_formula(as_function(theta * factor, scalars)))
        return loads, formulas, error

    def solve(self, mu: np.ndarray, factors: Marching | None = None) -> np.ndarray:
        """U(μ), (n_unknowns,)."""
        return (factors or self.factors(mu)).solve(self.form.load_theta(mu[None])[0] @ self.form.loads)


def space_time(model: Model, per_interval: int = 1, halvings: int = 0) -> SpaceTime:
    """The steps of a linear model in time as one system, or an error where they are none."""
    return SpaceTime(model, Grid.of(stored_times(model), per_interval, halvings))

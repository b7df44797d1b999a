"""Sums Σ θ_q(μ) A_q fitted to samples of somebody's operator(mu): polynomials θ_q, tested at parameters they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from parasol.errors import NoCertificate
from parasol.fitting.polynomial import FittedPolynomial, Polynomial
from parasol.pde.matrix_functions import FunctionTerms
from parasol.pde.model import Model
from parasol.reduction.sampling import sample
from parasol.runtime.features import Features, features_of, wide_columns
from parasol.runtime.operations import Affine
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.program import Program
from parasol.runtime.ranges import ParameterRange

_FIRST, _MOST = 40, 1280  # parameters at which functions are evaluated for the fit, at first and at most
_N_CHOOSING, _N_FRESH = 30, 100  # others: those that choose a degree, and those that say how good it is in the end
_AIM, _WORST = 1e-8, 1e-5  # relative errors: with which the search ends, and beyond which there is no sum
_MOST_TERMS = 80
_NEW, _SMALL = 1e-13, 1e-10  # relative: what is left of a sample that the others span, and what a term may leave
_MARGIN = 2.0  # times the largest error at fresh parameters is allowed for elsewhere
_SHIFT = 3.0  # of factors, which are then between 1 and 5: an error of the factor is one of the whole


@dataclass(frozen=True, eq=False)
class FittedSum:
    """v(μ) ≈ v_0 + Σ_q θ_q(μ) v_q, with `theta` a program from μ to θ_1, θ_2 …"""

    constant: np.ndarray  # (n,): v_0
    vectors: np.ndarray  # (Q, n): v_q
    theta: Program | None  # None: nothing depends on μ
    error: float  # relative, of v_0 and of each factor, at the worst of fresh parameters; 0 where nothing was fitted

    @property
    def doubt(self) -> float:
        """The probability that another random parameter is worse than all the fresh ones: 1 / (n + 1)."""
        return 1.0 / (_N_FRESH + 1) if self.error else 0.0

    @property
    def errors(self) -> np.ndarray:
        """The error of each term, (1 + Q,)."""
        return np.full(1 + len(self.vectors), self.error)


_known: WeakKeyDictionary[FunctionTerms, tuple[FittedSum, FittedSum]] = WeakKeyDictionary()


def fitted_sums(model: Model, terms: FunctionTerms) -> tuple[FittedSum, FittedSum]:
    """The entries of A(μ) and f(μ) as sums, fitted once for each model; `NoCertificate` where they cannot be."""
    if model.parameters.functions:
        raise NoCertificate(
            f"operator(mu) depends on a function, {model.parameters.functions[0].name}: no sum of fixed matrices is fitted to "
            "that. Use ps.learn, which takes full solves."
        )
    if terms not in _known:
        rows = np.repeat(np.arange(model.n_unknowns), np.diff(terms.pattern.indptr))
        load = terms.functions.load
        fixed = None if callable(load) else terms.load(model.vector())
        _known[terms] = (
            _Samples(model.parameters, terms.operator_entries, rows, "operator(mu)").fitted(),
            FittedSum(fixed, np.empty((0, len(fixed))), None, 0.0)
            if fixed is not None
            else _Samples(model.parameters, terms.load, np.zeros(model.n_unknowns, dtype=int), "load(mu)").fitted(),
        )
    return _known[terms]


class _Samples:
    """Vectors v(μ) at some parameters, each as its coordinates in an orthonormal basis of them all."""

    def __init__(self, space: ParameterSpace, evaluate: Any, rows: np.ndarray, name: str):
        """`rows` (n,) says which entries are of one size: each counts relative to the largest of its row."""
        self.space, self.evaluate, self.name = space, evaluate, name
        looked = np.max(np.abs([evaluate(mu) for mu in sample(space, 4, design="random", rng=4)]), axis=0)
        largest = np.zeros(rows.max() + 1)
        np.maximum.at(largest, rows, looked)
        self.scale = np.where(largest > 0, largest, 1.0)[rows]
        self.basis = np.empty((0, len(rows)))
        self.size = 0.0

    def coordinates(self, mus: np.ndarray, *, grow: bool = True) -> tuple[np.ndarray, float]:
        """(n, n_basis), and the largest part that the basis does not have; where it may `grow` it gets what is missing."""
        coordinates, outside = [], 0.0
        for mu in mus:
            v = self.evaluate(mu) / self.scale
            self.size = max(self.size, float(np.linalg.norm(v)))
            c = self.basis @ v
            rest = v - c @ self.basis
            again = self.basis @ rest
            c, rest = c + again, rest - again @ self.basis
            left = float(np.linalg.norm(rest))
            if grow and left > _NEW * self.size:
                if len(self.basis) == _MOST_TERMS:
                    raise NoCertificate(
                        f"{self.name} is no sum of {_MOST_TERMS} fixed ones over this box. Narrow the ranges."
                    )
                self.basis, c, left = np.vstack([self.basis, rest / left]), np.append(c, left), 0.0
            coordinates.append(c)
            outside = max(outside, left)
        out = np.zeros((len(mus), len(self.basis)))
        for row, c in zip(out, coordinates, strict=True):
            row[: len(c)] = c
        return out, outside

    def fitted(self) -> FittedSum:
        """More samples, twice as many each time, until a polynomial follows those that it was not fitted to."""
        design = sample(self.space, _MOST, design="edges", rng=0)
        choosing = sample(self.space, _N_CHOOSING, design="random", rng=1)
        held, n, y = self.coordinates(choosing)[0], 0, np.empty((0, 0))
        best: tuple[float, Features, FittedPolynomial] | None = None
        while n < _MOST and (best is None or best[0] > _AIM * self.size):
            before = np.inf if best is None else best[0]
            first, n = n, min(max(_FIRST, 2 * n), _MOST)
            more = self.coordinates(design[first:n])[0]
            y, held = (np.pad(part, ((0, 0), (0, more.shape[1] - part.shape[1]))) for part in (y, held))
            y = np.vstack([y, more])
            tried: list[tuple[float, Features, FittedPolynomial]] = []
            for features in self._features(design):
                fitted = Polynomial().fit(features(design[:n]), y, validation=(features(choosing), held))
                gaps = np.linalg.norm(fitted.predict(features(choosing)) - held, axis=1)
                tried.append((float(np.max(gaps)), features, fitted))
            best = min(tried, key=lambda one: one[0])
            error = best[0]
            if n > 2 * _FIRST and error * (error / before) ** np.log2(_MOST / n) > _WORST * self.size:
                break  # at this rate the samples allowed will not do
        assert best is not None
        return self._sum(y, *best[1:])

    def _features(self, mus: np.ndarray) -> list[Features]:
        """Parameters as they are, and with logarithms where ranges are wide."""
        plain = ParameterSpace(tuple(ParameterRange(s.name, s.low, s.high) for s in self.space.scalars))
        both = [features_of(plain, mus), features_of(self.space, mus, more_logs=wide_columns(self.space))]
        return both if np.any(both[1].logs) else both[:1]

    def _sum(self, y: np.ndarray, features: Features, fitted: FittedPolynomial) -> FittedSum:
        """The sum in few directions, with factors between 1 and 5, and its errors at parameters that nothing has seen."""
        middle = y.mean(axis=0)
        _, sizes, directions = np.linalg.svd(y - middle, full_matrices=False)
        directions = directions[sizes > _SMALL * self.size]
        unit = max(self.size, np.finfo(float).tiny)
        shift = middle @ directions.T / unit - _SHIFT
        fresh = sample(self.space, _N_FRESH, design="random", rng=2)
        exact, outside = self.coordinates(fresh, grow=False)
        beyond = (exact - middle) - ((exact - middle) @ directions.T) @ directions
        outside = max(outside, float(np.max(np.linalg.norm(beyond, axis=1), initial=0.0)))
        error, theta = outside / unit, None
        if len(directions):
            into = Affine(directions / unit, -shift)  # from coordinates to factors
            theta = Program((*features.operations, *fitted.program.operations[:-1], _after(fitted, into)))
            error = max(error, float(np.max(np.abs(theta(fresh) - (exact @ directions.T / unit - shift)))))
        error = max(_MARGIN * error, np.finfo(float).tiny)  # never exact
        if not error <= _WORST:
            raise NoCertificate(
                f"{self.name} could be fitted over the box to {error:.1e} only, with {len(y)} evaluations. Narrow the "
                "ranges, or return what depends on mu smoothly."
            )
        vectors = unit * (directions @ self.basis) * self.scale
        constant = (middle @ self.basis) * self.scale + (shift - middle @ directions.T / unit) @ vectors
        return FittedSum(constant, vectors, theta, error)


def _after(fitted: FittedPolynomial, into: Affine) -> Affine:
    """The coefficients of a polynomial and a matrix as one."""
    return Affine(into.weights @ fitted.coefficients.T, into.bias)

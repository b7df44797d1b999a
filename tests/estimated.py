"""Small surrogates whose errors are estimated by random duals, with a map and without, for the tests of several rooms."""

import warnings
from dataclasses import replace
from functools import cache

from sympy import exp

import parasol as ps
from parasol.fitting.fit import surrogate_without_map
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import search


@cache
def model():
    """Helmholtz on 250 nodes."""
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@cache
def reduced(n_vectors=20):
    """The reduced model of ten solves, with sealed duals and no constants."""
    growing = ByEstimate(model(), n_vectors=n_vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # more solves would bring more
        found = search(growing, aim=1e-12, most=10)
    growing.complete()
    duals = growing.sealed(found.basis)
    return replace(duals, duals=replace(duals.duals, ratio=1.25, n_checked=3))


def with_map():
    """A polynomial map of it; the problem has two quantities."""
    return ps.fit(reduced(), "polynomial", n_labels=300)


def without_map():
    """The reduced model itself answers."""
    return surrogate_without_map(reduced())


def proven():
    """With constants too: some bounds are proven, others probable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # so few anchors do not prove all
        known = ps.reduce(model(), reduced().basis, n_anchors=1)
    found = replace(known, duals=reduced().duals)
    return replace(with_map(), reduced=found)


@cache
def resonant():
    """Across a resonance, k = 2π², where several preconditioners take turns: no map, two coefficients in the load."""
    x, y = ps.coordinates("x y")
    k, s = ps.parameters(k=(15.0, 25.0), s=(0.5, 2.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(ps.Box([0, 0], [1, 1]), ps.Eq(-ps.laplacian(u) - k * u, exp(x) * (1 + s * y)), ps.Dirichlet(0))
    growing = ByEstimate(ps.discretize(problem, ps.lattice(problem.domain, 14)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        found = search(growing, aim=1e-12, most=6)
    growing.complete()
    return surrogate_without_map(growing.sealed(found.basis))

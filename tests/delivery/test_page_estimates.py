"""The page estimates the errors of its answers as Python does, and solves the reduced model where there is no map."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sympy import cos, exp

import estimated
import parasol as ps
from parasol.delivery.page import bounds, contents
from parasol.fitting.fit import surrogate_without_map
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import search
from parasol.runtime.defects import Defects


def check_same(tab, surrogate, mus, inputs=None, close=1e-9):
    """Coefficients, fields, bounds, kinds and estimates of the page are Python's, but for the rounding of its modes."""
    answer = surrogate(mus)
    size = np.linalg.norm(answer.coefficients, axis=1)
    lost = np.abs(answer.coefficients) @ tab.evaluate("() => Array.from(window.parasol.model.lift.loss.data)")
    estimates = np.hypot(answer.estimates.values, lost)
    for i, x in enumerate(mus if inputs is None else inputs):
        found = tab.evaluate("x => window.parasol.answer(x)", np.asarray(x).tolist())
        c, error = answer.coefficients[i], found["bound"]
        assert np.abs(np.array(found["coefficients"]) - c).max() < 1e-9 * np.abs(c).max()
        assert np.abs(np.array(found["values"]) - answer.values[i]).max() < 1e-5 * np.abs(answer.values[i]).max()
        assert error["value"] == pytest.approx(answer.bounds.values[i] + lost[i], rel=close)
        assert (error["rigorous"], error["probable"]) == (answer.bounds.rigorous[i], answer.bounds.probable[i])
        assert error["estimate"]["value"] == pytest.approx(estimates[i], rel=close)
        for q in found["quantities"]:
            name = q["name"]
            off = answer.quantity_bounds[name][i]
            assert q["value"] == pytest.approx(answer.quantities[name][i], rel=1e-9, abs=1e-9 * size[i])
            assert q["estimate"] == pytest.approx(answer.quantity_estimates[name][i], rel=max(close, 1e-6))
            place = surrogate.quantities.names.index(name)
            more = surrogate.quantities.bounds(lost[i : i + 1], mus[i : i + 1])[place, 0, 0]
            assert off * (1 - 1e-6) <= q["bound"] <= (off + more) * (1 + 1e-6)
        assert error["estimate"]["relative"] == pytest.approx(estimates[i] / size[i], rel=close)
    return answer


@pytest.mark.parametrize("kind", ["with_map", "without_map", "proven", "restricted"])
def test_the_page_says_what_python_says(show, kind, tmp_path):
    surrogate = (
        estimated.with_map().restricted(nodes=range(0, 250, 2)) if kind == "restricted" else getattr(estimated, kind)()
    )
    mus = ps.sample(estimated.model(), 8, rng=3)
    loaded = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    answer = check_same(show(loaded), surrogate, mus)
    assert ("proven" in answer.bound_kind) == (kind == "proven")
    assert set(answer.quantities) == {"average", "at the centre"}
    assert answer.quantity_estimates is not None


def test_fluxes_of_materials_that_are_parameters(show, tmp_path):
    """Quantities whose weights depend on parameters, with what the residual says of them."""
    x, y = ps.coordinates("x y")
    a, b = ps.parameters(a=(0.2, 5.0, "log"), b=(0.5, 2.0))
    u = ps.unknown("u", x, y)
    domain = ps.Box((0, 0), (1, 1)).regions(low=x < 0.5)
    equation = ps.Eq(-ps.divergence(ps.by_region(low=a, otherwise=b) * ps.gradient(u)), exp(x) * y)
    quantities = {"bottom": ps.Flux("bottom"), "mean": ps.Average(), "all": ps.Flux()}
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), quantities=quantities)
    surrogate = grown(ps.discretize(problem, ps.scatter(domain, n_nodes=250)), 3)
    mus = ps.sample(surrogate.solver, 6, rng=3)
    for each in (surrogate, ps.fit(surrogate.reduced, "polynomial", n_labels=100)):
        answer = check_same(show(ps.load(ps.save(each, tmp_path / "layers.parasol"))), each, mus, close=1e-7)
        assert answer.quantity_estimates is not None


def test_the_solver_s_own_error_by_the_coefficients(show):
    """As it is known where elements were used: two unknown functions, one of them smaller, and none of size 0."""
    rng, known = np.random.default_rng(0), estimated.with_map()
    defects = Defects(1e-3 * rng.normal(size=(2, 3, known.basis.n_modes)), rng.normal(size=(2, 4, known.basis.n_modes)))
    surrogate, mus = replace(known, discretisation=defects), ps.sample(estimated.model(), 4, rng=3)
    tab, wanted = show(surrogate), surrogate(mus).discretisation
    for mu, own in zip(mus, wanted, strict=True):
        found = tab.evaluate("x => window.parasol.answer(x)", mu.tolist())
        assert found["discretisation"] == pytest.approx(own, rel=1e-9)


def test_the_least_theta_proves_on_the_page_too(show):
    """Symmetric matrices, an inner product that is one, several references, and a term that has no energy."""
    n, (a, b) = 30, ps.parameters(a=(0.05, 20.0, "log"), b=(0.05, 20.0, "log"))
    slope = np.diff(np.eye(n + 2), axis=0)
    left, right = (slope.T @ np.diag(part) @ slope for part in (np.arange(n + 1) < 12, np.arange(n + 1) >= 12))
    ends = np.zeros((n + 2, n + 2))
    ends[0, 0] = ends[-1, -1] = 1.0
    for matrix in (left, right):
        matrix[[0, -1]] = 0.0
    load = np.r_[0, np.linspace(1, 2, n), 0]
    product = ((left + right + (left + right).T) / 2 + 2 * ends)[1:-1, 1:-1]
    whole = np.eye(n + 2)
    whole[1:-1, 1:-1] = product
    options = {"points": np.linspace(0, 1, n + 2), "cells": np.column_stack([np.arange(n + 1), np.arange(1, n + 2)])}
    model = ps.AffineModel({a: left, b: right, 1: ends}, {1: load}, product=whole, quantities={"mean": load}, **options)
    surrogate = ps.learn(model, 1e-3, recipe="polynomial")
    assert surrogate.reduced.certificate.n_anchors > 1
    check_same(show(surrogate), surrogate, np.vstack([model.parameters.grid(2, 2), model.sample(6, rng=1)]), close=1e-6)


def test_preconditioners_take_turns_across_a_resonance(show):
    surrogate = estimated.resonant()
    mus = np.random.default_rng(0).uniform([15, 0.5], [25, 2.0], (20, 2))
    theta = surrogate.reduced.operator_theta(mus)
    assert set(surrogate.reduced._constants(theta).choice) == {0, 1}
    check_same(show(surrogate), surrogate, mus, close=1e-7)  # at an error of 1e-7 digits of the residual are gone


def test_a_reduced_model_without_a_map_that_has_constants(show):
    surrogate = replace(estimated.proven(), map=None)
    check_same(show(surrogate), surrogate, ps.sample(estimated.model(), 8, rng=3))


def test_what_rounding_leaves_of_a_full_solve_is_seen(show):
    known = estimated.with_map()
    rough = tuple(replace(residual, precision=1e-3) for residual in known.reduced.residuals)
    surrogate = replace(known, reduced=replace(known.reduced, residuals=rough))
    answer = check_same(show(surrogate), surrogate, ps.sample(estimated.model(), 3, rng=3))
    assert np.all(answer.estimate > 1e-3)


def test_coefficients_that_the_equation_does_not_separate(show):
    x, y = ps.coordinates("x y")
    (a,) = ps.parameters(a=(0.0, 2.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u) + exp(a * x) * u, cos(a * y)), ps.Dirichlet(0))
    surrogate = grown(ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150)), 3)
    assert surrogate.reduced.operator_theta.rows
    assert surrogate.reduced.load_theta.rows
    check_same(show(surrogate), surrogate, np.linspace(0, 2, 5)[:, None], close=1e-7)


def test_functions_by_their_coordinates(show):
    problem = ps.load_problem("schrodinger")
    surrogate = grown(ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500)), 6)
    law, layout = surrogate.parameters.functions[0].distribution, surrogate.layout
    modes = law.modes(layout.points[layout.n_interior :])
    xis = np.random.default_rng(4).standard_normal((3, len(modes)))
    tab = show(surrogate)
    assert any("span" in group for group in tab.evaluate("() => window.parasol.model.reduced.loads"))
    check_same(tab, surrogate, xis @ modes, xis, close=1e-7)


def grown(model, n_solves):
    """The reduced model of so many solves, without a map."""
    growing = ByEstimate(model, n_vectors=6)
    with pytest.warns(ps.ParasolWarning):
        found = search(growing, aim=1e-14, most=n_solves)
    return surrogate_without_map(growing.sealed(found.basis))


def test_one_sentence_for_the_bound_and_one_for_the_estimate(show):
    surrogate = estimated.proven()
    mus = ps.sample(estimated.model(), 8, rng=3)
    tab, proven = show(surrogate), surrogate(mus).bounds.rigorous
    for mu, truly in ((mus[proven][0], True), (mus[~proven][0], False)):
        tab.evaluate("x => window.parasol.set(x)", mu.tolist())
        said = tab.inner_text("#error")
        assert ("proven for these parameters" in said) == truly
        assert ("probable: it holds with probability 0.9997 for these parameters" in said) == (not truly)
        assert "estimate of the error itself" in said
    tab.wait_for_timeout(700)
    assert "The relative error itself is estimated at" in tab.inner_text("#spoken")
    assert "(estimated)" in tab.inner_text("#quantities")
    assert "print(answer.estimate)" in tab.inner_text("#python")


# ---- without a browser -----------------------------------------------------------------------------------------------
def test_what_is_too_large_is_left_out_and_said(monkeypatch):
    def page(kind):
        return ps.explore(getattr(estimated, kind)()).html

    assert "Left out" not in page("proven")
    monkeypatch.setattr(contents, "_TEMPLATES", 0)
    small, large = (array_size(page(kind)) for kind in ("with_map", "proven"))
    assert small < large  # the triangle comes on top of the duals
    monkeypatch.setattr(contents, "_LARGEST", (small + large) // 2)
    html = page("proven")
    assert '"kind":"probable"' in html
    assert "Left out to keep this page small: certificate (0." in html
    monkeypatch.setattr(contents, "_LARGEST", 1)
    html = page("with_map")
    assert '"kind":"none"' in html
    assert "Left out to keep this page small: estimate of the error (0." in html
    html = page("without_map")  # what answers is needed, what estimates is not
    assert '"kind":"none"' in html
    assert "Left out to keep this page small: estimate of the error (0." in html
    monkeypatch.setattr(bounds, "_ANSWERING", 1)
    with pytest.raises(
        ps.ParasolError, match=r"reduced model, which a page cannot compute.*Use parasol serve, or fit a map"
    ):
        page("without_map")


def array_size(html):
    """Characters of the arrays of a page."""
    found = re.search(r'<script type="application/json" id="model">(.*?)</script>', html, re.DOTALL)
    return sum(map(len, json.loads(found[1])["arrays"]))


def test_errors_to_be_expected_of_a_nonlinear_problem(show):
    x = ps.coordinates("x")[0]
    u, (a, b) = ps.unknown("u", x), ps.parameters(a=(0.1, 10.0, "log"), b=(0.0, 3.0))
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + b * u**3, a * (1 + x)), ps.Dirichlet(0))
    surrogate = ps.learn(problem, 1e-4, n_nodes=30, recipe="polynomial")
    tab = show(surrogate)
    for mu in ([0.2, 2.5], [3.0, 1.0]):
        found, answer = tab.evaluate("x => window.parasol.answer(x)", mu), surrogate(mu)
        assert found["bound"]["relative"] == pytest.approx(answer.bound, rel=1e-2, abs=1e-6)
        assert found["bound"]["estimate"]["relative"] == pytest.approx(answer.estimate, rel=1e-2, abs=1e-6)
        tab.evaluate("x => window.parasol.set(x)", mu)
        assert "calibrated: it holds for 95 of 100 new parameters" in tab.inner_text("#error")


def test_bounds_from_few_samples_are_pythons(show):
    rng, t = np.random.default_rng(4), np.linspace(0, 1, 15)
    mus = rng.uniform(0.1, 1.0, (12, 2))
    values = np.stack([np.exp(mus @ [[1.0], [2.0]] * t), 1e4 * np.sin(mus[:, :1] + t)], axis=2)
    surrogate = ps.fit_snapshots(mus, values, "gaussian process", level=0.9)
    assert surrogate.jackknife is not None
    tab = show(surrogate)
    for mu in mus[:3]:
        found = tab.evaluate("x => window.parasol.answer(x)", mu.tolist())["bound"]
        # the page's modes are in single precision, and what that costs belongs to the bound
        assert 0 <= found["relative"] - surrogate(mu).bound < 1e-5
    assert "for 90 of 100 new parameters" in tab.inner_text("#error")


@pytest.mark.parametrize("with_map", [True, False])
def test_factors_that_were_fitted_are_computed_in_the_page(show, with_map):
    """operator(mu) is a function: the factors of its sum are polynomials, which the page runs like maps."""
    n = np.arange(12)
    points, cells = np.column_stack([n // 2, n % 2]), np.column_stack([n[:-2], n[1:-1], n[2:]])  # a strip
    chain = 2 * np.eye(12) - np.eye(12, k=1) - np.eye(12, k=-1)
    model = ps.AffineModel(
        lambda mu: np.exp(2 * mu[0] * points[:, :1] / 5) * chain + np.diag(mu[1] ** (n / 4)),
        lambda mu: np.cos(mu[1] * n / 3),
        parameters={"a": (0.0, 1.0), "b": (0.5, 2.0)},
        points=points,
        cells=cells,
        quantities={"sum": np.ones(12)},
    )
    surrogate = ps.learn(model, 1e-1, recipe="polynomial")
    surrogate = surrogate if with_map else surrogate_without_map(surrogate.reduced)
    answer = check_same(show(surrogate), surrogate, model.sample(5, rng=3), close=1e-6)
    assert set(answer.bound_kind) == {"probable"}

"""Bounds of the explorer page where they are not small: there a relative bound and an absolute one are two things."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.runtime.conformal import ConformalBound


@pytest.fixture(scope="module")
def coarse(model):
    """Two modes: errors of some percent, and bounds of more."""
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=2))
    return ps.fit(reduced, "polynomial", n_labels=100)


def test_a_large_bound_is_relative_to_the_least_that_the_solution_can_be(show, coarse, model):
    tab, mus = show(coarse), ps.sample(model, 12, rng=3)
    answer = coarse(mus)
    known = np.isfinite(answer.bound)
    assert np.any(answer.bound[known] > 0.05)
    for mu, relative, value in zip(mus, answer.bound, answer.bounds.values, strict=True):
        found = tab.evaluate("x => window.parasol.answer(x).bound", mu.tolist())
        size = np.linalg.norm(coarse(mu).coefficients)
        assert found["value"] == pytest.approx(value, rel=1e-3)
        if np.isfinite(relative):
            assert found["relative"] == pytest.approx(relative, rel=1e-2)
            assert found["relative"] == pytest.approx(found["value"] / (size - found["value"]), rel=1e-6)
        else:
            assert found["relative"] is None or found["relative"] == np.inf


def test_a_calibrated_bound_of_the_value_is_one_of_the_solution(show, coarse):
    """|u - a| <= q |u| and |u| <= |a| + q |u| give |u - a| <= q / (1 - q) |a|."""
    likely = replace(coarse, reduced=None, conformal=ConformalBound(level=0.9, n_calibration=40, quantile=0.2))
    tab, mu = show(likely), [1.0, 1.0]
    found = tab.evaluate("x => window.parasol.answer(x).bound", mu)
    assert found["relative"] == pytest.approx(0.2, rel=1e-4)
    assert found["value"] == pytest.approx(likely.certify([mu]).values[0], rel=1e-4)
    assert found["value"] == pytest.approx(0.25 * np.linalg.norm(likely(mu).coefficients), rel=1e-4)


# ---- numbers and what is refused -------------------------------------------------------------------------------------
def test_numbers_are_plain_or_powers_of_ten(show, coarse):
    tab = show(coarse)
    for x, text in (
        (1e-3, "0.001"),
        (9.994e-4, "9.994 × 10⁻⁴"),
        (-1.23456e-4, "−1.235 × 10⁻⁴"),
        (99999, "99999"),
        (-1e5, "−1 × 10⁵"),
        (0, "0"),
    ):
        assert tab.evaluate("([x, digits]) => Words.number(x, digits)", [x, 5 if x == 99999 else 4]) == text
    assert tab.evaluate("() => [Infinity, -Infinity, NaN].map((x) => Words.number(x))") == ["∞", "−∞", "not a number"]


def test_a_number_outside_its_range_is_refused_and_the_picture_stays(show, coarse):
    tab = show(coarse)
    before, entry = tab.evaluate("() => window.parasol.state.inputs.slice()"), "input[aria-label='a, exact value']"
    for typed, said in (
        ("4.01", "4.01 is outside 0.1 … 4"),
        ("0.09", "0.09 is outside 0.1 … 4"),
        ("", "That is no number"),
    ):
        tab.fill(entry, typed)
        tab.keyboard.press("Tab")
        assert said in tab.inner_text("#p-a-refused")
        assert tab.get_attribute(entry, "aria-invalid") == "true"
        assert tab.evaluate("() => window.parasol.state.inputs.slice()") == before
    tab.fill(entry, "4")
    tab.keyboard.press("Tab")
    assert tab.is_hidden("#p-a-refused")
    assert tab.evaluate("() => window.parasol.state.inputs[0]") == 4


def test_the_difference_is_this_answer_less_the_one_kept(show, coarse):
    tab = show(coarse)
    tab.evaluate("() => window.parasol.set([1, 1])")
    tab.click("#keep")
    tab.select_option("#how", "difference")
    tab.evaluate("() => window.parasol.set([3, 0.2])")
    gap = coarse([3.0, 0.2]).values - coarse([1.0, 1.0]).values
    i = int(np.argmax(np.abs(gap)))
    at = coarse.layout.points[i].tolist()
    value = tab.evaluate("p => window.parasol.valueAt(window.parasol.view.nearPoint(...p))", at)
    assert value == pytest.approx(gap[i], rel=1e-3)
    assert tab.evaluate("() => window.parasol.range()") == pytest.approx([-abs(gap[i]), abs(gap[i])], rel=1e-3)


def test_colours_about_zero_reach_as_far_on_either_side(show, coarse):
    tab, mu = show(coarse), [0.6, 1.0]
    tab.evaluate("x => window.parasol.set(x)", mu)
    values = coarse(mu).values
    assert tab.evaluate("() => window.parasol.shown.mapName(false)") == "diverging"
    most = np.abs(values).max()
    assert values.min() + values.max() != pytest.approx(0, abs=1e-3 * most)
    assert tab.evaluate("() => window.parasol.range()") == pytest.approx([-most, most], rel=1e-5)
    tab.select_option("#map", "sequential")
    tab.wait_for_timeout(100)
    assert tab.evaluate("() => window.parasol.range()") == pytest.approx([values.min(), values.max()], rel=1e-5)


def test_a_value_at_a_node_is_off_by_the_bound_over_the_root_of_its_weight(show, coarse):
    tab = show(coarse)
    tab.evaluate("() => { window.parasol.model.least_weight = [0.25]; window.parasol.set([1, 1]); }")
    tab.focus("#overlay")
    tab.keyboard.press("ArrowRight")
    shown = tab.inner_text("#probe b").split("± ")[1]
    bound = tab.evaluate("() => window.parasol.answer([1, 1]).bound.value")
    assert shown == tab.evaluate("x => Words.number(x, 2)", 2 * bound)


def test_the_band_of_a_field_is_its_own_and_not_that_of_another_unit(show):
    """Temperatures were shown within 100 K, since the stress beside them, in Pa, erred by 3 %."""
    mus = np.random.default_rng(0).uniform(1, 2, (60, 2))
    x = np.linspace(0, 1, 21)
    fields = {"T": 300 + mus[:, :1] * x, "s": 1e6 * np.exp(-np.abs(x - 0.5) * 9 * mus[:, 1:])}
    results = ps.Results({"a": mus[:, 0], "b": mus[:, 1]}, fields, points=x[:, None])
    surrogate = ps.learn(data=results, tolerance=1e-1, recipe="polynomial")
    tab, answer = show(surrogate), surrogate(a=1.4, b=1.6)
    for which, band in enumerate(answer.band.reshape(2, -1)):
        tab.evaluate("i => { window.parasol.state.which = i; window.parasol.set([1.4, 1.6]); }", which)
        tab.focus("#overlay")
        tab.keyboard.press("ArrowRight")
        off = float(tab.inner_text("#probe b").split("± ")[1].replace(" × 10⁻⁵", "e-5").replace("\u00a0", ""))
        assert band.max() <= 1.01 * off <= 1.2 * band.max() + 1e-3


def test_a_table_has_the_nodes_themselves_and_not_their_images(show):
    problem = ps.load_problem("periodic-channel")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    known = ps.solve_many(model, ps.sample(model, 8))
    surrogate = ps.fit(known, "polynomial", basis=ps.pod(known, n_modes=2), model=model, level=None)
    tab = show(surrogate)
    assert tab.evaluate("() => window.parasol.model.mesh.images")
    head, *rows = tab.evaluate("() => window.parasol.csv()").strip().split("\n")
    assert head.startswith("x,y,u")
    places = np.array([[float(cell) for cell in row.split(",")[:2]] for row in rows])
    assert np.array_equal(places, surrogate.layout.points)


def test_ticks_have_the_digits_of_their_step(show, coarse):
    tab, ask = (
        show(coarse),
        "([low, high, most]) => { const t = Geometry.ticks(low, high, most); return t.values.map(t.label); }",
    )
    assert tab.evaluate(ask, [0, 1, 4]) == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert tab.evaluate(ask, [-2e-5, 0, 2]) == ["−2e−5", "−1e−5", "0"]
    assert tab.evaluate(ask, [0, 40, 4]) == ["0", "10", "20", "30", "40"]

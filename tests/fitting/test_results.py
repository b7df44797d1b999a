"""Other people's results: shapes, names and places; what is wrong with them; what a surrogate of them says."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.fitting import data
from parasol.fitting.data import _calibrated
from parasol.reduction.snapshots import as_snapshots
from parasol.runtime import Affine, Program
from parasol.runtime.layout import Layout
from parasol.runtime.program import StoredMap

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
CELLS = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]


def runs(n=160, seed=0):
    """Parameters, a displacement of two components in metres, a stress in pascals with a kink in its maximum."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.5, 2, n), rng.uniform(0, 1, n)
    x, y = SQUARE.T
    u = 1e-4 * np.stack([a[:, None] * (x + b[:, None] * y), np.exp(-np.outer(a, y)) * x], axis=2)
    return a, b, u, 3e8 * (1 + a[:, None] * x - b[:, None] * y**2)


@pytest.fixture(scope="module")
def plate():
    a, b, u, stress = runs()
    results = ps.Results(
        {"a": a, "b": b},
        {"u": u, "stress": stress},
        points=SQUARE,
        cells=CELLS,
        quantities={"largest": lambda run: run["stress"].max(), "mean x": np.r_[np.full(5, 0.2), np.zeros(10)]},
    )
    return results, ps.learn(data=results, tolerance=1e-2, recipe="gaussian process")


def test_names_places_and_components(plate):
    _, surrogate = plate
    a, b, u, stress = runs(seed=1)
    mus = np.column_stack([a, b]).clip(*np.transpose([(p.low, p.high) for p in surrogate.parameters.scalars]))
    keep = np.all(mus == np.column_stack([a, b]), axis=1)
    answer = surrogate({"b": b[keep], "a": a[keep]})
    assert answer["u"].shape == (keep.sum(), 5, 2)
    assert np.allclose(answer["u"], u[keep], rtol=0, atol=1e-6)
    assert np.allclose(answer["u_y"], u[keep][:, :, 1], rtol=0, atol=1e-6)
    assert np.allclose(answer["stress"], stress[keep], rtol=1e-2)
    assert list(answer.fields) == ["u", "stress"]
    assert surrogate.facts["learn"]["met"]
    with pytest.raises(ps.ParasolError, match="u_x, u_y, stress, u"):
        answer["v"]
    # linear within a cell
    assert np.allclose(
        answer.at([[0.75, 0.5]])[:, 2, 0], (stress[keep][:, [1, 2]].mean(1) + stress[keep][:, 4]) / 2, rtol=1e-2
    )


def test_bounds_of_fields_and_of_quantities_of_any_kind(plate):
    """Each at its level: of a maximum too, whose bound is far below what the norm of the field would give."""
    _, surrogate = plate
    a, b, u, stress = runs(400, seed=2)
    inside = surrogate.parameters.inside(np.column_stack([a, b]))
    a, b, u, stress = a[inside], b[inside], u[inside], stress[inside]
    answer = surrogate({"a": a, "b": b})
    gaps = {"largest": stress.max(axis=1), "mean x": u[:, :, 0].mean(axis=1)}
    for name, truth in gaps.items():
        off = np.abs(answer.quantities[name] - truth)
        assert np.mean(off <= answer.quantity_bounds[name]) > 0.88, name
        assert np.max(answer.quantity_bounds[name]) < 0.02 * np.max(np.abs(truth)), name
    for name, truth in {"u": u, "stress": stress}.items():
        gap = answer[name] - truth
        size = np.linalg.norm(truth.reshape(len(a), -1), axis=1)
        assert np.mean(np.linalg.norm(gap.reshape(len(a), -1), axis=1) / size <= answer.field_bounds[name]) > 0.88
    assert answer.bound_kind[0] == "calibrated"


def test_the_file_keeps_it_all(plate, tmp_path):
    _, surrogate = plate
    loaded = ps.load(ps.save(surrogate, tmp_path / "plate.parasol"))
    one, other = surrogate(a=1.0, b=0.5), loaded(a=1.0, b=0.5)
    assert other.quantities == one.quantities
    assert other.quantity_bounds == one.quantity_bounds
    assert other["u"].shape == (5, 2)
    assert np.array_equal(other.at([[0.3, 0.4]]), one.at([[0.3, 0.4]]))
    assert loaded.quantity_names == ("mean x", "largest")
    assert "largest" in other.to_xarray(bounds=True)
    assert loaded.restricted(nodes=[1])(a=1.0, b=0.5).quantities == one.quantities


def test_in_time():
    rng = np.random.default_rng(3)
    k, times, x = rng.uniform(1, 2, 120), np.linspace(0, 1, 4), np.linspace(0, 1, 7)
    u = np.exp(-k[:, None, None] * times[:, None]) * np.sin(np.pi * x)
    results = ps.Results({"k": k}, {"u": u, "energy": np.sum(u**2, axis=2)}, points=x[:, None], times=times)
    surrogate = ps.learn(data=results, tolerance=1e-2, recipe="polynomial")
    answer = surrogate(k=1.5)
    truth = np.exp(-1.5 * times)[:, None] * np.sin(np.pi * x)
    assert np.allclose(answer["u"], truth, atol=1e-3)
    assert np.allclose(answer.quantities["energy"], np.sum(truth**2, axis=1), atol=1e-2)
    late = surrogate.restricted(times=[1.0])(k=1.5)
    assert late.quantities["energy"] == pytest.approx([np.sum(truth[-1] ** 2)], abs=1e-2)


def test_numbers_alone():
    rng = np.random.default_rng(4)
    v = rng.uniform(1, 2, 100)
    surrogate = ps.learn(data=ps.Results({"v": v}, {"drag": v**2, "power": 1e6 * v**3}), recipe="polynomial")
    answer = surrogate(v=1.5)
    assert answer.quantities["drag"] == pytest.approx(2.25, abs=max(answer.quantity_bounds["drag"], 1e-9))
    assert answer.quantities["power"] == pytest.approx(3.375e6, rel=1e-3)


def test_weights_of_nodes_are_those_of_the_norm():
    a, b, u, stress = runs(60)
    volumes = np.array([1.0, 1, 1, 1, 4]) / 8
    results = ps.Results({"a": a, "b": b}, {"u": u, "stress": stress}, points=SQUARE, weights=volumes)
    assert results.weights.shape == (15,)
    with pytest.warns(ps.ParasolWarning, match="tolerance"):
        surrogate = ps.learn(data=results, tolerance=1e-6, recipe="linear")
    weights = surrogate.basis.weights.reshape(3, 5)
    assert np.allclose(weights / weights[:, :1], volumes / volumes[0])
    assert weights[0, 0] == weights[1, 0] != weights[2, 0]  # one scale for a vector, another for another field


def test_groups_are_kept_together():
    a, b, u, _ = runs(60)
    results = ps.Results({"a": a, "b": b}, {"u": u[:, :, 0]}, groups=np.repeat(np.arange(20), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = ps.learn(data=results, tolerance=1e-1, recipe="linear")
    assert surrogate.conformal is not None
    assert surrogate.conformal.n_calibration == 20  # not 60 rows


def test_runs_that_failed_are_named_and_dropped_on_request():
    a, b, u, stress = runs(20)
    stress[7, 2] = np.nan
    u[11, 0, 1] = np.inf
    with pytest.raises(
        ps.ParasolError, match=r"runs 7 \(stress\), 11 \(u\), counted from 0, have values that are missing.*drop"
    ):
        ps.Results({"a": a, "b": b}, {"u": u, "stress": stress}, points=SQUARE)
    results = ps.Results({"a": a, "b": b}, {"u": u, "stress": stress}, missing="drop", points=SQUARE)
    assert len(results) == 18
    assert results.dropped == (7, 11)
    assert np.array_equal(results.mus[:, 0], np.delete(a, [7, 11]))
    assert np.array_equal(results.fields["stress"], np.delete(stress, [7, 11], axis=0))


def test_columns_are_matched_by_name():
    a, b, _, stress = runs(40)
    results = ps.Results({"a": a, "b": b}, {"stress": stress})
    turned = results.of_parameters(ps.pde.ParameterSpace(tuple(ps.parameters(b=(0, 1), a=(0.5, 2)))))
    assert np.array_equal(turned.mus, np.column_stack([b, a]))
    with pytest.raises(ps.ParasolError, match="Name each column once"):
        results.of_parameters(ps.pde.ParameterSpace(tuple(ps.parameters(c=(0, 1)))))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (({"a": np.ones(3)}, np.ones((2, 5))), {}, r"shape \(2, 5\) for 3 runs"),
        (({"a": np.ones(3)}, np.ones((3, 5, 4))), {}, "nodes and components, or times and nodes"),
        (({"a": np.ones(3)}, np.ones((3, 4))), {"points": SQUARE}, "there are 5 nodes"),
        (({"a": np.ones(3)}, {"u": [["a"] * 5] * 3}), {}, "not real numbers"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"cells": CELLS}, "cells need the points"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"points": SQUARE, "cells": [[0, 1, 9]]}, "name the points 0 to 9"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"times": [0.0, 1.0]}, "there are 2 times"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"weights": np.ones(4)}, "4 weights for 5 nodes"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"weights": -np.ones(5)}, "Weights are positive"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"groups": [1, 2]}, "one label for each"),
        (({"a": np.ones(3), "b": np.ones(2)}, np.ones((3, 5))), {}, "column 'b'"),
        (({}, np.ones((3, 5))), {}, "no columns"),
        (({"a": np.ones(3)}, {}), {}, "no fields"),
        (
            ({"a": np.ones(3)}, np.ones((3, 5))),
            {"quantities": {"q": lambda run: run["v"]}},
            r"'q' cannot be computed of run 0: KeyError\('v'\). A run has the fields u\.",
        ),
        (({"a": ["0.5", "0.6 mm", "0.7"]}, np.ones((3, 5))), {}, "column 'a' .* has '0.6 mm' in run 1, counted from 0"),
        (({"a": ["0,5", "0,6", "1"]}, np.ones((3, 5))), {}, "column 'a' .* has decimal commas, such as '0,5'"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"points": np.arange(5.0)}, r"shape \(5,\), .*pass points\[:, None\]"),
        (({"a": np.ones(3)}, np.ones((3, 5))), {"missing": "keep"}, "missing"),
        (({"a": np.ones(3)}, {"u": np.ones((3, 5, 2)), "u_x": np.ones((3, 5))}), {"points": SQUARE}, "another name"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given, options, message):
    with pytest.raises(ps.ParasolError, match=message) as caught:
        ps.Results(*given, **options)
    assert "\n" not in str(caught.value)


LINE = np.linspace(0, 1, 5)


def wave(a, m=1.0):
    return np.sin(9 * np.asarray(a) * np.asarray(m))[:, None] * LINE + np.cos(25 * np.asarray(a))[:, None]


@pytest.mark.parametrize("times", [1, 4])
def test_runs_given_twice_calibrate_nothing_by_themselves(times):
    """Else a run is learned from and kept aside at once: the bound was 3e-15 where errors are 1e-1."""
    a = np.random.default_rng(1).uniform(0, 1, 40)
    surrogate = ps.fit_snapshots(np.tile(a, times)[:, None], np.tile(wave(a), (times, 1)), "polynomial")
    new = np.random.default_rng(2).uniform(a.min(), a.max(), 400)
    answer, exact = surrogate(new[:, None]), wave(new)
    errors = np.linalg.norm(answer.values - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.mean(errors <= answer.bound) > 0.85


def test_a_choice_that_no_run_has_is_not_answered():
    rng = np.random.default_rng(0)
    a, m = rng.uniform(0, 1, 80), rng.choice([1.0, 4.0], 80)
    declared = {"a": (0, 1), "m": ps.Choice(1, 2, 4)}
    with pytest.warns(ps.ParasolWarning, match="no sample has m=2"):
        surrogate = ps.fit_snapshots(np.column_stack([a, m]), wave(a, m), "polynomial", ranges=declared)
    assert np.isfinite(surrogate(a=0.5, m=4).bound)
    with pytest.raises(ps.ParasolError, match="m=2 is none of its choices: 1, 4"):
        surrogate(a=0.5, m=2)
    m[:] = 1.0
    with pytest.raises(ps.ParasolError, match="all samples have m=1"):
        ps.fit_snapshots(np.column_stack([a, m]), wave(a, m), "polynomial", ranges=declared)
    m[3:5] = 4.0
    with pytest.warns(ps.ParasolWarning, match="2 of 80 samples have m=4"):
        ps.fit_snapshots(np.column_stack([a, m]), wave(a, m), "linear", ranges=declared)


def test_functions_of_runs_in_time_and_of_runs_that_failed():
    a = np.array([1.0, 2.0, 3.0])
    u = np.stack([wave(a), 2 * wave(a)], axis=1)
    found = ps.Results(
        {"a": a}, u, times=[0, 1], quantities={"top": lambda run: run["u"].max(), "end": lambda run: run["u"][:, -1]}
    )
    assert np.array_equal(found.scalars["top"], np.repeat(u.max(axis=(1, 2))[:, None], 2, axis=1))
    assert np.array_equal(found.scalars["end"], u[:, :, -1])
    bad = wave(a)
    bad[0] = np.nan
    some = lambda run: np.log(run["u"][-1]) if run["u"][-1] > 0 else np.nan  # noqa: E731
    expected = np.flatnonzero(~(bad[:, -1] > 0))
    left = ps.Results({"a": a}, bad, quantities={"log": some}, missing="drop")
    assert left.dropped == tuple(expected)
    assert np.array_equal(left.mus[:, 0], np.delete(a, expected))
    assert np.allclose(left.scalars["log"], np.log(left.fields["u"][:, -1]))


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ({"u": [[1, 2], [3]]}, {}, "the field 'u' has rows of different lengths"),
        ({"u": [[1, 2], [3, 4]], "q": [1, 2]}, {"quantities": {"q": [1, 1]}}, "two quantities 'q'"),
        ({"u": [[1, 2], [3, 4]]}, {"quantities": {"q": [1, 1, 1]}}, "has 3 weights"),
        ({"u": [[1, 2], [3, 4]]}, {"quantities": {"q": lambda run: run["u"]}}, "must give one number"),
        ({"u": [[1, 2], [3, 4]]}, {"quantities": {"q": lambda run: 1j}}, "must give one number"),
        ({"u": [[1, 2], [3, 4]]}, {"quantities": [1]}, "quantities are a list"),
        ({"u": [[1, 2], [3, 4]]}, {"times": [1, 0]}, "times do not increase"),
        ({"u": [[1, 2], [3, 4]]}, {"groups": [None, "a"]}, "labels that are missing"),
        ({"tip": [1, 2]}, {"weights": [1.0]}, "1 weights for 0 nodes"),
    ],
)
def test_more_that_is_wrong_is_said_in_one_line(fields, options, message):
    with pytest.raises(ps.ParasolError, match=message):
        ps.Results({"a": [1.0, 2.0]}, fields, **options)


def test_accuracy_goes_by_names_and_counts_quantities(plate):
    """Fields in another order were measured against each other, quantities not at all."""
    _, surrogate = plate
    a, b, u, stress = runs(50, seed=5)
    same = (a > 0.52) & (a < 1.98) & (b > 0.02) & (b < 0.98)
    names = {"a": a[same], "b": b[same]}
    fields = {"stress": stress[same], "u": u[same]}
    assert np.max(ps.accuracy(surrogate, ps.Results(names, fields, points=SQUARE)).errors) < 1e-2
    off = ps.Results(names, {**fields, "largest": 2 * stress[same].max(axis=1)}, points=SQUARE)
    assert np.min(ps.accuracy(surrogate, off).errors) > 0.4
    with pytest.raises(ps.ParasolError, match="have no 'stress'"):
        ps.accuracy(surrogate, ps.Results(names, {"u": fields["u"]}, points=SQUARE))
    with pytest.raises(ps.ParasolError, match="other points"):
        ps.accuracy(surrogate, ps.Results(names, fields, points=SQUARE[::-1]))
    numbers = ps.learn(data=ps.Results(names, {"q": names["a"], "r": names["b"]}), recipe="linear")
    assert np.max(ps.accuracy(numbers, ps.Results(names, {"r": names["b"], "q": names["a"]})).errors) < 1e-9


def test_values_labels_and_numbers_of_several_times():
    """Times slowest, then components, then nodes; numbers of different sizes count alike."""
    rng = np.random.default_rng(0)
    a, times = rng.uniform(1, 2, 60), np.linspace(0, 1, 3)
    grown = a[:, None] * (1 + times)
    fields = {"v": grown[:, :, None, None] * np.ones((4, 2)), "p": grown[:, :, None] * np.ones(4)}
    results = ps.Results({"a": a}, fields | {"small": 1e-6 * grown, "large": 1e6 * grown}, times=times)
    assert results.units.tolist() == 3 * (8 * [0] + 4 * [1])
    numbers = ps.learn(data=results, tolerance=1e-2, recipe="linear").scalars
    weights = numbers.basis.weights.reshape(3, 2)
    assert np.all(weights == weights[0])
    assert weights[0, 0] / weights[0, 1] == pytest.approx(1e24)
    assert numbers(a=1.5).quantities["small"] == pytest.approx(1.5e-6 * (1 + times))


def test_groups_and_numbers_of_dropped_runs_are_dropped_too():
    table, drag = {"a": np.arange(4.0)}, np.array([1.0, np.nan, 3.0, 4.0])
    with pytest.raises(ps.ParasolError, match=r"run 1 \(drag\)"):
        ps.Results(table, {"drag": drag})
    kept = ps.Results(table, {"drag": drag}, groups=["x", "y", "z", "z"], missing="drop")
    assert kept.groups.tolist() == ["x", "z", "z"]
    assert kept.scalars["drag"].tolist() == [1.0, 3.0, 4.0]


def test_of_a_group_the_worst_row_counts_in_every_bound():
    """Of three rows of a group one is off, whichever it is: the level is that of groups, most of whose rows are right."""
    mus = np.random.default_rng(0).uniform(1, 2, (20, 1))
    wanted = {"sum": np.ones(2)}
    surrogate = ps.fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None, quantities=wanted)
    truth = surrogate(mus).values
    alike = StoredMap(Program((Affine(np.zeros((1, 1)), np.zeros(1)),)), "constant")  # a difficulty that is one
    for place, difficulty in itertools.product(range(3), (None, alike)):
        surrogate = replace(surrogate, difficulty=difficulty)
        rows = 1.001 * np.repeat(truth, 3, axis=0)
        rows[place::3] *= 1 + np.linspace(0.1, 0.2, 20)[:, None]
        held_out, group = as_snapshots(np.repeat(mus, 3, axis=0), rows), np.repeat(np.arange(20), 3)
        found = _calibrated(surrogate, held_out, group, None, np.ones((1, 2)), level=0.5, drawn=True)
        assert found.conformal.n_calibration == 20
        assert found.conformal.normalised == (difficulty is not None)
        assert 0.09 < found(mus[0]).bound < 0.2
        assert found(mus[0]).quantity_bounds["sum"] > 0.05 * truth[0].sum()
        assert np.all(found(mus[0]).band > 0.05 * np.linalg.norm(truth[0]))


def test_samples_kept_aside_change_nothing_but_the_bound(monkeypatch):
    """Neither the units of fields nor the modes nor the map see them: else the bound would not hold at its level."""
    kept = []
    monkeypatch.setattr(data, "_calibrated", lambda made, held_out, *_, **__: kept.append(held_out.mus) or made)
    mus = np.random.default_rng(0).uniform(1, 2, (60, 1))
    truth = np.hstack([np.sin(mus * np.arange(1, 6)), 1e3 * np.exp(mus * np.arange(4) / 4)])

    def fitted(solutions):
        return ps.fit_snapshots(mus, solutions, "polynomial", fields=np.repeat([0, 1], [5, 4]), ranges={"a": (1, 2)})

    before = fitted(truth)
    aside = np.isin(mus[:, 0], kept[0][:, 0])
    assert 10 < np.count_nonzero(aside) < 30
    after = fitted(np.where(aside[:, None], 1.2 * truth[::-1], truth))
    assert np.array_equal(after.basis.weights, before.basis.weights)
    assert np.array_equal(after(mus).values, before(mus).values)


def test_members_of_fields_are_found_by_the_counts_before_them():
    layout = Layout(names=("u_x", "u_y", "T", "s_x", "s_y"), vectors=(("u", 2), ("T", 1), ("s", 2)))
    assert [layout.members(name) for name in ("u", "T", "s", "s_y")] == [[0, 1], [2], [3, 4], [4]]


def test_an_error_where_the_truth_is_zero_is_relative_to_the_others():
    a, field = np.linspace(0, 1, 11)[:, None], np.array([3.0, 4.0])
    surrogate = ps.fit_snapshots(a, a * field, "linear", ranges={"a": (0, 1)}, level=None)
    shifted = ps.reduction.as_snapshots(a, (a - 0.1) * field)  # the second is zero
    errors = ps.accuracy(surrogate, shifted).errors
    usual = np.mean(np.abs(np.delete(a[:, 0], 1) - 0.1))
    assert errors[1] == pytest.approx(0.1 / usual)
    assert errors[0] == pytest.approx(1.0)
    assert ps.accuracy(surrogate, ps.reduction.as_snapshots(a[:1], 0 * field[None])).errors == pytest.approx(0.0)


def test_runs_without_a_field_or_without_a_quantity_are_dropped_with_all_that_is_theirs():
    values = np.arange(6.0)[:, None] + np.arange(3.0)
    values[1, 2] = np.nan
    results = ps.Results(
        {"a": np.arange(6.0)},
        {"u": values, "drag": 10 * np.arange(6.0)},
        groups=list("aabbcc"),
        quantities={"ratio": lambda run: np.nan if run["u"][0] == 4 else run["u"][0] ** 2},
        missing="drop",
    )
    kept = np.array([0.0, 2.0, 3.0, 5.0])
    assert results.dropped == (1, 4)
    assert np.array_equal(results.mus[:, 0], kept)
    assert np.array_equal(results.fields["u"][:, 0], kept)
    assert np.array_equal(results.scalars["drag"], 10 * kept)
    assert np.array_equal(results.scalars["ratio"], kept**2)
    assert list(results.groups) == ["a", "b", "b", "c"]

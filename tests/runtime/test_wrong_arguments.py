"""Arguments of the wrong kind: one clear line each, before any work."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.ranges import ParameterRange, range_of

MUS = np.linspace(0, 1, 40)[:, None]
VALUES = np.hstack([MUS, MUS**2, 1 + MUS])


class Solver:
    """Somebody's code, whose `nodes` are not those of a model."""

    nodes = 5
    parameters = ParameterSpace((ParameterRange("a", 0.5, 1.0),))

    def solve(self, mu):
        return np.array([mu[0], mu[0] ** 2, 1.0])


@pytest.mark.slow
def test_a_solver_may_have_nodes_of_its_own():
    surrogate = ps.learn(Solver(), 1e-2)
    assert surrogate.layout.points is None
    assert np.allclose(surrogate([0.7]).values, [0.7, 0.49, 1.0], atol=1e-2)


@pytest.mark.parametrize("progress", [True, "bar"])
@pytest.mark.parametrize(
    "work",
    [
        lambda p: ps.fit_snapshots(MUS, VALUES, "linear", progress=p),
        lambda p: ps.learn(data=(MUS, VALUES), progress=p),
        lambda p: ps.learn(Solver(), progress=p),
        lambda p: ps.solve_many(Solver(), [[0.5]], progress=p),
        lambda p: ps.check(ps.fit_snapshots(MUS, VALUES, "linear", level=None), progress=p),
        lambda p: ps.fit(None, progress=p),
        lambda p: ps.greedy(None, n_modes=2, progress=p),
    ],
    ids=["fit_snapshots", "data", "learn", "solve_many", "check", "fit", "greedy"],
)
def test_progress_that_cannot_be_called(work, progress):
    with pytest.raises(ps.ParasolError, match=r"progress=.* cannot be called. Pass a function"):
        work(progress)


def test_accuracy_of_a_tuple():
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None)
    with pytest.raises(
        ps.ParasolError, match=r"truth is a tuple. Pass snapshots: ps.reduction.as_snapshots\(mus, solutions\)"
    ):
        ps.accuracy(line, (MUS, VALUES))
    snapshots = ps.reduction.as_snapshots(MUS, VALUES)
    with pytest.raises(ps.ParasolError, match="calibration is a tuple"):
        ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=2), calibration=(MUS, VALUES))


def _two_units(small):
    """A displacement of size `small` and a stress of size 1, zero at one end."""
    rng = np.random.default_rng(0)
    mus, x = rng.uniform(0, 1, (60, 2)), np.linspace(0, 1, 20)
    displacement = small * x * (np.sin(3 * x * mus[:, :1]) + np.cos(9 * mus[:, 1:] * x))
    return mus, np.hstack([displacement, 1 + mus[:, :1] * x + mus[:, 1:] * x**2])


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_fields_of_different_units_in_one_array(scale, recwarn):
    mus, values = _two_units(1e-6)
    with pytest.warns(ps.ParasolWarning, match="19 values are of size .* 20 of size .* none between"):
        ps.fit_snapshots(mus, scale * values, "linear", level=None)
    recwarn.clear()
    # scaled alike, both are learned to the tolerance
    size = np.sqrt(np.mean(values**2, axis=0))
    weights = np.repeat([1 / np.max(size[:20]) ** 2, 1 / np.max(size[20:]) ** 2], 20)
    fitted = ps.fit_snapshots(mus, values, "polynomial", weights=weights, level=None)
    assert not [w for w in recwarn if "none between" in str(w.message)]
    assert np.abs(fitted(mus).values - values)[:, :20].max() < 1e-2 * size[:20].max()


def test_a_field_that_decays_is_one_field(recwarn):
    mus = np.linspace(0, 1, 30)[:, None]
    ps.fit_snapshots(mus, (1 + mus) * np.exp(-np.linspace(0, 40, 50)), "linear", level=None)  # 17 decades, step by step
    ps.fit_snapshots(mus, (1 + mus) * [0.0, 1.0, 2.0], "linear", level=None)
    assert not [w for w in recwarn if "none between" in str(w.message)]


@pytest.mark.parametrize("small", [1e-6, 1.0])
def test_unknowns_of_different_units(small, recwarn):
    """−p″ = a small x, −q″ = a: in different units, the smaller one is named."""
    (x,) = ps.coordinates("x")
    (a,) = ps.parameters(a=(1.0, 2.0))
    p, q = ps.unknown("p", x), ps.unknown("q", x)
    problem = ps.Problem(
        domain=ps.Box((0.0,), (1.0,)),
        equation=[ps.Eq(-p.diff(x, 2), a * small * x), ps.Eq(-q.diff(x, 2), a)],
        boundary={"left": [ps.Dirichlet(0), ps.Dirichlet(0)], "right": [ps.Dirichlet(small), ps.Dirichlet(a)]},
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    snapshots = ps.solve_many(model, model.sample(6))
    ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=2), model=model)
    said = [str(w.message) for w in recwarn if "times smaller than" in str(w.message)]
    assert [text.split()[0] for text in said] == (["p"] if small < 1e-3 else [])


MASKED = np.ma.masked_array(VALUES, mask=VALUES > 1.9)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: ps.fit_snapshots(MUS, MASKED, "linear"), "4 entries of 120 that are NaN"),
        (lambda: ps.fit_snapshots(np.ma.masked_array(MUS, mask=MUS == 0), VALUES, "linear"), "1 entry of 40"),
        (lambda: ps.Results({"a": MUS[:, 0]}, {"u": MASKED}), r"runs 36 \(u\), 37 \(u\)"),
        (lambda: ps.Results({"a": MUS[:, 0]}, {"u": list(MASKED)}), r"runs 36 \(u\), 37 \(u\)"),
        (lambda: ps.solve_many(lambda mu: MASKED[-1], MUS[:2]), "NaN or infinite"),
    ],
)
def test_what_is_masked_is_missing(work, said):
    with pytest.raises(ps.ParasolError, match=said):
        work()


@pytest.mark.parametrize("mus", [[0.5 + 1j], np.array([[0.5 + 0j]]), {"p1": 0.5j}])
def test_parameters_are_not_complex(mus):
    surrogate = ps.fit_snapshots(MUS, VALUES, "linear", level=None)
    with pytest.raises(ps.ParasolError, match=r"must be (real )?numbers"):
        surrogate(mus)
    with pytest.raises(ps.ParasolError, match=r"must be (real )?numbers"):
        surrogate.parameters.check(mus)


def test_whole_numbers_beyond_floats():
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None, ranges={"a": (0.0, 1.0)})
    for ask in (lambda: line(a=10**400), lambda: line([10**400]), lambda: line([[10**400]])):
        with pytest.raises(ps.ParasolError, match=r"must be (real )?numbers"):
            ask()
    with pytest.raises(ps.ParasolError, match="must be two numbers"):
        ps.parameters(b=(0, 10**400))


def test_numbers_of_all_kinds_by_name():
    space = ParameterSpace((ParameterRange("a", 0.0, 4.0), ParameterRange("k", 0.0, 2.0)))
    kinds = [3.0, 3, np.float64(3.0), np.float32(3.0), np.int16(3), np.array(3.0), True + 2]
    for kind in kinds:
        assert np.array_equal(space.ordered({"k": 1.0, "a": kind}), [3.0, 1.0])
    assert np.isnan(space.ordered({"k": 1.0, "a": np.ma.masked})[0])
    assert np.array_equal(space.ordered({"k": [0.5, 1.0], "a": 3.0}), [[3.0, 0.5], [3.0, 1.0]])


def test_labels_columns_and_places_that_are_masked_are_missing():
    """None of these was seen: NumPy drops the mask on the way to an array."""
    masked = np.ma.masked_array(MUS[:, 0], mask=MUS[:, 0] == 0)
    groups = np.ma.masked_array(np.arange(40) // 2, mask=np.arange(40) == 3)
    rows = np.ma.array([(a,) for a in MUS[:, 0]], dtype=[("a", float)])
    rows["a"][0] = np.ma.masked
    points = np.linspace(0, 1, 3)[:, None]
    cells = np.ma.masked_array([[0, 1], [1, 2]], mask=[[False, False], [True, False]])
    for work, said in (
        (lambda: ps.Results({"a": masked}, {"u": VALUES}), r"run 0 \(the parameters\)"),
        (lambda: ps.Results(rows, {"u": VALUES}), r"run 0 \(the parameters\)"),
        (lambda: ps.Results(MUS, {"u": [[row] for row in MASKED]}, points=[[0.0]]), r"runs 36 \(u\)"),
        (lambda: ps.Results(MUS, {"u": VALUES}, groups=groups), "labels that are missing"),
        (lambda: ps.Results(MUS, {"u": VALUES}, points=points, cells=cells), "whole numbers"),
        (lambda: ps.fit_snapshots(rows, VALUES, "linear"), "1 entry of 40"),
        (lambda: ps.fit_snapshots(MUS, VALUES, "linear", groups=groups), "labels that are missing"),
        (lambda: ps.fit_snapshots(MUS, VALUES, "linear", groups=[np.nan, *range(39)]), "labels that are missing"),
        (lambda: ps.fit_snapshots(MUS, VALUES, "linear", fields=np.ma.array([0, 0, 1], mask=[0, 1, 0])), "are missing"),
        (lambda: ps.pod(MASKED, n_modes=1), "4 entries of 120"),
        (lambda: ps.pod(list(MASKED), n_modes=1), "4 entries of 120"),
        (lambda: ps.pod(VALUES, n_modes=1, held_out=MASKED), "4 entries of 15"),
        (
            lambda: ps.AffineModel({1: np.ma.masked_array(np.eye(2), mask=np.eye(2) == 1)}, {1: [1.0, 1.0]}),
            "2 entries of",
        ),
        (lambda: ps.AffineModel({1: np.eye(2)}, {1: np.ma.masked_array([1.0, 1.0], mask=[0, 1])}), "1 entry of 2"),
        (lambda: ps.Choice(np.ma.masked, 2.0), "finite"),
    ):
        with pytest.raises(ps.ParasolError, match=said):
            work()
    assert ps.Results({"a": masked}, {"u": VALUES}, missing="drop").dropped == (0,)
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None)
    with pytest.raises(ps.ParasolError, match="nodes must be whole numbers"):
        line.restricted(nodes=np.ma.masked_array([0, 1], mask=[False, True]))
    with pytest.raises(ps.ParasolError, match="NaN"):
        line.parameters.check_vectors(np.ma.masked_array([[0.5]], mask=[[True]]), 1)


def test_columns_of_objects_and_texts_with_entries_missing():
    """A name that is missing was the name "None", and numbers beside None were texts."""
    values = {"u": VALUES[:4]}
    for missing in (None, np.nan):
        for column in (["steel", "brass", missing, "steel"], [1.0, 2, missing, 3.5]):
            table = {"m": np.array(column, dtype=object)}
            with pytest.raises(ps.ParasolError, match=r"run 2 \(the parameters\)"):
                ps.Results(table, values)
            runs = ps.Results(table, values, missing="drop")
            assert runs.dropped == (2,)
            assert runs.labels == ({"m": ("brass", "steel")} if "steel" in column else {})
            assert runs.mus.ravel().tolist() == ([1, 0, 1] if "steel" in column else [1, 2, 3.5])
    text = np.ma.masked_array(["steel", "brass", "tin", "steel"], mask=[False, False, True, False])
    assert ps.Results({"m": text}, values, missing="drop").labels == {"m": ("brass", "steel")}


DAYS = np.datetime64("2026-01-01") + np.arange(40)
SPANS = np.arange(40).astype("timedelta64[s]")


@pytest.mark.parametrize("dates", [DAYS, SPANS, DAYS.astype(object), SPANS.astype(object), list(DAYS.astype(object))])
def test_dates_are_no_numbers(dates):
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None, ranges={"a": (0.0, 1.0)})
    column = np.asarray(dates)[:, None]
    for work in (
        lambda: ps.fit_snapshots(column, VALUES, "linear"),
        lambda: ps.fit_snapshots(MUS, np.repeat(column, 3, axis=1), "linear"),
        lambda: ps.fit_snapshots(np.rec.fromarrays([np.asarray(dates)], names="a"), VALUES, "linear"),
        lambda: ps.Results({"a": dates}, {"u": VALUES}),
        lambda: ps.Results(column, {"u": VALUES}),
        lambda: ps.Results(MUS, {"u": np.repeat(column, 3, axis=1)}),
        lambda: ps.Results(MUS, {"u": VALUES[:, :, None]}, times=dates[:3]),
        lambda: line(column),
        lambda: line({"a": dates}),
        lambda: line(a=dates[0]),
        lambda: line.parameters.check(column),
        lambda: line.parameters.check_vectors(column, 1),
    ):
        with pytest.raises(ps.ParasolError, match="dates are no numbers") as error:
            work()
        assert "\n" not in str(error.value)


def test_a_range_of_many_decades_ends_at_its_small_end():
    """Slack of 1e-9 of the width let 0, and anything below 1e-12, count as inside [1e-12, 1]."""
    mus = np.geomspace(1e-12, 1.0, 40)[:, None]
    ranges = {"k": (1e-12, 1.0)}
    surrogate = ps.fit_snapshots(mus, np.log(mus) * [1.0, 2.0], ranges=ranges, level=None)
    space = ParameterSpace((ParameterRange("k", 1e-12, 1.0),))
    for k in (1e-15, 0.0, 0.999e-12, -1e-10):
        assert not space.inside(np.array([[k]])).any()
        for ask in (lambda k=k: surrogate([k]), lambda k=k: surrogate(k=k), lambda k=k: space.check([[k]])):
            with pytest.raises(ps.ParasolError, match="outside its range"):
                ask()
        negative = ParameterSpace((ParameterRange("k", -1.0, -1e-12),))
        assert not negative.inside(np.array([[-k]])).any()
        assert negative.inside(np.array([[-1e-12 * (1 - 1e-12)]])).all()
    assert surrogate([1e-15], extrapolate=True).extrapolated
    for k in (1e-12 * (1 - 1e-12), 1.0 + 1e-12):  # rounding
        assert space.inside(np.array([[k]])).all()
    single = ParameterSpace((ParameterRange("k", 0.7, 100.0), range_of("n", ps.Choice(0.7, 100.0))))
    assert len(single.check(np.array([[0.7, 0.7]], dtype=np.float32))) == 1  # which is less than 0.7
    about_zero = ParameterSpace((ParameterRange("k", 0.0, 1.0), ParameterRange("far", 1e3, 1e3 + 1e-3)))
    assert about_zero.inside(np.array([[-1e-12, 1e3]])).all()
    assert not about_zero.inside(np.array([[0.5, 1e3 - 1e-9]])).any()


def test_choices_of_many_decades_are_apart():
    space = ParameterSpace((range_of("k", ps.Choice(1e-12, 2e-12, 0.0, 1.0)),))
    for k in (1.5e-12, 1e-15, 1e-10, 1.0 - 1e-6, 1e-12 * (1 - 1e-6)):
        with pytest.raises(ps.ParasolError, match="none of its choices"):
            space.check([[k]])
    assert len(space.check([[0.0], [1e-12 * (1 + 1e-10)], [1.0 - 1e-10]])) == 3


class Returns:
    """A solver that returns what it is told to, at any parameter."""

    def __init__(self, found):
        self.found = found

    def solve(self, mu):
        return self.found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (np.full(3, np.nan), "NaN"),
        (MASKED[-1], "NaN"),
        (None, "NoneType"),
        (np.ones(3) * 1j, "expected 3 real numbers"),
        (np.ones(2), "expected 3 real numbers"),
        ({"u": np.ones(3)}, "dict"),
        (np.arange(3).astype("timedelta64[s]"), "dates"),
    ],
)
def test_a_repair_by_a_full_solve_is_one(found, said):
    """Such answers had a bound of zero and were called proven, whatever the solver had returned."""
    surrogate = replace(ps.fit_snapshots(MUS, VALUES, "linear", level=0.5), solver=Returns(found))
    with pytest.raises(ps.ParasolError, match=said):
        surrogate([0.5], tolerance=1e-9)


def test_repairs_outside_the_ranges_by_a_solver_of_ones_own():
    """Only models take extrapolate=."""
    surrogate = replace(ps.fit_snapshots(MUS, VALUES, "linear", level=0.5), solver=Returns(np.arange(3.0)))
    answer = surrogate([1.5], tolerance=1e-9, extrapolate=True)
    assert answer.method == "full solve"
    assert answer.values.tolist() == [0.0, 1.0, 2.0]


def line():
    ranges = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    mus = np.random.default_rng(0).uniform(0, 1, (60, 2))
    return ps.fit_snapshots(mus, 1 + mus @ [[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]], "linear", ranges=ranges)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda s: s([0.1]), r"mus has shape \(1,\), expected \(2,\) or \(n_samples, 2\): a, b\."),
        (lambda s: s(0.1), r"mus has shape \(\), expected \(2,\)"),
        (lambda s: s(a=0.1), r"b in \[0, 1\] is missing\. Give every parameter\.$"),
        (lambda s: s(a=0.1, b=np.nan), "the parameter b has 1 entry"),
        (lambda s: s([[0.1, 0.2], [np.nan, 0.3]]), "the column a of mus has 1 entry of 2"),
        (lambda s: s(a=[0.1, 0.2], b=[0.1, 0.2, 0.3]), "different lengths: a has 2, b has 3"),
    ],
)
def test_a_question_that_cannot_be_answered_names_what_is_wrong(asked, message):
    with pytest.raises(ps.ParasolError, match=message):
        asked(line())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": "1e-3"}, "tolerance must be a positive number, got '1e-3'"),
        ({"n_nodes": "many"}, "n_nodes must be a whole number of at least 1, got 'many'"),
        ({"n_nodes": 300.0}, "n_nodes must be a whole number"),
    ],
)
def test_learning_refuses_numbers_that_are_none(options, message):
    (x,), (a,) = ps.coordinates("x"), ps.parameters(a=(1.0, 2.0))
    rod = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-a * ps.unknown("u", x).diff(x, 2), 1), ps.Dirichlet(0))
    with pytest.raises(ps.ParasolError, match=message):
        ps.learn(rod, **options)


def test_an_answer_says_where_it_is_and_how_wrong_it_can_be():
    answer = line()(a=0.25, b=0.5)
    assert repr(answer) == f"<Answer at a=0.25, b=0.5: 3 values, relative error at most {answer.bound:.1e}, calibrated>"
    assert repr(line()([[0.1, 0.2]])) == "<Answer at 1 parameter vector, 3 values each>"


def test_a_parameter_that_never_changes_is_named():
    mus = {"a": np.full(40, 0.5), "b": np.linspace(0, 1, 40)}
    with pytest.raises(ps.ParasolError, match=r"the parameter 'a' is 0\.5 in all runs\. Leave it out"):
        ps.learn(data=ps.Results(mus, {"u": VALUES}))


def test_a_name_too_many_is_no_parameter():
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None, ranges={"a": (0.0, 1.0)})
    for ask in (lambda: line(a=0.5, b=0.5), lambda: line({"a": 0.5, "b": 1.0}), lambda: line(b=0.5)):
        with pytest.raises(ps.ParasolError, match="unknown parameter 'b'"):
            ask()


@pytest.mark.parametrize("name", ["self", "mus", "tolerance"])
def test_parameters_of_any_name(name):
    surrogate = ps.fit_snapshots({name: MUS[:, 0]}, VALUES, "linear", level=None)
    by_mapping = surrogate({name: 0.5}).values
    assert np.array_equal(by_mapping, surrogate([0.5]).values)
    if name == "self":
        assert np.array_equal(by_mapping, surrogate(self=0.5).values)

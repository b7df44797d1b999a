"""Parameters with nothing between their values: declared, drawn, named, and refused between."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.runtime.parameters import parameter_space

BOX = {"load": (1.0, 3.0), "material": ps.Choice("steel", "brass", "wood"), "n": ps.Choice(4, 1, 2)}
STIFFNESS = {"steel": 200.0, "brass": 100.0, "wood": 10.0}


def runs(n=240, seed=0):
    rng = np.random.default_rng(seed)
    load, material = rng.uniform(1, 3, n), rng.choice(list(STIFFNESS), n)
    count = rng.choice([1.0, 2.0, 4.0], n)
    stiff = np.array([STIFFNESS[m] for m in material])
    x = np.linspace(0, 1, 9)
    return {"load": load, "material": material, "n": count}, (load / np.log(stiff))[:, None] * x ** count[:, None]


@pytest.fixture(scope="module")
def beam():
    table, u = runs()
    return ps.learn(data=ps.Results(table, u), tolerance=0.1, parameters=BOX, recipe="gaussian process")


def test_names_and_numbers_are_answered(beam):
    table, u = runs(60, seed=1)
    answer = beam(table)
    assert beam.facts["learn"]["met"]
    assert answer.bound_kind[0] == "calibrated"
    off = np.linalg.norm(answer.values - u, axis=1) / np.linalg.norm(u, axis=1)
    assert np.mean(off <= answer.bound) > 0.85
    one = beam(load=2.0, material="brass", n=2)
    assert np.array_equal(one.values, beam([2.0, 1.0, 2.0]).values)  # the place of brass among the choices
    assert "material one of steel, brass, wood" in str(beam.parameters)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"load": 2.0, "material": "gold", "n": 2}, "material='gold' is none of its choices: steel, brass, wood"),
        ({"load": 2.0, "material": 0.5, "n": 2}, "material=0.5 is none of its choices"),
        ({"load": 2.0, "material": "wood", "n": 3}, "n=3 is none of its choices: 1, 2, 4"),
    ],
)
@pytest.mark.parametrize("extrapolate", [False, True])
def test_between_the_choices_nothing_is_said(beam, asked, message, extrapolate):
    with pytest.raises(ps.ParasolError, match=message):
        beam(asked, extrapolate=extrapolate)


def test_samples_are_choices():
    space = parameter_space(BOX)
    mus = ps.sample(space, 90, rng=0)
    assert set(mus[:, 1]) == {0.0, 1.0, 2.0}
    assert set(mus[:, 2]) == {1.0, 2.0, 4.0}
    counts = np.unique(mus[:, 2], return_counts=True)[1]
    assert counts.min() > 20  # each as often as the others
    space.check(mus)
    assert [p.middle for p in space.scalars] == [2.0, 1.0, 2.0]
    low, middle, high = (space.from_unit(np.full((1, 3), t))[0] for t in (0.0, 0.5, 1.0))
    assert [*low[1:], *middle[1:], *high[1:]] == [0, 1, 1, 2, 2, 4]


def test_a_file_and_a_command_know_them(beam, tmp_path):
    path = ps.save(beam, tmp_path / "beam.parasol")
    assert ps.load(path).parameters == beam.parameters
    ask = lambda load: CliRunner().invoke(app, ["predict", str(path), f"load={load}", "material=brass", "n=2"])  # noqa: E731
    assert ask(2).exit_code == 0
    assert "load=heavy" in ask("heavy").stderr


def test_a_solver_may_have_them():
    def solve(mu):
        assert mu[1] in (1.0, 2.0, 3.0)
        return mu[0] * np.linspace(0, 1, 5) ** mu[1]

    surrogate = ps.learn(solve, 1e-2, parameters={"a": (1.0, 2.0), "n": ps.Choice(1, 2, 3)}, recipe="gaussian process")
    assert np.allclose(surrogate(a=1.5, n=3).values, solve([1.5, 3.0]), atol=2e-2)
    with pytest.raises(ps.ParasolError, match=r"n=1.5 is none of its choices"):
        surrogate(a=1.5, n=1.5)


@pytest.mark.parametrize("values", [(), ("steel",), ("a", "a"), ("a", 1), (None, 2), (1, 1.0)])
def test_choices_that_are_none(values):
    with pytest.raises(ps.ParasolError):
        ps.Choice(*values)


def test_text_that_nobody_declared_is_refused_before_the_work():
    table, u = runs(20)
    results = ps.Results(table, u)
    with pytest.raises(ps.ParasolError, match=r"column 'material' of the parameters is text .*ps\.Choice"):
        ps.learn(data=results)
    with pytest.raises(ps.ParasolError, match="is text"):
        ps.learn(data=results, parameters={**BOX, "material": (0, 2)})
    with pytest.raises(ps.ParasolError, match="'wood' is none of its choices"):
        ps.learn(data=results, parameters={**BOX, "material": ps.Choice("steel", "brass")})
    with pytest.raises(ps.ParasolError, match="Name each column once"):
        ps.learn(data=results, parameters={"load": (1, 3)})


def test_a_choice_is_no_symbol():
    """It became a range without a word, with samples and answers between its values."""
    with pytest.raises(ps.ParasolError, match="'n' is a choice: equations and matrices take ranges"):
        ps.parameters(n=ps.Choice(1, 2, 9))
    with pytest.raises(ps.ParasolError, match="'n' is a choice"):
        ps.AffineModel(lambda mu: np.diag([mu[0], 1.0]), np.ones(2), parameters={"n": ps.Choice(1, 2, 9)})


def test_a_space_knows_its_choices():
    space = parameter_space(BOX)
    for extrapolate in (False, True):
        with pytest.raises(ps.ParasolError, match=r"n=1\.6 is none of its choices"):
            space.check([[2.0, 1.0, 1.6]], extrapolate=extrapolate)
    count, material = space.scalars[2], space.scalars[1]
    assert count.nearest(np.array([0.0, 1.4, 1.6, 2.9, 3.1, 9.0])).tolist() == [1, 1, 2, 2, 4, 4]
    assert count.within(1.0, 2.0).choices == (1.0, 2.0)
    with pytest.raises(ps.ParasolError, match="that have names"):
        replace(material, high=3.0, choices=(0.0, 1.0, 2.0, 3.0))

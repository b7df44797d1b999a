import json

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.report.render import as_json
from parasol_lab import theorem
from parasol_lab.theorem import examination
from parasol_lab.theorem.growth import BOUNDS
from parasol_lab.theorem.networks.bounds import LARGEST_ACCURACY
from parasol_lab.theorem.words import comparison_rows, growth_rows, saving_rows, theorem_rows

MINE = """
import parasol as ps
x, y = ps.coordinates("x y")
a, k = ps.parameters(a=(1.0, 2.0), k=(0.0, 1.0))
u = ps.unknown("u", x, y)
problem = ps.Problem(
    ps.Disc(), ps.Eq(-0.03 * a * ps.laplacian(u) + (1 + k) * u, 1 + k * x), ps.Dirichlet(0), name="mine",
    settings={"paper": ps.Settings(n_nodes=120)},
)
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("theorem") / "mine.py"
    path.write_text(MINE)
    return path


@pytest.fixture(scope="module")
def examined(mine):
    """One examination of everything, with one width to train."""
    patch = pytest.MonkeyPatch()
    patch.setattr(examination, "_WIDTHS", ((4,),))
    patch.setattr(examination, "_N_LABELS", 150)
    said = []
    found = theorem.examine(ps.load_problem(str(mine)), n_modes=3, n_snapshots=25, progress=said.append)
    patch.undo()
    assert said[:2] == ["discretising", "solving"]
    assert said[-1] == "training"
    return found


def test_the_network_is_what_was_counted_and_as_exact_as_asked(examined):
    facts = examined.facts
    network, test = facts["network"], facts["test"]
    assert network["construction"] == "chebyshev"
    assert network["depth"] == examined.surrogate.map.network.depth
    assert 0 < test["random_error"] <= test["error"] <= network["proven"] <= facts["accuracy"] == 1e-2
    assert test["error"] > 0.5 * network["proven"]  # the proof gives away little
    assert network["proven"] == pytest.approx(network["polynomial_error"] + network["network_error"], rel=1e-12)
    assert (test["n_random"], test["n_corners"]) == (1000, 4)
    # the error once more, by nothing of the study
    mus = examined.plan.system.parameters.grid(2, 2)
    exact = examined.plan.system.coefficients(mus)
    gaps = np.linalg.norm(examined.surrogate.coefficients(mus) - exact, axis=1)
    assert gaps.max() / examined.plan.stability.size <= test["error"] * (1 + 1e-9)


def test_counts_stay_below_bounds(examined):
    rows = {row["name"]: row for row in examined.facts["rows"]}
    kinds = ("shared", "refined", "counting", "theorem", "chebyshev")
    shared, refined, counting, paper, series = (rows[BOUNDS[kind]] for kind in kinds)
    built, least = rows["Chebyshev series"], rows["no ReLU network can have fewer weights"]
    counted = {name: rows[f"{name}, not built"] for name in ("the paper's network", "inverse with shared powers")}
    for size in ("depth", "n_weights"):
        assert built[size] <= series[size]
        assert counted["inverse with shared powers"][size] <= min(shared[size], refined[size])
        assert max(shared[size], refined[size]) <= paper[size]
        assert counted["the paper's network"][size] <= counting[size] <= paper[size]
    assert built["n_weights"] < counted["inverse with shared powers"]["n_weights"] / 10
    assert counted["inverse with shared powers"]["n_weights"] < counted["the paper's network"]["n_weights"]
    trained = [row for row in rows.values() if row["kind"] == "trained"]
    assert all(least["n_weights"] <= row["n_weights"] for row in (built, trained[-1]))
    assert [row["depth"] for row in trained] == [2, 2, 2]
    assert all(row["n_weights"] < 100 for row in trained)


def test_every_idea_saves(examined):
    rows = examined.facts["savings"]
    ladder = [row["n_weights"] for row in rows[1:10]]
    assert ladder == sorted(ladder, reverse=True)
    assert rows[0]["rows"] == rows[1]["rows"] > 100 > rows[2]["rows"]
    assert rows[2]["kappa"] == pytest.approx(rows[1]["kappa"], rel=1e-9)
    assert rows[3]["kappa"] < rows[2]["kappa"]
    assert all(row["n_weights"] > rows[9]["n_weights"] for row in rows[11:12])
    assert all(row["n_weights"] <= row["bound_theorem"] for row in rows)


def test_growth_has_the_exponents_of_the_theory(examined):
    found = examined.facts["growth"]
    assert 2.2 < found["exponent_of_log"]["bound_chebyshev"] < 3.2  # t^(p + 1), p = 2
    for row in (*found["over_accuracy"], *found["over_modes"]):
        assert row["shared"] <= min(row["bound_shared"], row["bound_refined"])
        assert row["paper"] <= row["bound_counting"] <= row["bound_theorem"]
    assert found["over_accuracy"][0]["accuracy"] < LARGEST_ACCURACY
    # M of our network is nearly linear in log(1/eps) over this range, the paper's bound nearly quadratic
    logs, modes = found["exponent_of_log"], found["exponent_of_modes"]
    assert 0.8 < logs["shared"] < 1.2
    assert logs["bound_theorem"] > logs["shared"] + 0.4
    assert 1.9 < modes["shared"] < 3.3  # d³ for the coarse inverse and d² t for the refined vector
    assert abs(modes["paper"] - 3) < 0.35


def test_the_facts_are_plain_and_have_words(examined, tmp_path):
    facts = examined.facts
    assert json.loads(as_json(facts))["network"] == facts["network"]
    assert dict(theorem_rows(facts))["network"].startswith(f"chebyshev: {facts['network']['depth']} layers")
    assert len(comparison_rows(facts)) == len(facts["rows"]) == 14
    assert len(saving_rows(facts)) == 13
    assert len(growth_rows(facts)) == 7
    alone = facts["growth"] | {"exponent_of_modes": dict.fromkeys(facts["growth"]["exponent_of_modes"])}  # one mode
    assert all(words.startswith("M ~ log(1/eps)^") for _, words in growth_rows(facts | {"growth": alone}))
    assert theorem.draw_theorem(facts, tmp_path / "growth.png").stat().st_size > 20_000
    with pytest.raises(ps.ParasolError, match="growth was not counted"):
        theorem.draw_theorem(facts | {"growth": None}, tmp_path / "none.png")


def run(*words):
    return CliRunner().invoke(app, ["theorem", *[str(word) for word in words]])


def test_command_builds_tests_and_saves(mine, tmp_path):
    saved, file = tmp_path / "model.parasol", tmp_path / "f.json"
    options = ("--modes", 2, "--snapshots", 12, "--no-compare", "--accuracy", 0.05)
    found = run(mine, *options, "--construction", "paper", "--no-compress", "--save", saved, "--json", file)
    assert found.exit_code == 0, found.output
    facts = json.loads(file.read_text())
    assert facts["network"]["construction"] == "paper"
    assert facts["system"]["rows"] == facts["n_nodes"] == 120
    assert facts["test"]["error"] <= 0.05
    for words in (f"{facts['network']['n_weights']:,} weights", "the paper's bound", "wrote"):
        assert words in found.output
    answer = ps.load(saved)([1.5, 0.5])
    assert 0 < answer.bound < 1
    found = run(mine, *options, "--json", "-")
    assert json.loads(found.stdout)["growth"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sine-gordon",), "sine-gordon depends on time"),
        (("helmholtz", "--accuracy", "0.25"), "strictly between 0 and 1/4"),
        (("helmholtz", "--accuracy", "0"), "strictly between 0 and 1/4"),
        (("helmholtz", "--no-compare", "--out", "x.png"), "Leave out one of them"),
        (("helmholtz", "--out", "x.txt"), "x.txt"),
        (("helmholtz", "--modes", "30", "--snapshots", "20"), "cannot give n_modes=30"),
        (("nothing",), "unknown problem"),
    ],
)
def test_command_refuses_in_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(*words)
    assert found.exit_code == 2
    assert message in found.output
    assert len(found.output.splitlines()) == 1
    assert not list(tmp_path.iterdir())

"""The estimate of an answer's error stands beside its bound wherever answers are read: tables, JSON, files, notebooks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import estimated
import parasol as ps
from parasol.cli import app
from parasol.delivery.answers import write_answer
from parasol.report.answers import AnswerReport
from parasol.report.budget.check import check
from parasol.report.budget.figure import draw_budget
from parasol.runtime.descriptions import SurrogateReport

PROBABLE = "probable: holds with probability 0.9997 for each parameter"
KINDS = ["with_map", "without_map", "proven"]
MUS = np.array([[0.35, 1.4], [0.9, 1.7], [2.0, 0.3], [3.5, 1.1], [0.12, 0.1]])


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())  # long lines are wrapped


@pytest.fixture(scope="module", params=KINDS)
def surrogate(request):
    return getattr(estimated, request.param)()


@pytest.fixture(scope="module")
def path(surrogate, tmp_path_factory):
    return ps.save(surrogate, tmp_path_factory.mktemp("estimates") / "model.parasol")


def test_the_estimate_is_near_the_error_and_the_bound_above(surrogate):
    mus = ps.sample(estimated.model(), 12, rng=5)
    answer, truth = surrogate(mus), ps.solve_many(estimated.model(), mus).solutions
    errors = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert np.all((answer.estimate > errors / 3) & (answer.estimate < 3 * errors))
    assert np.all(answer.bound > errors)


def test_after_loading_restricting_and_in_single_precision(surrogate, path):
    loaded, answer = ps.load(path), surrogate(MUS)
    assert loaded(MUS).method == answer.method
    for other in (loaded(MUS), loaded.restricted(nodes=[3, 5])(MUS), loaded.restricted(points=[[0.1, 0.2]])(MUS)):
        assert np.allclose(other.estimate, answer.estimate, rtol=1e-9)
        assert np.allclose(other.bound, answer.bound, rtol=1e-9)
        assert (other.bound_kind, other.probability) == (answer.bound_kind, answer.probability)
    single = loaded(MUS, dtype=np.float32)
    assert np.allclose(single.estimate, answer.estimate, rtol=1e-3)
    assert np.all(single.estimate <= single.bound)


def test_the_table_and_the_json_of_an_answer(surrogate, path, tmp_path):
    (tmp_path / "mus.csv").write_text("a,k\n" + "\n".join(f"{a},{k}" for a, k in MUS))
    text = run("predict", path, "--mus", tmp_path / "mus.csv", "--json", tmp_path / "facts.json")
    answer, facts = surrogate(MUS), json.loads((tmp_path / "facts.json").read_text())
    assert facts["estimate"]["maximum"] == pytest.approx(np.max(answer.estimate), rel=1e-9)
    assert facts["probability"] == answer.probability
    kinds = set(answer.bound_kind)
    assert facts["bound_is"] == ("partly proven, elsewhere " if "proven" in kinds else "") + PROBABLE
    assert f"about {np.max(answer.estimate):.1e}, at most {np.max(answer.bound):.1e} against its solver" in text
    assert facts["bound_is"] in text
    for i in range(len(MUS)):  # one of a kind is called by its own word
        row = AnswerReport(surrogate(MUS[i])).error_rows()["relative error"]
        assert row.endswith({"proven": ", proven", "probable": PROBABLE}[answer.bound_kind[i]])
        one = surrogate(MUS[i])
        about, off = one.quantity_estimates["average"], one.quantity_bounds["average"]
        words = f", off by about {about:.1e}, at most {off:.1e} ({one.quantity_bound_kind})"
        assert AnswerReport(one).error_rows()["average"].endswith(words)
    assert facts["quantity_estimates"]["average"] == pytest.approx(
        np.max(answer.quantity_estimates["average"]), rel=1e-6
    )
    beyond = AnswerReport(surrogate([5.0, 1.0], extrapolate=True)).error_rows()["relative error"]
    assert "nothing is claimed outside the box" in beyond


def test_files_hold_it(surrogate, path, tmp_path):
    answer = surrogate(MUS)
    arrays = np.load(write_answer(answer, tmp_path / "u.npz", bounds=True))
    assert np.array_equal(arrays["estimate"], answer.estimate)
    assert arrays["bound_kind"].tolist() == answer.bound_kind
    table = np.genfromtxt(write_answer(answer, tmp_path / "u.csv", bounds=True), delimiter=",", names=True)
    first = table[np.unique(table["sample"], return_index=True)[1]]
    assert np.array_equal(first["estimate"], answer.estimate)
    assert np.array_equal(first["bound"], answer.bound)
    assert np.array_equal(arrays["estimate of quantity: average"], answer.quantity_estimates["average"])
    one = surrogate(MUS[0])
    assert np.load(write_answer(one, tmp_path / "one.npz", bounds=True))["estimate"] == one.estimate


def test_datasets_hold_it(surrogate, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    answer = surrogate(MUS)
    with xarray.open_dataset(write_answer(answer, tmp_path / "u.nc", bounds=True)) as found:
        assert np.array_equal(found["estimate"], answer.estimate)
        assert np.array_equal(found["estimate of average"], answer.quantity_estimates["average"])
        assert found["bound_kind"].values.tolist() == answer.bound_kind
        assert PROBABLE in found["bound_kind"].attrs["meaning"]
    single = surrogate(MUS[0]).to_xarray(bounds=True)
    assert float(single["estimate"]) == surrogate(MUS[0]).estimate
    assert "estimate" not in surrogate(MUS).to_xarray()


def test_a_surrogate_says_what_its_estimates_are_made_of(surrogate, path):
    text, about = run("info", path), SurrogateReport(surrogate).to_dict()
    assert PROBABLE in text
    m = len(surrogate.reduced.duals.mus)
    assert f"by 20 random duals at {m} parameters, checked with 3 fresh solves" in text
    assert about["estimate"]["probability"] == pytest.approx(0.99972, abs=1e-5)
    assert about["estimate"]["factor"] == 2.5
    has_constants = surrogate.reduced.certificate is not None
    assert about["bound"]["kind"] == ("certificate" if has_constants else "probable")
    assert ("constants known at 1 parameter" in text) == has_constants
    assert "random duals" in surrogate.reduced._repr_html_()
    assert "about" in surrogate(MUS[0])._repr_html_()


@pytest.mark.slow
def test_the_budget_compares_it_with_errors(surrogate, tmp_path):
    found = check(surrogate, n=5)
    assert found.holds
    ratio = found.to_dict()["estimate_over_error"]
    assert 1 / 3 < ratio["min"] <= ratio["median"] <= ratio["max"] < 3
    assert "over the error: least" in found.rows()["estimate"]
    shown = "100 % probable: 0.9997 for each parameter" in found.rows()["bound"]
    assert shown == (surrogate.reduced.certificate is None)
    assert draw_budget(found, tmp_path / "budget.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_probable_bound_may_miss_as_often_as_its_probability_says():
    found = check(estimated.with_map(), n=4)
    many = {name: np.tile(getattr(found, name), 25) for name in ("errors", "projection_errors", "bounds", "rigorous")}
    many |= {"probable": np.tile(found.probable, 25), "mus": np.tile(found.mus, (25, 1))}
    hundred = replace(found, **many)
    assert hundred.allowed == 2  # 100 · 2.8e-4 over 0.01 is 2.8
    for n_missed in (2, 3):
        errors = hundred.errors.copy()
        errors[:n_missed] = 2 * hundred.bounds[:n_missed]
        changed = replace(hundred, errors=errors)
        assert changed.holds == (n_missed == 2)
    assert "3 of 100 errors exceed their bound" in changed.broken
    proven = replace(hundred, errors=errors, probable=~many["probable"], rigorous=many["probable"])
    assert "claims to be proven" in proven.broken


def test_data_prove_nothing(tmp_path):
    result = CliRunner().invoke(app, ["learn", "--data", "none.npz", "--proof", "--out", str(tmp_path / "m.parasol")])
    assert result.exit_code == 2
    assert "data prove nothing" in result.stderr


def test_learning_with_proof(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import parasol as ps\nx, y = ps.coordinates('x y')\n(a,) = ps.parameters(a=(1.0, 4.0))\nu = ps.unknown('u', x, y)\n"
        "disc = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(1 + x))\n"
    )
    words = ("learn", "mine.py", "-t", "1e-2", "--nodes", "100", "--recipe", "polynomial")
    assert ", with a probability of 0.9997 each" in run(*words, "--out", "probable.parasol")
    text = run(*words, "--proof", "--out", "proven.parasol", "--json", "facts.json")
    assert json.loads((tmp_path / "facts.json").read_text())["learn"]["proven"] > 0.9
    assert "proven" in text
    assert ps.load("proven.parasol").reduced.certificate is not None
    assert ps.load("probable.parasol").reduced.certificate is None

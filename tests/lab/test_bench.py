"""The benchmarks run end to end in their small version, and their figures make sense."""

import json

import pytest
from typer.testing import CliRunner

from parasol.cli import app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "offline.json"
    result = run("bench", "offline", "--quick", "--json", path)
    assert result.exit_code == 0, result.output
    assert "bound over error" in result.stdout
    return json.loads(path.read_text())


@pytest.mark.slow
def test_offline_figures(offline):
    assert offline["pod"]["n_modes"]["1e-06"] >= 10
    assert offline["reduced"]["solve"]["over_projection"] < 1.3 < offline["reduced"]["none"]["over_projection"]
    assert max(offline["pod"]["angles"].values()) < 1e-8
    for case in offline["certificate"]["cases"].values():
        assert case["least"] >= 1
        assert case["median"] < 10
    assert offline["adaptive"]["certified"] < 1.5e-5
    assert offline["adaptive"]["n_solves"] <= 40
    assert offline["machine"]["cpus"] >= 1


@pytest.mark.slow
def test_online_figures(tmp_path):
    path = tmp_path / "online.json"
    options = ("--quick", "--store", tmp_path / "store", "--json", path)
    assert run("bench", "online", "schrodinger", *options).exit_code == 0
    rows = {row["map"]: row for row in json.loads(path.read_text())["schrodinger"]["rows"]}
    assert rows["linear"]["error"] < 1.1 * rows["best"]["error"]
    assert all(row["error"] >= 0.999 * row["projection"] for row in rows.values())
    assert (tmp_path / "store" / "schrodinger-data-quick" / "manifest.json").exists()


def test_unknown_problem_is_one_line():
    result = run("bench", "online", "navier-stokes")
    assert result.exit_code == 2
    assert "helmholtz, sine-gordon, schrodinger" in result.stderr

"""Files that released versions wrote load with this one and answer what they answered then."""

import json
from pathlib import Path

import numpy as np
import pytest

import parasol as ps
from parasol.learning import LearnReport

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("kept_files/*/answers.json"))
ANSWERS = {folder: json.loads((folder / "answers.json").read_text()) for folder in VERSIONS}
SURROGATES = [(folder, name) for folder, answers in ANSWERS.items() for name in answers if name != "snapshots"]


def test_there_are_files_of_the_first_version():
    assert "0.1.0" in [folder.name for folder in VERSIONS]


@pytest.mark.parametrize(("folder", "name"), SURROGATES, ids=lambda part: getattr(part, "name", part))
def test_a_surrogate_answers_as_it_did(folder, name):
    then = ANSWERS[folder][name]
    surrogate = ps.load(folder / f"{name}.parasol")
    answer = surrogate(then["mus"])
    assert list(surrogate.parameters.names) == then["names"]
    size = np.abs(then["values"]).max()
    assert np.abs(answer.values - then["values"]).max() <= 1e-9 * size
    assert sorted(answer.quantities) == sorted(then["quantities"])
    for quantity, values in then["quantities"].items():
        assert np.allclose(answer.quantities[quantity], values, rtol=1e-8)
    gradient = np.asarray(then["gradient"])
    assert np.abs(surrogate.gradient(then["mus"][0]) - gradient).max() <= 1e-5 * np.abs(gradient).max()
    assert set(then["facts"]) <= set(surrogate.facts)
    if "learn" in surrogate.facts:
        report = LearnReport.of(surrogate).to_dict()
        assert json.dumps(report, sort_keys=True) == json.dumps(surrogate.facts["learn"], sort_keys=True)
    if then["bound"] is not None:  # a later version may know a reason for a larger one, never for a smaller one
        assert np.all(answer.bound >= np.asarray(then["bound"]) * (1 - 1e-6))


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_a_store_of_snapshots_opens(folder):
    then = ANSWERS[folder]["snapshots"]
    snapshots = ps.reduction.open_snapshots(folder / "snapshots")
    assert np.array_equal(snapshots.mus, then["mus"])
    assert np.array_equal(snapshots.solutions, then["solutions"])

"""Messages that are written for Python, as the command line and the server tell them."""

import json
import re
import sys
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app, one_line_warnings, start
from parasol.cli.reading import command_function, words_of, words_of_python
from parasol.cli.start import OWN


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARASOL_DEBUG", raising=False)
    mus = np.linspace(1e-3, 1.0, 12)[:, None]
    ps.save(ps.fit_snapshots(mus, mus * np.arange(1.0, 9.0), "linear", level=None), "layer.parasol")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict layer.parasol p1=9", "or pass --extrapolate."),
        ("predict layer.parasol p1=9 --json a.json", "or pass --extrapolate."),  # by whichever reader
        ("solve reaction-layer nu=9", "or pass --extrapolate."),
        ("solve reaction-layer --nodes 1", "--nodes 1 is too small"),
        ("solve helmholtz --stencil 3", "--stencil 3 is too small for --degree 5"),
        ("solve helmholtz --kernel imq:x", "--kernel 'imq:x' has something"),
        ("solve burgers --step 0.1 --tolerance 1e-3", "--step 0.1 and --tolerance 0.001 exclude each other"),
        ("learn reaction-layer --tolerance 5", "--tolerance 5.0 is a relative error"),
        ("learn reaction-layer --recipe polynomia", "--recipe 'polynomia' is unknown"),
        ("learn burgers --proof", "--proof is for linear steady problems"),
        ("paper helmholz --out there", "PROBLEM 'helmholz' is unknown. Did you mean 'helmholtz'?"),
    ],
)
def test_messages_speak_of_options_and_not_of_arguments_of_python(here, capfd, monkeypatch, line, said):
    by_typer = CliRunner().invoke(app, line.split())
    monkeypatch.setattr(sys, "argv", ["parasol", *line.split()])
    with pytest.raises(SystemExit) as end:
        start.main()
    for text, status in ((by_typer.stderr, by_typer.exit_code), (capfd.readouterr().err, end.value.code)):
        assert status == 2
        assert said in text
        assert text.count("\n") == 1
        assert not re.search(r"\w=(True|False|None)", text)
        assert "n_nodes" not in text


def test_warnings_and_answers_speak_so_too(here):
    answer = CliRunner().invoke(app, ["predict", "layer.parasol", "p1=9", "--extrapolate", "--json", "-"])
    assert json.loads(answer.stdout)["extrapolated"] == 1
    outside = CliRunner().invoke(app, ["solve", "reaction-layer", "nu=2", "--extrapolate"])
    assert outside.exit_code == 0
    assert "outside the box" in outside.stdout
    assert "outside the box" not in CliRunner().invoke(app, ["solve", "reaction-layer"]).stdout
    start.begins("learn")
    with one_line_warnings() as warned:
        warnings.warn("few nodes; give more with n_nodes, or total=True.", ps.ParasolWarning, stacklevel=1)
    assert warned == ["few nodes; give more with --nodes, or --total."]


def test_every_option_has_the_word_of_python_that_it_stands_for():
    """What two commands share has one name in Python, and no option is forgotten."""
    known = {name: words_of_python(name) for names in OWN.values() for name in names}
    for name, words in known.items():
        assert len(words) == len(words_of(command_function(name)))
    assert known["learn"]["n_nodes"] == known["solve"]["n_nodes"] == "--nodes"
    assert known["solve"]["stencil_size"] == "--stencil"
    assert all(words.get("rng", "--seed") == "--seed" for words in known.values())

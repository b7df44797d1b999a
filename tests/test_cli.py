import json
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol
from parasol import cli
from parasol.cli import app

MINE = """
import parasol as ps
x, y = ps.coordinates("x y")
(a,) = ps.parameters(a=(1.0, 4.0, "log"))
u = ps.unknown("u", x, y)
disc = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0), exact=(1 - x**2 - y**2) / a)
"""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def new_files(folder):
    return {path.name for path in folder.iterdir()} - {"mine.py", "__pycache__"}


def test_help_and_version():
    assert run("--version").stdout == f"parasol {parasol.__version__}\n"
    text = run("--help").stdout
    assert "parasol problems" in text
    assert "parasol solve helmholtz a=0.927 k=1.697 --out u.png" in text


def test_problems_lists_the_catalogue(tmp_path):
    result = run("problems", "--json", tmp_path / "list.json")
    assert result.exit_code == 0
    for name in parasol.problem_names():
        assert name in result.stdout
    assert "-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))" in result.stdout
    assert "a in [0.1, 4] (log)" in result.stdout
    listed = {fact["name"]: fact for fact in json.loads((tmp_path / "list.json").read_text())}
    assert listed["cooled-pipe"]["domain"] == "Disc - Disc"
    assert listed["cooled-pipe"]["parts"] == ["outside", "inside"]
    assert listed["helmholtz"]["presets"] == ["paper"]


def test_solve_own_problem_and_write_everything(mine):
    outputs = ["u.png", "u.csv", "u.npy", "u.vtkhdf"]
    flags = [word for name in outputs for word in ("--out", name)]
    result = run("solve", "mine.py", "a=1.25", "--nodes", 300, *flags, "--nodes-out", "n.png", "--json", "facts.json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert new_files(mine) == {*outputs, "n.png", "facts.json"}
    for name in new_files(mine):
        assert f"wrote {name}" in result.stdout
    facts = json.loads((mine / "facts.json").read_text())
    assert facts["parameters"] == {"a": 1.25}
    assert facts["left_to_middle"] == []
    assert facts["n_nodes"] == facts["n_interior"] + facts["n_boundary"] == 300
    assert facts["error"] < 1e-8
    assert facts["relative_residual"] < 1e-10
    assert facts["operator_terms"] == ["a", "1"]
    x, y, u = np.load("u.npy").T
    assert np.allclose(u, (1 - x**2 - y**2) / 1.25, atol=1e-8)


def facts_of(folder, seed):
    scheme = ["--kernel", "phs:3", "--degree", 2, "--stencil", 15]
    return json.loads(
        run("solve", folder / "mine.py:disc", "--nodes", 200, *scheme, "--seed", seed, "--json", "-").stdout
    )


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    (folder / "mine.py").write_text(MINE)
    return facts_of(folder, seed=1)


def test_json_to_stdout_is_only_json(facts):
    assert facts["parameters"] == {"a": pytest.approx(2.0)}
    assert facts["left_to_middle"] == ["a"]
    assert facts["files"] == []


def test_preset_and_single_options_override_it():
    facts = json.loads(
        run("solve", "helmholtz", "--preset", "paper", "--nodes", 300, "--boundary-nodes", 60, "--json", "-").stdout
    )
    assert (facts["n_nodes"], facts["n_boundary"], facts["kernel"], facts["stencil_size"]) == (
        300,
        60,
        "IMQ(epsilon=3.0)",
        50,
    )


def test_scheme_and_seed_come_from_the_options(facts, mine):
    again, other = (facts_of(mine, seed) for seed in (1, 2))
    assert (facts["kernel"], facts["degree"], facts["stencil_size"]) == ("PHS(power=3)", 2, 15)
    assert facts["minimum"] == again["minimum"]
    assert facts["maximum"] == again["maximum"] != other["maximum"]


def test_function_parameters_are_drawn_with_the_seed():
    words = ["solve", "schrodinger", "--nodes", 300, "--degree", 2, "--json", "-", "--seed"]
    one, two = (json.loads(run(*words, seed).stdout) for seed in (1, 2))
    assert one["functions_drawn"] == ["f"]
    assert one["maximum"] != two["maximum"]


def test_warnings_are_one_line(mine):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("solve", "mine.py", "--nodes", 200, "--kernel", "imq:0.2", "--json", "w.json")
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("parasol: warning:")
    assert "ill-conditioned" in lines[0]
    assert json.loads((mine / "w.json").read_text())["warnings"] == [lines[0].removeprefix("parasol: warning: ")]


BAD = [
    (["nope"], "unknown problem 'nope'"),
    (["missing.py"], "no file 'missing.py'"),
    (["mine.py:other"], "no problem named 'other'"),
    (["mine.py", "b=1"], "unknown parameter 'b'"),
    (["mine.py", "a=9"], "outside its range"),
    (["mine.py", "a=foo"], "'a=foo' does not give a finite number"),
    (["mine.py", "a=nan"], "finite number"),
    (["mine.py", "a"], "not an assignment"),
    (["mine.py", "a=1", "a=2"], "twice"),
    (["schrodinger", "f=1"], "is a function"),
    (["mine.py", "--degree", "4", "--stencil", "7"], "stencil_size=7 is too small for degree=4"),
    (["mine.py", "--degree", "-3"], "degree=-3"),
    (["mine.py", "--kernel", "foo:3"], "kernel='foo' is unknown"),
    (["mine.py", "--kernel", "imq:nan"], "not a number"),
    (["mine.py", "--preset", "paper"], "preset 'paper' is unknown"),
    (["mine.py", "--nodes", "5"], "n_nodes=5"),
    (["mine.py", "--nodes", "0"], "--nodes"),
    (["mine.py", "--nodes", "many"], "--nodes"),
    (["mine.py", "--method", "magic"], "magic"),
    (["mine.py", "--frobnicate"], "--frobnicate"),
    (["mine.py", "--out", "u.docx"], "'.docx' is unknown"),
    (["mine.py", "--out", "no/u.png"], "no directory 'no'"),
    (["mine.py", "--json", "no/u.json"], "no directory 'no'"),
    (["mine.py", "--nodes-out", "n.csv"], "'.csv' is unknown"),
    (["mine.py", "--out", "a.png", "--nodes-out", "./a.png"], "same file"),
    ([], "PROBLEM"),
]


@pytest.mark.parametrize(
    ("words", "expected"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_input_is_one_line_and_writes_nothing(mine, words, expected):
    result = run("solve", *words, *(["--out", "u.csv"] if words else []))
    _refused(result, expected)
    assert new_files(mine) == set()


def _refused(result, expected):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("parasol: ")
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ps.Problem(ps.Surface("no.stl"), ps.Eq(-ps.laplacian(w), 1), ps.Dirichlet(0))', "no.stl"),
        ('ps.Problem(ps.Surface("mine.py"), ps.Eq(-ps.laplacian(w), 1), ps.Dirichlet(0))', "mine.py"),
        ("ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), 1), ps.Neumann(0))", "singular"),
        ("ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), u**2), ps.Dirichlet(0))", "nonlinear solver"),
        ("ps.Problem(ps.Disc(), ps.Eq(x, 1), ps.Dirichlet(0))", "unknown"),
        ("ps.Problem(ps.Box((0, 0), (1, 1)), ps.Eq(-ps.laplacian(u), 1), {'left': ps.Dirichlet(0)})", "no condition"),
        ("ps.Problem(ps.Disc() - ps.Disc(radius=2), ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(0))", "interior"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_wrong_problem_files_are_one_line(mine, text, expected):
    head = "import parasol as ps\nx, y = ps.coordinates('x y')\nu = ps.unknown('u', x, y)\nw = ps.unknown('w', *ps.coordinates('x y z'))\n"
    (mine / "bad.py").write_text(f"{head}p = {text}\n")
    _refused(run("solve", "bad.py", "--nodes", 200, "--out", "u.csv"), expected)
    assert new_files(mine) == {"bad.py"}


def test_wrong_commands_are_one_line():
    _refused(run("sovle"), "sovle")
    _refused(run("--bogus"), "--bogus")


def test_all_files_or_none(mine, monkeypatch):
    from parasol.study import figures

    def fails(*_):
        raise OSError(28, "No space left on device", "u.png")

    monkeypatch.setattr(figures, "draw", fails)
    result = run("solve", "mine.py", "--nodes", 200, "--out", "u.csv", "--out", "u.png")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("parasol: cannot read or write")
    assert "No space left on device" in result.stderr
    assert new_files(mine) == set()


def test_interrupt_is_quiet(mine, monkeypatch):
    from parasol.pde import discretize

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(discretize, "nodes_for", interrupted)
    result = run("solve", "mine.py", "--out", "u.csv")
    assert (result.exit_code, result.stderr) == (130, "parasol: interrupted\n")
    assert new_files(mine) == set()


def test_quiet_prints_nothing_and_progress_names_the_stages(mine, monkeypatch):
    said = []
    monkeypatch.setattr(cli, "_progress", lambda quiet: nullcontext(said.append))
    result = run("solve", "mine.py", "--nodes", 200, "--quiet", "--out", "u.csv")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert said == ["reading the problem", "scattering nodes", "computing weights", "solving", "writing"]


def test_as_a_program(mine, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["parasol", "solve", "mine.py:disc", "--nodes", "200", "--out", "u.csv"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (0, "")
    assert "a = 2 (middle of its range)" in said.out
    assert "wrote u.csv" in said.out
    assert new_files(mine) == {"u.csv"}


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys, parasol.cli\n"
        "try: parasol.cli.main()\n"
        "finally: assert not {'numpy', 'scipy', 'sympy', 'matplotlib', 'h5py'} & set(sys.modules)\n"
    )
    where = {"PYTHONPATH": str(Path(parasol.__file__).parents[1])}  # found from any directory, installed or not
    command = [sys.executable, "-c", code, "solve", "--help"]
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path}
    done = subprocess.run(command, env={**os.environ, **where}, **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--boundary-nodes" in done.stdout

import json
import subprocess
import sys
import warnings
from contextlib import nullcontext

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
    listed = [line.split()[1] for line in text.splitlines() if line.startswith("│ ") and line[2].isalpha()]
    assert " ".join(listed) == "problems solve learn predict check info explore serve export theorem paper bench"
    assert "Commands" not in text  # what no group holds would be under that


def test_problems_lists_the_catalogue(tmp_path):
    result = run("problems", "--json", tmp_path / "list.json")
    assert result.exit_code == 0
    for name in parasol.pde.problem_names():
        assert name in result.stdout
    assert "-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))" in result.stdout
    assert "a in [0.1, 4] (log)" in result.stdout
    listed = {fact["name"]: fact for fact in json.loads((tmp_path / "list.json").read_text())}
    assert listed["cooled-pipe"]["domain"] == "Disc - Disc"
    assert listed["cooled-pipe"]["parts"] == ["outside", "inside"]
    assert listed["helmholtz"]["presets"] == ["paper"]
    assert listed["elasticity"]["unknowns"] == ["p", "q"]
    assert len(listed["gray-scott"]["equations"]) == 2
    assert (listed["sine-gordon"]["time_order"], listed["sine-gordon"]["linear"]) == (2, False)
    assert listed["sine-gordon"]["times"] == {"first": 0.0, "last": 10.0, "count": 101}
    assert listed["helmholtz"]["times"] is None
    assert "beta*u_t + u_tt = rho*sin(u) + u_xx + u_yy" in result.stdout
    assert "in time: 101 stored times from 0 to 10" in result.stdout


def test_problems_quietly(tmp_path):
    result = run("problems", "--quiet", "--json", tmp_path / "list.json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert len(json.loads((tmp_path / "list.json").read_text())) == len(parasol.pde.problem_names())


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
    assert facts["fields"] == again["fields"] != other["fields"]


def test_function_parameters_are_drawn_with_the_seed():
    words = ["solve", "schrodinger", "--nodes", 300, "--degree", 2, "--json", "-", "--seed"]
    one, two = (json.loads(run(*words, seed).stdout) for seed in (1, 2))
    assert one["functions_drawn"] == ["f"]
    assert one["fields"] != two["fields"]


def facts_from(*words):
    result = run("solve", *words, "--json", "-")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_problem_in_time_takes_times_and_ways_to_step(mine):
    small = ["burgers", "nu=0.1", "--nodes", 60]
    flags = ["--times", "0:0.5:4", "--out", "u.gif", "--out", "u.npz", "--json", "facts.json"]
    result = run("solve", *small, *flags)
    assert result.exit_code == 0, result.stderr
    assert new_files(mine) == {"u.gif", "u.npz", "facts.json"}
    assert np.allclose(np.load("u.npz")["times"], np.linspace(0, 0.5, 4))
    facts = json.loads((mine / "facts.json").read_text())
    assert facts["times"] == {"first": 0.0, "last": 0.5, "count": 4}
    assert facts["integrator"] == "esdirk4"
    assert facts["error"] < 1e-4
    assert f"4 stored times from 0 to 0.5, {facts['n_steps']} steps of esdirk4" in result.stdout
    assert "(l2 over all stored times, against the exact solution)" in result.stdout
    constant = facts_from(*small, "--step", 0.05)
    assert (constant["integrator"], constant["n_steps"], constant["times"]["count"]) == ("sbdf2", 20, 11)
    assert facts_from(*small, "--step", 0.05, "--integrator", "esdirk4")["integrator"] == "esdirk4"
    loose, strict = (facts_from(*small, "--tolerance", tolerance)["n_steps"] for tolerance in (1e-3, 1e-7))
    assert loose < strict


def test_newton_and_systems_in_the_table():
    result = run("solve", "bratu", "rate=1", "--nodes", 200)
    assert "nonlinear: Newton" in result.stdout
    assert "last relative corrections" in result.stdout
    assert "Newton from zero; there may be other solutions" in result.stdout
    facts = facts_from("elasticity", "--nodes", 200)
    assert set(facts["fields"]) == {"p", "q"}
    assert 0 < facts["n_ghosts"] < facts["n_boundary"]
    assert facts["newton_corrections"] == []


DEFAULTS = """
import numpy as np
import parasol as ps
x, y = ps.coordinates("x y")
t = ps.time()
u = ps.unknown("u", x, y, t)
heat = ps.Problem(
    ps.Box((0, 0), (1, 1)), ps.Eq(u.diff(t), ps.laplacian(u)), ps.Dirichlet(0), initial=x*(1 - x)*y*(1 - y),
    times=np.linspace(0, 0.1, 3),
    settings={
        "default": ps.Settings(n_nodes=144, method="lattice", step=0.01),
        "other": ps.Settings(n_nodes=100, method="lattice", degree=2, step=0.05, integrator="esdirk4"),
    },
)
untimed = ps.Problem(heat.domain, heat.equation, heat.boundary, initial=heat.initial)
"""


def test_the_default_preset_is_used_and_options_override_it(mine):
    (mine / "heat.py").write_text(DEFAULTS)

    def how(*words):
        facts = facts_from("heat.py:heat", *words)
        return facts["n_nodes"], facts["n_boundary"], facts["integrator"], facts["n_steps"]

    assert how() == (144, 44, "sbdf2", 10)
    assert how("--nodes", 100, "--step", 0.05) == (100, 36, "sbdf2", 2)
    assert how("--preset", "other") == (100, 36, "esdirk4", 2)
    # constant steps of the preset give way to a tolerance
    assert how("--tolerance", 1e-4)[2] == "esdirk4"
    assert how("--method", "fill")[:2] != (144, 44)
    _refused(run("solve", "heat.py:untimed"), "--times 0:10:101")
    assert facts_from("heat.py:untimed", "--nodes", 200, "--times", "0:0.1:3")["times"]["count"] == 3


def test_choices_are_those_of_the_library():
    from typing import get_args, get_type_hints

    from parasol.cli.solve import solve as solve_command
    from parasol.pde.transient import INTEGRATORS

    hint = get_type_hints(solve_command)["integrator"]
    assert get_args(get_args(hint)[0]) == INTEGRATORS


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
    (["mine.py", "--degree", "4", "--stencil", "7"], "--stencil 7 is too small for --degree 4"),
    (["mine.py", "--degree", "-3"], "--degree -3 must be"),
    (["mine.py", "--kernel", "foo:3"], "--kernel 'foo' is unknown"),
    (["mine.py", "--kernel", "imq:nan"], "not a number"),
    (["mine.py", "--preset", "paper"], "preset 'paper' is unknown"),
    (["mine.py", "--nodes", "5"], "--nodes 5 is too small"),
    (["mine.py", "--nodes", "0"], "--nodes"),
    (["mine.py", "--nodes", "many"], "--nodes"),
    (["mine.py", "--method", "magic"], "magic"),
    (["mine.py", "--frobnicate"], "--frobnicate"),
    (["mine.py", "--out", "u.docx"], "'.docx' is unknown"),
    (["mine.py", "--out", "no/u.png"], "no directory 'no'"),
    (["mine.py", "--json", "no/u.json"], "no directory 'no'"),
    (["mine.py", "--nodes-out", "n.csv"], "'.csv' is unknown"),
    (["mine.py", "--out", "a.png", "--nodes-out", "./a.png"], "same file"),
    (["mine.py", "--out", "u.gif"], "the problem is steady"),
    (["mine.py", "--times", "0:1:2"], "--times is for problems in time"),
    (["mine.py", "--step", "0.1"], "--step is for problems in time"),
    (["burgers", "--times", "0:1"], "not START:STOP:COUNT"),
    (["burgers", "--times", "0:1:many"], "not START:STOP:COUNT"),
    (["burgers", "--times", "1:0:3"], "does not go forward"),
    (["burgers", "--times", "0:1:1"], "at least 2 times"),
    (["burgers", "--times", "0:inf:3"], "does not go forward"),
    (["burgers", "--times", "1:2:3"], "initial state is that at 0"),
    (["burgers", "--nodes", "60", "--step", "0.1", "--tolerance", "1e-3"], "exclude each other"),
    (["burgers", "--nodes", "60", "--step", "-1"], "step must be positive"),
    (["burgers", "--nodes", "60", "--integrator", "averaged", "--step", "0.1"], "--integrator 'averaged' is for"),
    (["burgers", "--integrator", "magic"], "magic"),
    (["bratu", "rate=2.4", "--nodes", "200"], "no solution found at rate=2.4"),
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
        ("ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), 1), ps.Neumann(0))", "only up to a constant"),
        ("ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), u**2 + 50), ps.Dirichlet(0))", "no solution found"),
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
    from parasol.report import figures

    def fails(*_, **__):
        raise OSError(28, "No space left on device", "u.png")

    monkeypatch.setattr(figures, "draw", fails)
    result = run("solve", "mine.py", "--nodes", 200, "--out", "u.csv", "--out", "u.png")
    assert result.exit_code == 1
    assert result.stderr == "parasol: cannot write 'u.png': No space left on device. Choose another place.\n"
    assert new_files(mine) == set()


def test_interrupt_is_quiet(mine, monkeypatch):
    from parasol.pde import placing

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(placing, "nodes_for", interrupted)
    result = run("solve", "mine.py", "--out", "u.csv")
    assert (result.exit_code, result.stderr) == (130, "parasol: interrupted\n")
    assert new_files(mine) == set()


def test_ctrl_c_in_the_middle_leaves_one_line(mine):
    later = "import os, signal, threading\nthreading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
    (mine / "slow.py").write_text(MINE + later)
    command = [sys.executable, "-m", "parasol", "solve", "slow.py:disc", "--nodes", "50000", "--out", "u.csv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "parasol: interrupted\n")
    assert new_files(mine) == {"slow.py"}


_ESTIMATING = "estimating the discretisation error"


def test_quiet_prints_nothing_and_progress_names_the_stages(mine, monkeypatch):
    said = []
    monkeypatch.setattr("parasol.cli.solve.stages", lambda quiet: nullcontext(said.append))
    result = run("solve", "mine.py", "--nodes", 200, "--quiet", "--out", "u.csv")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert said == [
        "reading the problem",
        "scattering nodes",
        "computing weights",
        "solving",
        _ESTIMATING,
        "writing u.csv",
    ]


def test_an_mp4_without_ffmpeg_is_refused_before_the_solve(mine, monkeypatch):
    monkeypatch.setenv("PATH", str(mine))
    _refused(run("solve", "burgers", "--out", "u.mp4", "--out", "u.csv"), "ffmpeg")
    assert new_files(mine) == set()


def test_integration_and_films_tell_how_much_is_done(mine, monkeypatch):
    told = {}
    monkeypatch.setattr(
        "parasol.cli.solve.stages", lambda quiet: nullcontext(lambda text: told.setdefault(text, []).append)
    )
    assert run("solve", "burgers", "--nodes", 60, "--times", "0:1:3", "--out", "u.gif").exit_code == 0
    for stage in ("solving", "writing u.gif"):
        assert told[stage] == sorted(told[stage])
        assert told[stage][-1] == pytest.approx(1.0)


def test_as_a_program(mine, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["parasol", "solve", "mine.py:disc", "--nodes", "200", "--out", "u.csv"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (0, "")
    assert "a = 2 (middle of its range)" in said.out
    assert "wrote u.csv" in said.out
    assert new_files(mine) == {"u.csv"}


def test_a_problem_with_singular_points_is_solved_by_elements(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    equation = "ps.Eq(-ps.divergence(ps.by_region(a=9, otherwise=1) * ps.gradient(u)), 1)"
    domain = "ps.Box((0, 0), (1, 1)).regions(a=ps.Box((0.3, 0.3), (0.7, 0.7)))"
    lines = ["import parasol as ps", "x, y = ps.coordinates('x y')", "u = ps.unknown('u', x, y)"]
    lines.append(f"square = ps.Problem({domain}, {equation}, ps.Dirichlet(0))")
    (tmp_path / "mine.py").write_text("\n".join(lines))
    result = run("solve", "mine.py", "--nodes", 500)
    assert result.exit_code == 0, result.stderr
    assert "triangles of degree 3" in result.stdout
    assert "solved by elements" in result.stderr

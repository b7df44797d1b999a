"""How commands begin and end: words read without typer, names that are nearly right, users' files, exit status, progress."""

import io
import re
import shlex
import subprocess
import sys
from functools import wraps
from inspect import signature

import pytest
import typer.main
from typer.testing import CliRunner

from parasol.cli import app, main, one_line_warnings, stages
from parasol.cli import progress as moving
from parasol.cli.reading import command_function, for_typer, read_words, words_of
from parasol.cli.start import OWN
from parasol.report.progress import Clock, notebook_progress


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARASOL_DEBUG", raising=False)
    return tmp_path


# ---- words ----------------------------------------------------------------------------------------------------------
CLEAR = [
    "solve helmholtz a=0.927 k=1.697 --out u.png --out u.vtkhdf",
    "solve sine-gordon beta=0.05 rho=-1 --times 0:10:51 -o u.gif --method fill --integrator=sbdf2",
    "solve mine.py:disc --nodes 300 --degree 2 --quiet --json - --seed 7",
    "learn helmholtz --tolerance 1e-4 -t 2.5",
    "learn helmholtz -t 1e-4 --out=h.parasol --total --proof --dry-run --solves 8 --seconds 600 --store runs/mine",
    "learn --data case_*.vtu --parameters params.csv",
    "predict model.parasol a=0.9 k=1.7 --bounds -o u.csv --times 0,2.5",
    "predict --mus mus.csv model.parasol -q",
    "check model.parasol --n 3 --tolerance 1e-12",
    "info model.parasol --json facts.json",
    "serve model.parasol --port 8000 --max-body 8",
    "serve heat.parasol flow.parasol --cors * --cors https://example.org --token s3cret",
    "export model.parasol --to model.onnx --dtype float32",
    "explore model.parasol --samples 3 --title Mine",
    "problems",
]


def read_by_typer(command, words):
    """What typer makes of the same words, given to the same annotations."""
    given = {}

    @wraps(command)
    def record(**values):
        given.update(values)

    alone = typer.Typer(add_completion=False)
    alone.command()(for_typer(record, typer))
    typer.main.get_command(alone).main(words, standalone_mode=False)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


@pytest.mark.parametrize("line", CLEAR)
def test_clear_words_mean_what_typer_says_they_mean(line):
    name, *words = shlex.split(line)
    command = command_function(name)
    mine = read_words(command, words)
    if "--tolerance" in words and "-t" in words:  # given twice: typer has an opinion on that
        assert mine is None
        return
    defaults = {p.name: p.default for p in signature(command).parameters.values()}
    theirs = read_by_typer(command, words)
    assert {name: value or None for name, value in (defaults | mine).items()} == {
        name: value or None for name, value in theirs.items()
    }
    assert all(type(value) is type(theirs[name]) for name, value in mine.items())


UNCLEAR = [
    "solve",
    "solve helmholtz --help",
    "solve helmholtz --bogus",
    "solve helmholtz --nodes",
    "solve helmholtz --nodes 0",
    "solve helmholtz --nodes -5",
    "solve helmholtz --nodes many",
    "solve helmholtz --method magic",
    "solve helmholtz -ofile",
    "solve -- helmholtz",
    "learn helmholtz bratu",
    "learn helmholtz --tolerance nan",
    "learn helmholtz --total=yes",
    "learn helmholtz --solves 7",
    "export model.parasol",
    "info a.parasol b.parasol",
    "info model.parasol --json --quiet",
]


@pytest.mark.parametrize("line", UNCLEAR)
def test_words_with_a_question_are_left_to_typer(line):
    name, *words = shlex.split(line)
    assert read_words(command_function(name), words) is None


def test_what_the_environment_says_is_left_to_typer(monkeypatch):
    monkeypatch.setenv("PARASOL_TOKEN", "s3cret")
    assert read_words(command_function("serve"), ["model.parasol"]) is None


def test_numbers_are_read_with_their_limits():
    words = {word.name: word for word in words_of(command_function("learn"))}
    assert words["solves"].value("8") == 8
    assert words["tolerance"].value("1e-3") == 1e-3
    for text in ("7", "8.0", "1_0", ""):
        with pytest.raises(ValueError):  # noqa: PT011  the reason is typer's to give
            words["solves"].value(text)


def test_no_words_start_people_off(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["parasol"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (0, "")
    lines = [line.partition("#")[0].split() for line in said.out.splitlines() if line.startswith("  parasol")]
    assert 3 <= len(lines) <= 6
    for _, name, *words in lines[:-1]:
        assert read_words(command_function(name), words) is not None
    assert lines[-1] == ["parasol", "--help"]


def test_info_and_predict_are_read_without_typer(here):
    code = "import sys, parasol.cli\ntry: parasol.cli.main()\nfinally: print({'typer', 'rich', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, "info", "no.parasol"], capture_output=True, text=True)
    assert done.stderr == "parasol: there is no file 'no.parasol'.\n"
    assert done.stdout == "{'numpy'}\n"


def test_help_lists_every_map_and_every_choice():
    from parasol.fitting.recipes import RECIPES

    lines = [line.strip() for line in run("learn", "--help").stdout.splitlines()]
    for name in RECIPES:
        assert any(re.match(rf"{name}  +\w", line) for line in lines), name
    text = run("solve", "--help").stdout
    for word in words_of(command_function("solve")):
        for choice in getattr(word.kind, "__args__", ()):
            assert f"{choice}:" in text, choice


# ---- names that are nearly right ------------------------------------------------------------------------------------
NEARLY = [
    ("lern", "learn"),
    ("papr", "paper"),
    ("learn bratu --tolerence 1", "--tolerance"),
    ("--versoin", "--version"),
    ("solve helmholz", "helmholtz"),
    ("solve helmholtz A=1 k=1", "a"),
    ("solve helmholtz --preset papr", "paper"),
    ("solve helmholtz --kernel imc:3", "imq"),
    ("solve helmholtz --out u.pgn", ".png"),
    ("learn mine.py --recipe polynomal", "polynomial"),
    ("paper helmholz --out x", "helmholtz"),
    ("paper helmholtz --preset bst --out x", "best"),
    ("export model.parasol --to m.onx", ".onnx"),
    ("predict modle.parasol", "model.parasol"),
    ("solve mien.py", "mine.py"),
    ("learn mine.py:wav", "wave"),
]


@pytest.mark.parametrize(("line", "meant"), NEARLY)
def test_did_you_mean(here, line, meant):
    (here / "mine.py").write_text("def wave(mu): return mu\nwave.parameters = {'a': (1, 2)}\n")
    (here / "model.parasol").touch()
    result = run(*shlex.split(line))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Did you mean '{meant}'? " in result.stderr.replace("\n", " ")
    assert len(result.stderr.splitlines()) == 1


def test_nothing_is_suggested_where_nothing_is_near():
    assert run("zzzzzz").stderr == "parasol: No such command 'zzzzzz'. Try: root --help\n"
    assert "Did you mean" not in run("solve", "zzzzzz").stderr


# ---- users' files ---------------------------------------------------------------------------------------------------
SOLVER = "def wave(mu):\n    {}\nwave.parameters = {{'a': (1.0, 2.0)}}\n"
FAULTY = [
    ("import parasol as ps\nx = (1\n", "mine.py, line 2: SyntaxError: '(' was never closed"),
    ("import parasol as ps\n\nu = ps.unknwn('u')\n", "mine.py, line 3: AttributeError: "),
    ("import no_such_package\n", "mine.py, line 1: ModuleNotFoundError: No module named 'no_such_package'"),
    ("def f():\n    return 1 / 0\nf()\n", "mine.py, line 2: ZeroDivisionError: division by zero"),
    ("import parasol as ps\n\nps.Disc(radius=-1)\n", "mine.py, line 3: "),
    ("raise SystemExit(7)\n", "mine.py, line 1: SystemExit: 7"),
    ("a = 1\n", "'mine.py' declares nothing to solve or learn."),
    (SOLVER.format("return {}[mu[0]]"), "mine.py, line 2: KeyError: "),
    (SOLVER.format("raise RuntimeError('no mesh')"), "could be solved: no mesh\n"),
    (SOLVER.format("return 1 / 0"), "could be solved: division by zero (ZeroDivisionError in mine.py, line 2)\n"),
    (SOLVER.format("raise SystemExit(7)"), "mine.py, line 2: SystemExit: 7"),
    (SOLVER.format("return 'words'"), "the solver returned str"),
]


@pytest.mark.parametrize(("text", "said"), FAULTY)
def test_a_file_that_fails_is_one_line_with_its_line(here, text, said):
    (here / "mine.py").write_text(text)
    result = run("learn", "mine.py", "--out", "m.parasol")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(here.glob("m.parasol"))


def test_a_fault_in_a_worker_has_its_line_too(here):
    (here / "mine.py").write_text(SOLVER.format("return {}[mu[0]]"))
    words = [
        sys.executable,
        "-m",
        "parasol",
        "learn",
        "mine.py",
        "--jobs",
        "2",
    ]  # alone: beside JAX, workers are not forked
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("parasol: mine.py, line 2: KeyError: ")


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_whole_traceback_on_request(here, monkeypatch, how):
    (here / "mine.py").write_text(SOLVER.format("return {}[mu[0]]"))
    monkeypatch.setenv("PARASOL_DEBUG", "1" if how == "variable" else "0")
    result = run(*(["--debug"] if how == "option" else []), "learn", "mine.py")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("parasol: mine.py, line 2: KeyError")


def test_a_fault_of_ours_keeps_its_traceback(here, monkeypatch):
    def fault(*_, **__):
        return {}["ours"]

    fault.__code__ = fault.__code__.replace(co_filename=parasol_file())
    monkeypatch.setattr("parasol.pde.catalogue.load_source", fault)
    result = run("learn", "mine.py")
    assert isinstance(result.exception, KeyError)


def parasol_file():
    import parasol

    return parasol.__file__


# ---- exit status ----------------------------------------------------------------------------------------------------
TRIVIAL = "def wave(mu):\n    return [mu[0], abs(mu[0] - 1.37) ** 0.5]\nwave.parameters = {'a': (1.0, 2.0)}\n"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A folder with a problem file, a surrogate that does not meet its tolerance, and the status of learning it."""
    folder = tmp_path_factory.mktemp("learned")
    (folder / "mine.py").write_text(TRIVIAL)
    words = ("--tolerance", "1e-9", "--solves", "8", "--recipe", "polynomial", "--out", folder / "m.parasol")
    return folder, run("learn", folder / "mine.py", *words).exit_code


def status(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["parasol", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_exit_status(learned, monkeypatch, capfd):
    folder, not_met = learned
    model, problem = folder / "m.parasol", ("--problem", folder / "mine.py")
    assert not_met == 3
    assert status(monkeypatch, "info", model) == 0
    assert status(monkeypatch, "predict", model, "a=1.5") == 0
    assert status(monkeypatch, "predict", model, "a=5") == 2
    assert status(monkeypatch, "check", model, *problem, "--n", 20, "--tolerance", 1e-12) == 1
    assert status(monkeypatch, "check", model, *problem, "--n", 3, "--tolerance", 10) == 0
    assert status(monkeypatch, "info", model, "--bogus") == 2
    assert status(monkeypatch, "info", folder / "no.parasol") == 2

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("parasol.runtime.files.load", stopped)
    assert status(monkeypatch, "info", model) == 130
    monkeypatch.setattr("parasol.cli.reading.command_function", stopped)
    assert status(monkeypatch, "info", model) == 130
    assert capfd.readouterr().err.splitlines()[-1] == "parasol: interrupted"


def shell(line, folder):
    command = line.replace("parasol", f"{shlex.quote(sys.executable)} -m parasol", 1)
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60, cwd=folder
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs bash and /dev/full")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("parasol info m.parasol | true", 0, ""),
        ("parasol | true", 0, ""),
        ("parasol info m.parasol --json - | head -1", 0, ""),
        (
            "parasol > /dev/full",
            1,
            "parasol: cannot write the output: No space left on device. Choose another place.\n",
        ),
    ],
)
def test_output_that_nobody_takes(learned, line, code, said):
    done = shell(line, learned[0])
    assert (done.returncode, done.stderr) == (code, said)


# ---- progress -------------------------------------------------------------------------------------------------------
class Watch:
    """A clock that the test moves on."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def test_time_left_is_a_range_or_nothing():
    watch = Watch()
    clock = Clock(watch)
    clock.enter("solving")
    assert clock.left is None
    for done in range(1, 6):
        watch.time = 10.0 * done
        clock.done(0.1 * done)
    low, high = clock.left
    assert low == pytest.approx(40)
    assert high == pytest.approx(62.5)
    assert re.fullmatch(r"50 %, 50 s, 40 s to 1:0[23] more", clock.words())
    watch.time = 500.0  # it hangs: nobody knows
    assert clock.left is None
    assert clock.words() == "50 %, 8:20"
    clock.enter("solving: another detail")
    assert clock.seen
    clock.enter("fitting")
    assert clock.words() == "8:20"


def test_pipes_get_a_line_per_stage_once_it_takes_long(monkeypatch, capsys):
    watch = Watch()
    monkeypatch.setattr(Clock.__init__, "__defaults__", (watch,))
    monkeypatch.setattr(moving._Lines, "every", 1e-3)
    with stages(quiet=False) as stage:
        stage("reading")
        watch.time = 32.0
        stage("solving: 1, bound 1e-1")
        for number in range(2, 9):
            stage(f"solving: {number}, bound 1e-{number}")
        watch.time = 33.0
        stage("writing")
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "reading" not in line] == [
        "parasol: solving: 1, bound 1e-1 (32 s)",
        "parasol: writing (33 s)",
    ]


def test_short_and_quiet_work_says_nothing(capsys):
    for quiet in (False, True):
        with stages(quiet) as stage:
            stage("reading")(0.5)
    assert capsys.readouterr().err == ""


def test_work_goes_on_when_nobody_reads_its_progress(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    watch = Watch()
    monkeypatch.setattr(Clock.__init__, "__defaults__", (watch,))
    monkeypatch.setattr(sys, "stderr", Gone())
    with stages(quiet=False) as stage:
        watch.time = 100.0
        stage("solving")(0.5)
        stage("writing")


def test_a_pipe_that_breaks_in_the_work_is_a_failure(here, monkeypatch):
    def breaks(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("parasol.runtime.files.load", breaks)
    result = run("info", "m.parasol")
    assert (result.exit_code, result.stderr) == (1, "parasol: cannot read or write: Broken pipe\n")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_line_moves_on_a_terminal_and_others_print_above_it(monkeypatch):
    from parasol.errors import ParasolWarning

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(moving, "_AT_ONCE", 0.0)
    monkeypatch.setattr(moving, "_TICK", 10.0)
    monkeypatch.setenv("TERM", "xterm")
    with stages(quiet=False) as stage, one_line_warnings():
        stage("solving: " + "a long story " * 20)
        import warnings

        warnings.warn("beware", ParasolWarning, stacklevel=1)
        print("half a line", end="", file=sys.stderr)
        stage("fitting")  # not drawn: it would stand in the middle of the other's line
        print(file=sys.stderr)
        stage("writing")
    assert sys.stderr is terminal
    said = terminal.getvalue()
    assert (said.count("\x1b[?25l"), said.count("\x1b[?25h")) == (1, 1)
    assert "\x1b[2Kparasol: warning: beware\n" in said
    assert "\nhalf a line\n" in said
    assert "fitting" not in said
    assert said.endswith("\r\x1b[2K\x1b[?25h")
    assert all(len(re.sub(r"\x1b\[\??\d+\w", "", part)) < 80 for part in re.split("[\r\n]", said))


def test_every_command_has_a_place_in_the_help():
    text = run("--help").stdout
    for name in (name for names in OWN.values() for name in names):
        assert f"parasol {name}" in text


def test_a_notebook_shows_the_stage_and_the_time(monkeypatch):
    said = []

    class Display:
        HTML = staticmethod(str)

        @staticmethod
        def display(text, display_id):
            said.append(text)
            return type("Handle", (), {"update": staticmethod(said.append)})

    monkeypatch.setitem(sys.modules, "IPython", type(sys)("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", Display)
    with notebook_progress() as stage:
        stage("solving <b>")
        cell = stage.__self__
    assert said == ["", "<code>solving &lt;b&gt; (0 s)</code>", "<code>done in 0 s</code>"]
    assert not cell.ticking.is_alive()  # it does not tick on below a cell that is done

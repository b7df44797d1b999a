"""What the commands do when they are stopped, or when what they made cannot be written."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app

resource = pytest.importorskip("resource")
PROBLEM = """
import parasol as ps
x, y = ps.coordinates("x y")
(a,) = ps.parameters(a=(1.0, 4.0))
u = ps.unknown("u", x, y)
disc = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(1 + x))
"""
LEARN = ("learn", "mine.py:disc", "--nodes", "100", "--recipe", "polynomial", "--tolerance", "1e-2")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PROBLEM)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def full_disk(monkeypatch):
    """No file may grow beyond 4096 bytes: what a full disk or a spent quota does, without one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python keeps the first 4096 bytes of it, and stumbles later
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def begin():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))

    yield begin
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    "words",
    [
        ("learn", "mine.py:disc", "--out", "m.parasol"),
        ("learn", "mine.py:disc", "--dry-run", "--json", "plan.json"),
        ("solve", "mine.py:disc", "--out", "u.png"),
        ("theorem", "mine.py:disc", "--save", "m.parasol"),
        ("theorem", "mine.py:disc", "--out", "growth.png"),
        ("paper", "helmholtz", "--quick", "--out", "new/run"),
        ("explore", "m.parasol", "--out", "page.html"),
        ("export", "m.parasol", "--to", "m.onnx"),
        ("check", "m.parasol", "--out", "budget.png"),
    ],
    ids=lambda words: f"{words[0]}-{words[-2]}",
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(mine, full_disk, words):
    (mine / "mine.py").write_text("raise RuntimeError('the work has begun')")
    full_disk()
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"parasol: cannot write '{words[-1]}': File too large. Choose another place.\n"
    assert {path.name for path in mine.iterdir()} == {"mine.py"}


def test_trying_the_place_leaves_what_is_there_alone(mine, full_disk):
    (mine / "m.parasol").write_text("precious")
    full_disk()
    assert run("learn", "mine.py:disc", "--out", "m.parasol").exit_code == 1
    assert (mine / "m.parasol").read_text() == "precious"


@pytest.mark.parametrize("with_store", [True, False])
def test_a_finished_surrogate_is_never_lost(mine, monkeypatch, with_store):
    """The folder of --out goes away during the work: the surrogate is in the store, or the temporary directory."""
    (mine / "temporary").mkdir()
    (mine / "gone").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(mine / "temporary"))
    (mine / "mine.py").write_text(PROBLEM + "import os\nos.rmdir('gone')\n")
    store = ("--store", "kept") if with_store else ()
    result = run(*LEARN, "--out", "gone/m.parasol", "--json", "facts.json", *store)
    (written,) = (mine / ("kept" if with_store else "temporary")).glob("m-*.parasol")
    assert result.exit_code == 1
    assert "'gone/m.parasol' could not be written (" in result.stderr
    assert "there is no directory 'gone'" in result.stderr
    assert f"parasol: the surrogate is in {written} instead.\n" in result.stderr
    assert json.loads((mine / "facts.json").read_text())["file"] == str(written)
    assert ps.load(written)(a=2.0).bounds.relative <= 1e-2


def test_where_nothing_can_be_written_the_first_reason_is_given(mine, monkeypatch):
    (mine / "gone").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(mine / "nowhere"))
    (mine / "mine.py").write_text(PROBLEM + "import os\nos.rmdir('gone')\n")
    result = run(*LEARN, "--out", "gone/m.parasol")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("parasol: cannot write 'gone/m.parasol': there is no directory")


@pytest.mark.slow
def test_theorem_keeps_its_surrogate_elsewhere_too(mine, monkeypatch):
    (mine / "temporary").mkdir()
    (mine / "gone").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(mine / "temporary"))
    (mine / "mine.py").write_text(PROBLEM + "import os\nos.rmdir('gone')\n")
    words = ("--modes", 1, "--accuracy", 0.2, "--snapshots", 4, "--no-compare", "--save", "gone/m.parasol")
    result = run("theorem", "mine.py:disc", *words)
    (written,) = (mine / "temporary").glob("m-*.parasol")
    assert result.exit_code == 1
    assert f"the surrogate is in {written} instead" in result.stderr
    assert f"wrote {written}" in " ".join(result.stdout.split())


# ---- signals --------------------------------------------------------------------------------------------------------
SLOW_BEGINNING = """
import time
from parasol.reduction import by_estimate
def slowly(*_, **__):
    open("begun", "w").close()
    time.sleep(30)
by_estimate.affine_form = slowly
"""
SLOW_CONSTANTS = """
import time
from parasol.reduction import certificate
def slowly(*_, **__):
    open("begun", "w").close()
    time.sleep(30)
certificate.norm_after = certificate.centred_norm = slowly
"""
SLOW_SOLVES = """
import time
from pathlib import Path
from parasol.pde.model import Model
usual = Model.solve
def slowly(self, *args, **options):
    if len(list(Path("kept").glob("*/*/receipts/[!.]*.json"))) == 3:
        open("begun", "w").close()
        time.sleep(30)
    return usual(self, *args, **options)
Model.solve = slowly
"""


def stopped(folder: Path, how: signal.Signals, *words, terminal: bool = False) -> tuple[int, str]:
    """Exit status and stderr of a real process that gets a signal once its problem says that the work has begun."""
    command = [sys.executable, "-m", "parasol", *words]
    reader, writer = pty.openpty() if terminal else os.pipe()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=writer, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(writer)
        deadline = time.monotonic() + 60
        while not (folder / "begun").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(how)
        said = b""
        try:
            while piece := os.read(reader, 65536):
                said += piece
        except OSError:  # what Linux says at the end of a terminal
            pass
        status = process.wait(60)
    os.close(reader)
    return status, said.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_stopped_before_the_first_solve_none_is_kept(mine):
    (mine / "mine.py").write_text(PROBLEM + SLOW_BEGINNING)
    status, said = stopped(mine, signal.SIGINT, *LEARN, "--store", "kept")
    line = "parasol: no new full solve was finished, so kept holds none of this run.\n"
    assert (status, said) == (130, f"{line}parasol: interrupted\n")
    assert not (mine / "kept" / "lock").exists()


@pytest.mark.slow
def test_stopped_during_the_constants_no_solve_is_kept(mine):
    (mine / "mine.py").write_text(PROBLEM + SLOW_CONSTANTS)
    status, said = stopped(mine, signal.SIGINT, *LEARN, "--proof", "--store", "kept")
    line = "parasol: no new full solve was finished, so kept holds none of this run.\n"
    assert (status, said) == (130, f"{line}parasol: interrupted\n")
    assert not (mine / "kept" / "lock").exists()


@pytest.mark.slow
def test_terminated_during_the_solves_they_are_counted(mine):
    (mine / "mine.py").write_text(PROBLEM.replace("-a *", "-(1 + u**2) * a *") + SLOW_SOLVES)
    other = (
        mine / "kept" / "solves-other" / "batch-000000-other" / "receipts" / "000000.json"
    )  # was there before: not new
    other.parent.mkdir(parents=True)
    other.touch()
    status, said = stopped(mine, signal.SIGTERM, *LEARN, "--store", "kept")
    line = "parasol: 2 new full solves are kept in kept. Run the same command again to go on.\n"
    assert (status, said.splitlines(keepends=True)[-2:]) == (143, [line, "parasol: terminated\n"])
    assert not (mine / "kept" / "lock").exists()


@pytest.mark.slow
def test_termination_brings_the_cursor_back(mine):
    (mine / "mine.py").write_text(PROBLEM + SLOW_BEGINNING)
    status, said = stopped(mine, signal.SIGTERM, *LEARN, terminal=True)
    assert status == 143
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 1  # hidden, shown
    assert said.endswith(
        "parasol: nothing is kept. With --store DIR a run that is stopped goes on where it was.\nparasol: terminated\n"
    )


def test_termination_ends_forked_workers_in_silence(mine):
    begun = (
        'import os, time\ndef slowly(*_, **__):\n    open("begun", "w").write(str(os.getpid()))\n    time.sleep(3600)\n'
    )
    patch = "from parasol.pde.model import Model\nusual, count = Model.solve, []\n"
    patch += "def solve(self, *a, **o):\n    if os.getpid() != parent: slowly()\n    return usual(self, *a, **o)\n"
    (mine / "mine.py").write_text(
        PROBLEM.replace("-a *", "-(1 + u**2) * a *") + begun + patch + "parent = os.getpid()\nModel.solve = solve\n"
    )
    status, said = stopped(mine, signal.SIGTERM, *LEARN, "--store", "kept", "--jobs", "2")
    assert status == 143
    assert said.splitlines()[-1] == "parasol: terminated"
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):  # the workers, which would sleep for an hour, are gone
        os.kill(int((mine / "begun").read_text()), 0)


@pytest.mark.parametrize(("how", "status", "said"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_signal_during_the_collection_of_garbage_is_not_lost(how, status, said):
    """Python prints what is raised in a callback of its collector, of which JAX has one, and goes on."""
    script = f"""
import gc, os, signal, time
from parasol.cli.start import one_line_errors, orderly_termination

def callback(*_):
    gc.callbacks.remove(callback)
    os.kill(os.getpid(), signal.{how})
    time.sleep(0.01)

with one_line_errors(), orderly_termination():
    gc.callbacks.append(callback)
    gc.collect()
    for _ in range(200):
        time.sleep(0.01)
    print("went on")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (status, "")
    assert ran.stderr.strip() == f"parasol: {said}"

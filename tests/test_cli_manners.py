"""The commands as a whole: the same manners everywhere, tab completion, colours, a quick start."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

import parasol
from parasol.cli import app
from parasol.cli.terminal import catalogue_names


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def commands(group=None, before=()):
    """Every command by the words it is called with."""
    group = group or typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_every_command_speaks_the_same_way(words):
    command = dict(commands())[words]
    options = {name for param in command.params for name in param.opts}
    assert {"--json", "--quiet", "-q"} <= options
    assert ("--out" in options) == ("-o" in options)
    assert f"parasol {words}" in command.help  # an example
    result = run(*words.split(), "-h")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    wrong = run(*words.split(), "--bogus")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert re.fullmatch(r"parasol: .*--bogus.*\n", wrong.stderr)


COMPLETE = {"_PARASOL_COMPLETE": "complete_bash", "COMP_WORDS": "parasol\nsolve\nhel", "COMP_CWORD": "2"}


def completed(*words):
    env = COMPLETE | {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], prog_name="parasol", env=env).stdout.split()


def test_tab_completion():
    script = CliRunner().invoke(app, [], prog_name="parasol", env={"_PARASOL_COMPLETE": "source_bash"}).stdout
    assert "complete -o default -F _parasol_completion parasol" in script
    assert completed("parasol", "ex") == ["explore", "export"]
    assert completed("parasol", "predict", "--bou") == ["--bounds"]
    assert completed("parasol", "solve", "b") == [name for name in parasol.pde.problem_names() if name.startswith("b")]
    assert catalogue_names("") == parasol.pde.problem_names()


def test_colours_only_on_a_terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    command = [sys.executable, "-m", "parasol", "--help"]
    assert b"\x1b[" not in subprocess.run(command, capture_output=True, check=True).stdout
    ours, theirs = os.openpty()
    shown = b""
    with subprocess.Popen(command, stdout=theirs, env={**os.environ, "TERM": "xterm"}):
        os.close(theirs)
        with suppress(OSError):  # how a terminal says that the other side has gone
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    assert b"\x1b[" in shown


@pytest.mark.parametrize(("words", "env"), [(["solve", "--help"], {}), ([], COMPLETE)])
def test_help_and_completion_load_nothing_heavy(tmp_path, words, env):
    code = (
        "import sys, parasol.cli\n"
        "try: parasol.cli.main()\n"
        "finally: assert not {'numpy', 'scipy', 'sympy', 'matplotlib', 'h5py'} & set(sys.modules)\n"
    )
    where = {"PYTHONPATH": str(Path(parasol.__file__).parents[1])}  # found from any directory, installed or not
    command = [sys.executable, "-c", code, *words]
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path}
    done = subprocess.run(command, env={**os.environ, **where, **env}, **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("helmholtz" if env else "--boundary-nodes") in done.stdout


def test_a_misspelt_command_is_answered_with_the_right_one():
    assert run("lern").stderr == "parasol: No such command 'lern'. Did you mean 'learn'? Try: root --help\n"

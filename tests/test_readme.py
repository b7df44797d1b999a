"""The README's and the guide's Python and the README's commands run as they stand."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from parasol.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()
# what a command is given besides, so that a test of all of them takes seconds
SHORTER = {
    "theorem": ["--snapshots", "20", "--no-compare"],
    "solve sine-gordon": ["--times", "0:2:5"],
    "check": ["--n", "12"],
}
ELSEWHERE = ("paper", "bench")  # run by tests/lab/test_paper.py and test_bench.py
OF_A_MODEL = ("learn", "info", "predict", "check", "explore", "export", "serve")


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("parasol ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def shortened(words: list[str]) -> list[str]:
    return words + SHORTER.get(words[0], []) + SHORTER.get(" ".join(words[:2]), [])


def test_the_code_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README + GUIDE, flags=re.DOTALL)
    assert len(blocks) >= 6
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["solution"].values.shape == (2000,)


@pytest.mark.parametrize("words", [w for w in commands() if w[0] not in OF_A_MODEL + ELSEWHERE], ids=" ".join)
def test_a_command_runs(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, shortened(words))
    assert ran.exit_code == 0, ran.output


def test_the_commands_of_a_model_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chain = [words for words in commands() if words[0] in OF_A_MODEL]
    assert [words[0] for words in chain] == list(OF_A_MODEL)
    for words in chain[:-1]:
        ran = CliRunner().invoke(app, shortened(words))
        assert ran.exit_code == 0, ran.output
    words = ["0" if word == "8000" else word for word in chain[-1]]  # any free port
    server = subprocess.Popen([sys.executable, "-m", "parasol", *words], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        assert any("http://127.0.0.1" in line for line in server.stdout)
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0
    finally:
        server.kill()


def test_nothing_is_left_to_fill_in():
    assert not re.search(r"^[A-Z]{5,}$|\bTODO\b", README, flags=re.MULTILINE)


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), (page, link)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150

"""What a type checker and an editor see of parasol in a user's script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import parasol as ps

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
(a,) = ps.parameters(a=(1.0, 2.0))
problem = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0))
surrogate = ps.learn(problem, tolerance=1e-3)
answer = surrogate({"a": 1.5})
print(answer.values.shape, answer.bound, answer.bound_kind)
ps.save(surrogate, "disc.parasol")
"""
WRONG = {
    "ps.lern(problem)": "lern",
    "ps.learn(problem, toleranc=1)": "toleranc",
    "surrogate.foo": "foo",
    "ps.save(surrogate, 3)": "path",
    "answer.valves": "valves",
    "ps.Problem(ps.Disc(), 3, boundry=1)": "boundry",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """Line number to what pyright says of a script whose last lines are wrong."""
    pytest.importorskip("pyright")
    folder = tmp_path_factory.mktemp("types")
    script = folder / "script.py"
    script.write_text(SCRIPT + "\n".join(WRONG) + "\n")
    source = str(Path(__file__).parents[1] / "src")
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [source], "reportAttributeAccessIssue": "error"})
    )
    words = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=300).stdout)
    errors = [line for line in found["generalDiagnostics"] if line["severity"] == "error"]
    return {line["range"]["start"]["line"]: line["message"] for line in errors}


def test_a_right_script_has_no_complaints(complaints):
    assert min(complaints) == len(SCRIPT.splitlines())


@pytest.mark.parametrize("number", range(len(WRONG)), ids=list(WRONG))
def test_a_wrong_line_is_reported(complaints, number):
    assert list(WRONG.values())[number] in complaints[len(SCRIPT.splitlines()) + number]

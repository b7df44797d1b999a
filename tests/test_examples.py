import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs_and_its_numbers_hold(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out

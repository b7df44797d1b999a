import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SLOW, LONG = (
    pytest.mark.slow,
    ("inverse", "certified", "chip", "surrogate", "composite_plate", "fem_heat", "fem_stokes_cavity"),
)  # others show most of what these do


@pytest.mark.parametrize("path", [pytest.param(p, marks=SLOW if p.stem in LONG else (), id=p.stem) for p in EXAMPLES])
def test_example_runs_and_its_numbers_hold(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out

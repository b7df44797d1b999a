import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").rglob("*.py"))
SLOW = pytest.mark.slow
LONG = frozenset(  # others show most of what these do
    [
        "helmholtz",
        "composite_plate",
        "sine_gordon",
        "random_field",
        "vtu_results",
        "inverse",
        "laptop_to_cluster",
        "paper",
        "certified",
        "chip",
        "surrogate",
        "fem_heat",
        "fem_stokes_cavity",
    ]
)

NEEDS = {
    "sobol_indices": "SALib",
    "laptop_to_cluster": "distributed",
    "grid_search": "sklearn",
    "pytorch": "torch",
    "design": "jax",
}  # not everybody has these


@pytest.mark.parametrize("path", [pytest.param(p, marks=SLOW if p.stem in LONG else (), id=p.stem) for p in EXAMPLES])
def test_example_runs_and_its_numbers_hold(path, capsys):
    pytest.importorskip(NEEDS.get(path.stem, "numpy"))
    runpy.run_path(str(path), run_name="__main__")
    if "jax" in sys.modules:  # an example may have switched it on
        sys.modules["jax"].config.update("jax_enable_x64", False)
    assert capsys.readouterr().out

import subprocess
import sys
from pathlib import Path

import pytest

import parasol as ps

ROOT = Path(__file__).parents[1]


def test_importing_parasol_is_light():
    code = (
        "import parasol, sys\n"
        "assert not {'jax', 'torch', 'tensorflow'} & set(sys.modules)\n"
        "assert not {'scipy', 'sympy', 'matplotlib', 'h5py'} & set(sys.modules)\n"
        "parasol.scatter, parasol.discretize, parasol.load_problem('helmholtz')\n"
        "assert not {'jax', 'torch', 'tensorflow', 'matplotlib', 'h5py'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ps.__all__)
def test_every_public_name_exists_and_is_described(name):
    assert getattr(ps, name).__doc__


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'solvee'"):
        _ = ps.solvee


def test_nothing_outside_the_catalogue_knows_the_paper_s_problems():
    for file in (ROOT / "src" / "parasol").rglob("*.py"):
        if not {"catalogue", "cli", "study"} & set(file.parts):
            text = file.read_text().lower()
            assert "schrodinger" not in text, file


def test_no_pickle():
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text

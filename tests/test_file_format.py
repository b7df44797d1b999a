"""The reader on the page of the file format reads what parasol writes, without parasol."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import parasol as ps

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "file-format.md").read_text(encoding="utf-8")
KEPT = sorted((Path(__file__).parent / "kept_files" / "0.2.0.dev0").glob("*.parasol"))


@pytest.fixture(scope="module")
def reader() -> dict:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    imported = {a.name for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Import) for a in n.names}
    assert imported == {"io", "json", "zipfile", "numpy"}
    names: dict = {}
    exec(compile(code, "file-format.md", "exec"), names)
    return names


def parameters(surrogate, n=5):
    rng = np.random.default_rng(0)
    out = rng.standard_normal((n, surrogate.n_parameters))
    space = surrogate.parameters
    scalars = len(space.scalars)
    out[:, :scalars] = space.from_unit(rng.random((n, scalars)))
    return out


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_the_reader_of_the_page_gives_the_same_answers(path, reader, tmp_path):
    surrogate = ps.load(path)
    mus = parameters(surrogate)
    expected = surrogate(mus, extrapolate=True).values
    written = ps.save(surrogate, tmp_path / path.name)  # by this version
    found = reader["answer"](reader["read"](written), mus)
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


def test_the_reader_of_the_page_solves_reduced_models(tmp_path, reader):
    (a,) = ps.parameters(a=(1.0, 3.0))
    rng = np.random.default_rng(0)
    one, other = (m @ m.T + np.eye(12) for m in rng.standard_normal((2, 12, 12)))
    model = ps.AffineModel({1: one, a: other}, {1: np.ones(12), a**2: np.arange(12.0)})
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 5)), n_modes=4))
    features = ps.runtime.features_of(model.parameters, np.empty((0, 1)))
    surrogate = ps.Surrogate(reduced.basis, None, features, model.parameters, reduced=reduced)
    path = ps.save(surrogate, tmp_path / "reduced.parasol")
    mus = np.linspace(1.0, 3.0, 7)[:, None]
    found, expected = reader["answer"](reader["read"](path), mus), surrogate(mus).values
    truth = np.array([model.solve(mu).values for mu in mus])
    error = np.abs(expected - truth).max()
    assert 0 < error < 0.1 * np.abs(truth).max()
    assert np.abs(found - expected).max() <= error  # another preconditioner: apart by a part of the error


def test_every_kind_of_operation_is_explained():
    from parasol.runtime.expansions import KERNELS
    from parasol.runtime.operations import ACTIVATIONS, OPERATIONS

    for kind in OPERATIONS:
        assert f"| `{kind.__name__}` |" in PAGE
    for name in (*ACTIVATIONS, *KERNELS):
        assert f"`{name}`" in PAGE
        assert f'"{name}":' in PAGE

"""One file for a surrogate: the same answers after loading, and a reason where it cannot be loaded."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import parasol as ps


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@pytest.fixture(scope="module")
def reduced(model):
    return ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8))


@pytest.fixture(scope="module")
def surrogate(reduced):
    return ps.fit(reduced, "polynomial", n_labels=300)


RECIPES = ["polynomial", "linear", "gaussian process", "random features", ps.NetworkRecipe.compact(iterations=20)]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_same_answers_after_loading(reduced, model, recipe, tmp_path):
    surrogate = ps.fit(reduced, recipe, n_labels=200)
    again = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    mus = ps.sample(model, 30, rng=3)
    for dtype in (np.float64, np.float32):
        assert np.array_equal(surrogate(mus, dtype=dtype).values, again(mus, dtype=dtype).values)
    assert np.array_equal(surrogate(mus).bound, again(mus).bound)
    assert np.array_equal(surrogate(mus).bounds.rigorous, again(mus).bounds.rigorous)
    assert np.allclose(surrogate.gradient(mus[0]), again.gradient(mus[0]))
    assert again.facts["n_labels"] == 200
    with pytest.raises(ps.ParasolError, match="outside its range"):
        again([9.0, 1.0])


def test_the_same_bytes_twice(surrogate, tmp_path):
    first, second = (ps.save(surrogate, tmp_path / name).read_bytes() for name in "ab")
    assert first == second


def test_function_parameters_and_interpolated_coefficients(tmp_path):
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400))
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, model.sample(20)), n_modes=10))
    surrogate = ps.fit(reduced, "linear", n_labels=100)
    again = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    mus = model.sample(4, rng=9)
    assert np.array_equal(surrogate(mus).values, again(mus).values)
    assert np.array_equal(surrogate(mus).bound, again(mus).bound)


def test_loading_needs_no_training_framework(surrogate, tmp_path):
    path = ps.save(surrogate, tmp_path / "model.parasol")
    code = (
        f"import parasol, sys; s = parasol.load({str(path)!r}); print(s([1.0, 1.0]).bound);"
        "assert not {'jax', 'torch', 'optax', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def edited(path, change):
    """A copy of the file with a changed manifest."""
    other = path.with_suffix(".edited")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest).encode()
            new.writestr(name, data)
    return other


def test_what_is_damaged_foreign_or_newer_is_refused(surrogate, tmp_path):
    path = ps.save(surrogate, tmp_path / "model.parasol")
    data = path.read_bytes()
    for name, content in {"cut": data[: len(data) // 2], "text": b"hello", "empty": b""}.items():
        bad = tmp_path / name
        bad.write_bytes(content)
        with pytest.raises(ps.ParasolError, match="damaged"):
            ps.load(bad)
    middle = bytearray(data)
    middle[len(data) // 2] ^= 1
    (tmp_path / "flip").write_bytes(bytes(middle))
    with pytest.raises(ps.ParasolError, match=r"damaged|changed"):
        ps.load(tmp_path / "flip")
    with pytest.raises(ps.ParasolError, match="no file"):
        ps.load(tmp_path / "nowhere")
    with pytest.raises(ps.ParasolError, match="newer"):
        ps.load(edited(path, lambda m: m.update(version=99)))
    with pytest.raises(ps.ParasolError, match="not a surrogate of parasol"):
        ps.load(edited(path, lambda m: m.update(format="other")))
    with pytest.raises(ps.ParasolError, match="does not know"):
        ps.load(edited(path, lambda m: m["content"].update(kind="os.system")))
    with pytest.raises(ps.ParasolError, match="not arithmetic"):
        ps.load(edited(path, lambda m: _first_formula(m["content"]).update(text="__import__('os').getpid()")))


def _first_formula(tree):
    if isinstance(tree, dict):
        if tree.get("kind") == "Formula":
            return tree["fields"]
        tree = list(tree.values())
    for item in tree if isinstance(tree, list) else []:
        found = _first_formula(item)
        if found is not None:
            return found
    return None


def test_foreign_maps_are_not_saved(reduced, tmp_path):
    class Mine:
        def fit(self, x, y):
            self.mean = y.mean(axis=0)
            return self

        def predict(self, x):
            return np.tile(self.mean, (len(x), 1))

    with pytest.raises(ps.ParasolError, match="parasol's own maps only"):
        ps.save(ps.fit(reduced, Mine(), n_labels=50), tmp_path / "mine.parasol")
    assert not (tmp_path / "mine.parasol").exists()


def test_hostile_files_are_refused_at_once(surrogate, tmp_path):
    path = ps.save(surrogate, tmp_path / "model.parasol")
    packed = tmp_path / "bomb"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("arrays/9999.npy", bytes(10**7))
    with pytest.raises(ps.ParasolError, match="packed"):
        ps.load(packed)
    for place in (-1, True, 10**9, "0"):
        with pytest.raises(ps.ParasolError, match="refers to array"):
            ps.load(edited(path, lambda m, p=place: m["content"]["fields"]["basis"]["fields"]["modes"].update(array=p)))
    with pytest.raises(ps.ParasolError, match="is a str"):
        ps.load(edited(path, lambda m: m["content"]["fields"].update(basis="hello")))
    with pytest.raises(ps.ParasolError, match="version"):
        ps.load(edited(path, lambda m: m.update(version=-5)))
    with pytest.raises(ps.ParasolError, match="not a surrogate"):
        ps.load(tmp_path)


@pytest.mark.parametrize("change", [lambda a: a * np.nan, lambda a: a.astype(complex), lambda a: a.astype("U9")])
def test_arrays_of_the_wrong_kind_are_refused(surrogate, tmp_path, change):
    import hashlib
    import io

    path = ps.save(surrogate, tmp_path / "model.parasol")
    other = tmp_path / "changed"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(old.read("arrays/0000.npy")))))
        manifest = json.loads(old.read("manifest.json"))
        manifest["sha256"]["arrays/0000.npy"] = hashlib.sha256(buffer.getvalue()).hexdigest()
        for name in old.namelist():
            new_data = {"manifest.json": json.dumps(manifest).encode(), "arrays/0000.npy": buffer.getvalue()}
            new.writestr(name, new_data.get(name, old.read(name)))
    with pytest.raises(ps.ParasolError, match="damaged"):
        ps.load(other)

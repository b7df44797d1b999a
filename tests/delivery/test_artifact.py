"""One file for a surrogate: the same answers after loading, and a reason where it cannot be loaded."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import parasol as ps
from hidden_layer import HiddenLayer


@pytest.fixture(scope="module")
def surrogate(reduced):
    return ps.fit(reduced, "polynomial", n_labels=300)


RECIPES = ["polynomial", "linear", "gaussian process", HiddenLayer(), ps.fitting.NetworkRecipe.compact(iterations=20)]


NAMES = ["polynomial", "linear", "gaussian process", "hidden layer", "network"]


@pytest.fixture(scope="module", params=RECIPES, ids=NAMES)
def fitted(request, reduced):
    return ps.fit(reduced, request.param, n_labels=200)


def test_the_same_answers_after_loading(fitted, model, tmp_path):
    surrogate = fitted
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


BLOCKED = """
import json, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "sympy", "h5py", "matplotlib", "jax", "threadpoolctl", "typer", "rich"}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocker())
import parasol
s = parasol.load(sys.argv[1])
mus = [[1.0, 1.0], [0.3, 0.2]]
many, one = s(mus), s(mus[0])
print(json.dumps({
    "values": many.values.tolist(), "one": one.values.tolist(), "bound": many.bound.tolist(),
    "gradient": s.gradient(mus[0]).tolist(), "quantities": {k: v.tolist() for k, v in many.quantities.items()},
    "bounds": one.quantity_bounds, "names": s.parameters.names, "middle": [p.middle for p in s.parameters.scalars],
}))
"""


def test_loading_needs_numpy_alone(fitted, tmp_path):
    surrogate = fitted
    path = ps.save(surrogate, tmp_path / "model.parasol")
    done = subprocess.run([sys.executable, "-c", BLOCKED, str(path)], check=True, capture_output=True, text=True)
    found, mus = json.loads(done.stdout), [[1.0, 1.0], [0.3, 0.2]]
    answer = surrogate(mus)
    assert np.allclose(found["values"], answer.values, rtol=1e-12, atol=1e-14)
    assert np.allclose(found["one"], surrogate(mus[0]).values, rtol=1e-12, atol=1e-14)
    assert np.allclose(found["bound"], answer.bound, rtol=1e-6)
    assert np.allclose(found["gradient"], surrogate.gradient(mus[0]), rtol=1e-9, atol=1e-12)
    assert list(found["quantities"]) == ["average", "at the centre"]
    for name, values in answer.quantities.items():
        assert np.allclose(found["quantities"][name], values, rtol=1e-9)
        assert found["bounds"][name] > 0
    assert found["names"] == ["a", "k"]
    assert np.allclose(found["middle"], [p.middle for p in surrogate.parameters.scalars])


def test_loading_is_quick(surrogate, tmp_path):
    import time

    path = ps.save(surrogate, tmp_path / "model.parasol")
    seconds = []
    for _ in range(5):
        start = time.process_time()
        ps.load(path)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05  # 6 ms on an idle machine


def test_a_file_says_what_it_is(surrogate, tmp_path):
    path = ps.save(surrogate, tmp_path / "model.parasol")
    with zipfile.ZipFile(path) as file:
        facts = json.loads(file.read("manifest.json"))["facts"]
    assert facts["problem"] == "helmholtz"
    assert facts["equation"] == "-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))"
    assert facts["latex"] == r"- a u_{yy} - k u - u_{xx} = - 10 \sin{\left(8 x \left(y - 1\right) \right)}"
    assert facts["domain"].startswith("Star in [")
    assert facts["made_with"]["dict"]["numpy"] == np.__version__
    again = ps.load(path)
    assert again.facts["n_labels"] == 300
    assert ps.save(again, tmp_path / "again.parasol").read_bytes() == path.read_bytes()


def test_points_outside_the_domain_are_refused_after_loading(surrogate, model, tmp_path):
    again = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    places = np.array([[0.1, 0.2], [-0.3, 0.1]])
    there = surrogate.restricted(points=places)([1.0, 1.0]).values
    assert np.allclose(again.restricted(points=places)([1.0, 1.0]).values, there, rtol=1e-9)
    for outside in ([[0.6, 0.6]], [[5.0, 0.0]]):
        assert not model.problem.domain.contains(outside)[0]
        with pytest.raises(ps.ParasolError, match="outside the domain"):
            again.restricted(points=outside)


def test_sparse_layers(reduced, tmp_path):
    from dataclasses import replace

    from scipy import sparse

    surrogate = ps.fit(reduced, HiddenLayer(), n_labels=200)
    network = surrogate.map.network
    thin = replace(network, weights=tuple(sparse.csr_array(w) for w in network.weights))
    path = ps.save(replace(surrogate, map=replace(surrogate.map, network=thin)), tmp_path / "model.parasol")
    mus = [[1.0, 1.0], [0.3, 0.2]]
    assert np.allclose(ps.load(path)(mus).values, surrogate(mus).values, rtol=1e-9)
    for change, message in {
        "columns": "outside of its columns",
        "rows": "arrays of the wrong kind",
        "parts": "out of order",
    }.items():

        def edit(manifest, change=change):
            tree = [manifest["content"]["fields"]["map"]]
            while "csr" not in tree[0]:  # the first matrix of the program
                node = tree.pop(0)
                tree += [
                    part
                    for part in (node if isinstance(node, list) else node.values())
                    if isinstance(part, dict | list)
                ]
            found = tree[0]
            if change == "parts":
                found["csr"][0] = found["csr"][2]
            else:
                found["shape"][change == "columns"] = 1

        with pytest.raises(ps.ParasolError, match=message):
            ps.load(edited(path, edit))


def test_older_files_are_refused(surrogate, tmp_path):
    path = ps.save(surrogate, tmp_path / "model.parasol")
    with pytest.raises(ps.ParasolError, match="version 1 of the format, which is no longer read"):
        ps.load(edited(path, lambda m: m.update(version=1)))


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

    with pytest.raises(ps.ParasolError, match="files hold maps that have a program"):
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
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "more", "w") as new:
        for name in [*old.namelist(), "../evil"]:
            new.writestr(name, b"" if name == "../evil" else old.read(name))
    with pytest.raises(ps.ParasolError, match="not those of its manifest"):
        ps.load(tmp_path / "more")
    with pytest.raises(ps.ParasolError, match="the number NaN"):
        ps.load(edited(path, lambda m: m["facts"].update(error=float("nan"))))
    with pytest.raises(ps.ParasolError, match="features do not fit"):
        ps.load(edited(path, lambda m: m["content"]["fields"]["parameters"]["fields"]["scalars"].pop()))
    for place in (-1, True, 10**9, "0"):
        with pytest.raises(ps.ParasolError, match="refers to array"):
            ps.load(edited(path, lambda m, p=place: m["content"]["fields"]["basis"]["fields"]["modes"].update(array=p)))
    with pytest.raises(ps.ParasolError, match="is a str"):
        ps.load(edited(path, lambda m: m["content"]["fields"].update(basis="hello")))
    # what nobody computes with is looked at as well: it is shown
    for name, value in {"held_out_error": "x", "n_snapshots": True, "lost_energy": [], "method": 3}.items():
        with pytest.raises(ps.ParasolError, match=f"{name} of a Basis in it is a"):
            ps.load(edited(path, lambda m, n=name, v=value: m["content"]["fields"]["basis"]["fields"].update({n: v})))
    with pytest.raises(ps.ParasolError, match="scheme of a layout is a float"):
        ps.load(edited(path, lambda m: m["content"]["fields"]["layout"]["fields"].update(scheme=1.5)))
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


def test_an_array_that_was_changed_is_refused(surrogate, tmp_path):
    """Other numbers in an array, everything else in order (the sums that ZIP keeps too): only the hash can tell."""
    path = ps.save(surrogate, tmp_path / "model.parasol")
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    name = max((n for n in entries if n.endswith(".npy")), key=lambda n: len(entries[n]))
    array = np.load(io.BytesIO(entries[name])).copy(order="K")
    array.flat[0] += 1e-9
    buffer = io.BytesIO()
    np.save(buffer, array)
    other = tmp_path / "other.parasol"
    with zipfile.ZipFile(other, "w", zipfile.ZIP_STORED) as file:
        for entry, data in (entries | {name: buffer.getvalue()}).items():
            file.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), data)
    with pytest.raises(ps.ParasolError, match=f"{name} has changed since it was written"):
        ps.load(other)

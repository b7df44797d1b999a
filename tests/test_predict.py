"""`parasol predict`, `info` and `export`: files that hold what Python says, and one line where there is nothing to say."""

import dataclasses
import json
import sys

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.delivery.answers import write_answer
from parasol.delivery.files import cells
from parasol.delivery.inputs import named_vector

LEARNED = {
    "tolerance": 1e-3,
    "measured": {"n": 20, "mean": 1e-3, "max": 2e-3},
    "learn": {"met": False, "discretisation_error": 5e-4, "solves": 41},
}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words):
    """The one line that a wrong input gets."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def helmholtz():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@pytest.fixture(scope="module")
def model(folder, helmholtz):
    reduced = ps.reduce(helmholtz, ps.pod(ps.solve_many(helmholtz, ps.sample(helmholtz, 20)), n_modes=8))
    return ps.save(ps.fit(reduced, "polynomial", n_labels=200), folder / "helmholtz.parasol")


@pytest.fixture(scope="module")
def heat(folder):
    problem = ps.load_problem("heat")
    full = ps.discretize(problem, ps.lattice(problem.domain, 11))
    snapshots = ps.solve_many(full, ps.sample(full, 12))
    fitted = ps.fit(snapshots, "polynomial", basis=ps.pod(snapshots, n_modes=4), model=full)
    return ps.save(fitted, folder / "heat.parasol")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_says_what_the_answer_is(model, here):
    result = run("predict", model, "a=0.9", "k=1.7", "--json", "facts.json")
    assert result.exit_code == 0, result.output
    answer = ps.load(model)([0.9, 1.7])
    facts = json.loads((here / "facts.json").read_text())
    assert facts["fields"]["u"] == {"minimum": answer.values.min(), "maximum": answer.values.max()}
    assert facts["norm"]["maximum"] == pytest.approx(np.linalg.norm(answer.values), rel=1e-12)
    assert facts["bound"]["maximum"] == answer.bound
    assert facts["quantities"] == {
        name: {"minimum": value, "maximum": value} for name, value in answer.quantities.items()
    }
    assert set(answer.quantities) == {"average", "at the centre"}
    assert facts["quantity_bounds"] == answer.quantity_bounds
    assert f"off by at most {answer.quantity_bounds['average']:.1e}" in result.stdout
    assert "a 0.9, k 1.7" in result.stdout
    assert f"{answer.bound:.1e}" in result.stdout
    assert json.loads(run("predict", model, "a=0.9", "k=1.7", "--json", "-").stdout)["bound"] == facts["bound"]
    assert run("predict", model, "--quiet").stdout == ""


def test_one_parameter_gives_the_files_of_a_full_solve(model, helmholtz, here):
    names = ["u.csv", "u.npy", "u.npz", "u.vtkhdf", "u.nc", "u.png"]
    result = run("predict", model, "a=0.9", "k=1.7", "--bounds", *[w for name in names for w in ("--out", name)])
    assert result.exit_code == 0, result.output
    assert {path.name for path in here.iterdir()} == set(names)
    answer, solution = ps.load(model)([0.9, 1.7]), helmholtz.solve([0.9, 1.7])
    assert np.linalg.norm(answer.values - solution.values) <= answer.bound * np.linalg.norm(solution.values)
    ps.delivery.write_field(solution, "full.csv")
    mine, full = (np.loadtxt(name, delimiter=",", skiprows=1) for name in ("u.csv", "full.csv"))
    assert (here / "u.csv").open().readline() == (here / "full.csv").open().readline() == "x,y,u\n"
    assert np.array_equal(mine[:, :2], full[:, :2])
    assert np.array_equal(mine[:, 2], answer.values)
    assert np.array_equal(np.load("u.npy"), mine)
    arrays = np.load("u.npz")
    assert np.array_equal(arrays["u"], answer.values)
    assert np.array_equal(arrays["points"], helmholtz.nodes.points)
    assert arrays["bound"] == answer.bound
    with h5py.File("u.vtkhdf") as file:
        grid = file["VTKHDF"]
        assert np.array_equal(grid["PointData/u"][:], answer.values)
        assert grid["FieldData/k"][0] == 1.7
        # the cells that the domain itself would keep: its lobes are not filled in
        found = {tuple(sorted(cell)) for cell in grid["Connectivity"][:].reshape(-1, 3)}
        wanted = {tuple(sorted(cell)) for cell in cells(helmholtz.nodes)}
        assert found == wanted
    assert (here / "u.png").read_bytes().startswith(b"\x89PNG")


def test_netcdf_has_names_on_its_axes(model, heat, helmholtz, here):
    xarray = pytest.importorskip("xarray")
    mus = ps.sample(helmholtz, 3, rng=5)
    np.save("mus.npy", mus)
    assert run("predict", model, "--mus", "mus.npy", "--bounds", "--out", "u.nc").exit_code == 0
    answer = ps.load(model)(mus)
    np.save("mu.npy", mus[1])  # one row is a table of one
    assert run("predict", model, "--mus", "mu.npy", "--out", "one.npy").exit_code == 0
    assert np.load("one.npy").ravel() == pytest.approx(answer.values[1], rel=1e-12, abs=1e-15)
    with xarray.open_dataset("u.nc", engine="h5netcdf") as found:
        assert found["u"].dims == ("sample", "node")
        assert np.array_equal(found["u"], answer.values)
        assert np.array_equal(found["a"], mus[:, 0])
        assert np.array_equal(found["y"], helmholtz.nodes.points[:, 1])
        assert np.array_equal(found["bound"], answer.bound)
        assert found["k"].attrs["high"] == 2.0
        assert np.array_equal(found["at the centre"], answer.quantities["at the centre"])
        assert np.array_equal(found["bound of at the centre"], answer.quantity_bounds["at the centre"])
        assert found.attrs["problem"] == "helmholtz"
    one = ps.delivery.to_xarray(ps.load(heat)([0.3]))
    assert one["u"].dims == ("time", "node")
    assert float(one["kappa"]) == 0.3
    assert np.allclose(one["u"].sel(time=0.5).max(), np.exp(-(np.pi**2) * 0.3), rtol=0.02)


def test_many_parameters(model, helmholtz, here):
    mus = ps.sample(helmholtz, 5, rng=2)
    (here / "mus.csv").write_text("k,comment,a\n" + "".join(f"{k!r},7,{a!r}\n" for a, k in mus.tolist()))
    words = ["predict", model, "--mus", "mus.csv", "--bounds"]
    result = run(*words, "--out", "u.npy", "--out", "u.npz", "--out", "u.csv", "--json", "facts.json")
    assert result.exit_code == 0, result.output
    answer = ps.load(model)(mus)
    assert np.array_equal(np.load("u.npy"), answer.values)
    arrays = np.load("u.npz")
    assert np.array_equal(arrays["mus"], mus)
    assert np.array_equal(arrays["u"], answer.values)
    assert np.array_equal(arrays["bound"], answer.bound)
    assert np.array_equal(arrays["bound of quantity: average"], answer.quantity_bounds["average"])
    assert (here / "u.csv").open().readline() == "sample,a,k,bound,x,y,u\n"
    table = np.loadtxt("u.csv", delimiter=",", skiprows=1).reshape(5, 250, 7)
    assert np.array_equal(table[:, 0, 0], np.arange(5))
    assert np.array_equal(table[:, 3, 1:3], mus)
    assert np.array_equal(table[:, 9, 3], answer.bound)
    assert np.array_equal(table[2, :, 4:6], helmholtz.nodes.points)
    assert np.array_equal(table[..., 6], answer.values)
    facts = json.loads((here / "facts.json").read_text())
    assert facts["n_samples"] == 5
    assert facts["bound"]["maximum"] == answer.bound.max()
    assert facts["parameters"]["k"]["minimum"] == mus[:, 1].min()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".nc", ".vtkhdf"])
def test_a_disk_without_room_is_one_line_and_leaves_nothing(model, here, suffix, capfd, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # what is imported now would be cut too
    surrogate = ps.load(model)
    answer = surrogate([1.0, 1.0]) if suffix == ".vtkhdf" else surrogate(np.tile([1.0, 1.0], (300, 1)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(ps.errors.WriteFailed, match=rf"u{suffix}': .*File too large") as caught:
            write_answer(answer, here / f"u{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    del answer
    assert len(str(caught.value).splitlines()) == 1
    assert not list(here.glob("*u*"))
    assert not capfd.readouterr().err


def test_columns_have_different_names_and_are_read_back(folder, here):
    """Parameters called like the columns that the program adds."""
    mus = np.random.default_rng(0).uniform(0, 1, (30, 2))
    surrogate = ps.fit_snapshots(
        mus, mus @ [[1.0, 2.0], [3.0, 4.0]], "linear", level=0.8, ranges={"bound": (0, 1), "sample": (0, 1)}
    )
    path = ps.save(surrogate, folder / "clash.parasol")
    (here / "mus.csv").write_text("sample,bound\n0.1,0.2\n0.3,0.4\n")
    assert run("predict", path, "--mus", "mus.csv", "--bounds", "--out", "u.csv").exit_code == 0
    header = (here / "u.csv").open().readline().strip().split(",")
    assert len(set(header)) == len(header)
    assert run("predict", path, "--mus", "u.csv", "--out", "again.npy").exit_code == 0
    again = np.load(here / "again.npy")
    assert np.allclose(again[::2], np.array([[0.2, 0.1], [0.4, 0.3]]) @ [[1.0, 2.0], [3.0, 4.0]])
    (here / "twice.csv").write_text("sample,bound,sample\n0.1,0.2,0.5\n")
    assert "two columns 'sample'" in refused("predict", path, "--mus", "twice.csv", "--out", "v.npy")


def test_values_at_points(model, helmholtz, here):
    points = np.array([[0.1, 0.2], [-0.3, 0.1]])
    (here / "points.csv").write_text("y,x\n0.2,0.1\n0.1,-0.3\n")
    assert run("predict", model, "a=1.5", "k=1", "--points", "points.csv", "--out", "u.csv").exit_code == 0
    table = np.loadtxt("u.csv", delimiter=",", skiprows=1)
    assert np.array_equal(table[:, :2], points)
    assert np.allclose(table[:, 2], helmholtz.solve({"a": 1.5, "k": 1.0}).at(points), rtol=0, atol=1e-4)
    assert "not values at chosen points" in refused("predict", model, "--points", "points.csv", "--out", "u.png")


def test_in_time(heat, here):
    names = ["u.csv", "u.npz", "u.gif", "u.vtkhdf"]
    result = run("predict", heat, "kappa=0.3", *[w for name in names for w in ("--out", name)])
    assert result.exit_code == 0, result.output
    answer = ps.load(heat)([0.3])
    assert (here / "u.csv").open().readline() == "t,x,y,u\n"
    arrays = np.load("u.npz")
    assert np.array_equal(arrays["u"].ravel(), answer.values)
    assert np.allclose(arrays["times"], np.linspace(0, 0.5, 11))
    middle = np.argmin(np.sum((arrays["points"] - 0.5) ** 2, axis=1))
    assert np.allclose(arrays["u"][:, middle], np.exp(-2 * np.pi**2 * 0.3 * arrays["times"]), atol=0.01)
    assert (here / "u.gif").read_bytes().startswith(b"GIF89a")
    with h5py.File("u.vtkhdf") as file:
        assert file["VTKHDF/Steps"].attrs["NSteps"] == 11
    assert run("predict", heat, "--times", "0,0.5", "--out", "two.npz").exit_code == 0
    assert np.load("two.npz")["u"].shape == (2, 121)
    assert run("predict", heat, "--times", "0.5", "--out", "last.png").exit_code == 0
    assert "t=0.123 is not a stored time" in refused("predict", heat, "--times", "0.123")
    assert "is not a list of times" in refused("predict", heat, "--times", "0:1:2")
    assert "an animation of one moment" in refused("predict", heat, "--times", "0.5", "--out", "u2.gif")


def test_functions_are_drawn_as_a_model_draws_them(folder, here):
    problem = ps.load_problem("schrodinger")
    full = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    snapshots = ps.solve_many(full, full.sample(15))
    path = ps.save(ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=6), model=full), "sphere.parasol")
    assert np.allclose(named_vector(ps.load(path), {}, rng=4), full.vector(rng=4), rtol=0, atol=1e-14)
    result = run("predict", path, "--seed", 4, "--out", "u.npz")
    assert result.exit_code == 0, result.output
    assert np.allclose(np.load("u.npz")["u"], ps.load(path)(full.vector(rng=4)).values)
    assert "not known" in result.stdout
    assert "nothing is known about the errors" in refused("predict", path, "--bounds")
    assert "'f' is a function" in refused("predict", path, "f=1")


def test_bare_data(folder, here):
    mus = np.random.default_rng(0).uniform(0, 1, (40, 1))
    values = (1 + mus) * np.arange(8) + mus**2
    surrogate = ps.fit_snapshots(mus, values, "polynomial", level=None, ranges={"s": (0.0, 1.0)})
    path = ps.save(surrogate, "bare.parasol")
    assert run("predict", path, "s=0.5", "--out", "u.csv").exit_code == 0
    assert np.allclose(np.loadtxt("u.csv", skiprows=1), 1.5 * np.arange(8) + 0.25)
    assert "knows none" in refused("predict", path, "--out", "u.png")
    assert "knows none" in refused("predict", path, "--points", "u.csv")


def test_wrong_input_gets_one_line_and_leaves_nothing(model, here):
    assert "parameter a=9 is outside its range [0.1, 4]" in refused("predict", model, "a=9", "k=1", "--out", "u.npy")
    assert "unknown parameter 'b'" in refused("predict", model, "b=1")
    assert "not an assignment" in refused("predict", model, "a")
    assert "there is no file 'nowhere.parasol'" in refused("predict", "nowhere.parasol")
    assert "there is no file 'nowhere.csv'" in refused("predict", model, "--mus", "nowhere.csv")
    assert "the suffix '.doc' is unknown" in refused("predict", model, "--out", "u.doc")
    assert "shows one parameter, not many" in refused("predict", model, "--mus", "m.csv", "--out", "u.png")
    assert "would be an animation of one moment" in refused("predict", model, "--out", "u.gif")
    assert "times are for problems in time" in refused("predict", model, "--times", "1")
    assert "two outputs have the same file name" in refused("predict", model, "--out", "u.npy", "--json", "./u.npy")
    assert list(here.iterdir()) == []
    for text, words in {
        "a,b\n1,2\n": "it has no column 'k'",
        "1,2,3\n": "expected (n_rows, 2) (a, k)",
        "1,nan\n": "NaN or infinite",
        "1,2\n1\n": "cannot read 'm.csv' as a table of numbers",
        "a,k\n": "has names but no rows",
        "\n": "is empty",
    }.items():
        (here / "m.csv").write_text(text)
        assert words in refused("predict", model, "--mus", "m.csv")
    (here / "m.csv").write_text("1,1\n")
    assert "give either NAME=VALUE or --mus" in refused("predict", model, "a=1", "--mus", "m.csv")
    np.save("m.npy", np.array(["a"]))
    assert "not numbers" in refused("predict", model, "--mus", "m.npy")
    (here / "far.csv").write_text("5,5\n")
    assert "outside the domain" in refused("predict", model, "--points", "far.csv")


def test_outside_the_box_when_asked_to(model, here):
    result = run("predict", model, "a=4.1", "k=1", "--extrapolate", "--json", "facts.json", "--out", "u.npy")
    assert result.exit_code == 0, result.output
    assert "nothing is promised" in result.stdout
    assert json.loads((here / "facts.json").read_text())["extrapolated"] == 1
    assert "positive" in refused("predict", model, "a=-1", "k=1", "--extrapolate")
    # every file that has names says so; where nothing is extrapolated, none speaks of it
    (here / "two.csv").write_text("1,1\n5,1\n")
    for given in (["--mus", "two.csv"], ["k=1", "a=5"], ["k=1", "a=1"]):
        outputs = [word for name in ("e.npz", "e.nc", "e.csv") for word in ("--out", name)]
        assert run("predict", model, *given, "--extrapolate", *outputs).exit_code == 0
        wanted = {"two.csv": [False, True], "a=5": True}.get(given[-1])
        with np.load("e.npz") as arrays, h5py.File("e.nc") as netcdf:
            for found in (arrays, netcdf):
                assert ("extrapolated" in found) == (wanted is not None)
                assert wanted is None or np.array_equal(np.asarray(found["extrapolated"]).astype(bool), wanted)
        if given[0] == "--mus":
            table = np.genfromtxt("e.csv", delimiter=",", names=True)
            assert np.array_equal(table["extrapolated"], table["a"] > 4)


def test_info(model, heat, here):
    result = run("info", model, "--json", "facts.json")
    assert result.exit_code == 0, result.output
    facts = json.loads((here / "facts.json").read_text())
    assert facts["parameters"][0] == {"name": "a", "low": 0.1, "high": 4.0, "scale": "log"}
    assert (facts["n_nodes"], facts["n_modes"], facts["n_values"], facts["dimension"]) == (250, 8, 250, 2)
    assert facts["basis"]["n_snapshots"] == 20
    assert facts["map"]["kind"] == "FittedPolynomial"
    assert facts["bound"]["kind"] == "certificate"
    assert facts["n_bytes"] == model.stat().st_size
    assert facts["made"]["n_labels"] == 200
    assert facts["equation"] == "-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))"
    assert facts["quantities"] == ["average", "at the centre"]
    for words in (
        facts["equation"],
        "Star",
        "parasol ",
        "a in [0.1, 4] (log), k in [0, 2]",
        "8 modes",
        "20 snapshots",
        "250 = ",
    ):
        assert words in result.stdout
    learned = dataclasses.replace(ps.load(model), facts=LEARNED)
    result = run("info", ps.save(learned, "learned.parasol"))
    for words in ("0.001 against the discrete solution, NOT met", "max 2.0e-03 on 20 fresh", "about 5.0e-04", "41"):
        assert words in result.stdout
    facts = json.loads(run("info", heat, "--json", "-").stdout)
    assert facts["times"] == {"first": 0.0, "last": 0.5, "count": 11}
    assert facts["bound"] == {"kind": None, "meaning": "not known"}
    assert "there is no file" in refused("info", "nowhere.parasol")


def test_export(model, here):
    result = run("export", model, "--to", "model.onnx", "--json", "facts.json")
    assert result.exit_code == 0, result.output
    assert "wrote model.onnx" in result.stdout
    assert json.loads((here / "facts.json").read_text())["difference"] < 1e-10
    whole = (here / "model.onnx").stat().st_size
    assert run("export", model, "--to", "model.onnx", "--dtype", "float32", "--quiet").stdout == ""
    assert (here / "model.onnx").stat().st_size < whole
    assert "the suffix '.pt' is unknown" in refused("export", model, "--to", "model.pt")


def test_columns_of_a_table_come_in_the_order_asked_for(tmp_path):
    from parasol.delivery.inputs import read_table

    (tmp_path / "mus.csv").write_text("a,note,k\n1,x,2\n3,y,4\n")
    assert read_table(tmp_path / "mus.csv", ("k", "a"), 2).tolist() == [[2.0, 1.0], [4.0, 3.0]]

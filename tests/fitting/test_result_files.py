"""Results from files: what comes in is what went out, in the right order; what is wrong is said in one line."""

import numpy as np
import pytest

import parasol as ps

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
A = np.linspace(1.0, 2.0, 12)


def field(a):
    return np.outer(a, [1.0, 2.0, 3.0, 4.0])


def test_a_table_of_numbers(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("speed;drag;side\n" + "\n".join(f"{a};{a * a};{-a}" for a in A))
    results = ps.read_results(path, ["speed"])
    assert np.array_equal(results.mus[:, 0], A)
    assert np.allclose(results.scalars["drag"], A**2)
    assert list(results.scalars) == ["drag", "side"]
    assert list(ps.read_results(path, ["speed"], fields=["side"]).scalars) == ["side"]


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_arrays_by_name(tmp_path, suffix):
    path = tmp_path / f"runs{suffix}"
    arrays = {"a": A, "T": field(A), "points": POINTS, "cells": np.array([[0, 1, 2], [0, 2, 3]])}
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values
    results = ps.read_results(path, ["a"])
    assert results.parameters == ("a",)
    assert np.array_equal(results.fields["T"], field(A))
    assert np.array_equal(results.cells, arrays["cells"])


def test_a_dataset_comes_back_as_it_went_out(tmp_path):
    pytest.importorskip("xarray")
    results = ps.Results({"a": A}, {"T": field(A)}, points=POINTS, cells=[[0, 1, 2], [0, 2, 3]])
    surrogate = ps.fit_snapshots(
        results.mus, results.values, "linear", level=None, ranges={"a": (1, 2)}, layout=results.layout
    )
    data = surrogate(A[:, None]).to_xarray()
    data.to_netcdf(tmp_path / "runs.nc", engine="h5netcdf")
    numbered = data.assign_coords(place=("node", [4, 1, 2, 3]))  # somebody's own numbers of the nodes
    for source in (data, tmp_path / "runs.nc", numbered):
        back = ps.read_results(source)
        assert back.parameters == ("a",)
        assert np.allclose(back.fields["T"], field(A))
        assert np.array_equal(back.points, POINTS)


@pytest.mark.parametrize("kind", ["float", "timedelta64[ns]", "timedelta64[ms]"])
def test_a_grid_in_time(kind):
    xarray = pytest.importorskip("xarray")
    x, y, t = np.linspace(0, 1, 3), np.linspace(0, 2, 2), np.array([0.0, 0.5])
    values = A[:, None, None, None] + t[:, None, None] + 10 * y[:, None] + 100 * x
    data = xarray.Dataset({"T": (("run", "time", "y", "x"), values)}, {"a": ("run", A), "time": t, "y": y, "x": x})
    if kind != "float":  # dates less another one, in whatever unit, are times in seconds
        data["time"] = (1000 * t).astype("timedelta64[ms]").astype(kind)
    results = ps.read_results(data)
    assert np.array_equal(results.times, t)
    assert results.points.shape == (6, 2)
    at = {name: column for name, column in zip(("y", "x"), results.points.T, strict=True)}
    assert np.allclose(results.fields["T"][3, 1], A[3] + 0.5 + 10 * at["y"] + 100 * at["x"])
    with pytest.raises(ps.ParasolError, match=r"the column 'c' of the parameters has shape \(\)"):
        ps.read_results(data.assign_coords(c=3.0), parameters=["c"])


@pytest.fixture
def cases(tmp_path):
    """Twelve files; their names in the order of the alphabet are not those of the numbers."""
    pyvista = pytest.importorskip("pyvista")
    for i, a in enumerate(A):
        grid = pyvista.UnstructuredGrid({9: np.array([[0, 1, 2, 3]])}, np.column_stack([POINTS, np.zeros(4)]))
        grid.point_data["T"] = field([a])[0]
        grid.point_data["u"] = np.column_stack([field([a])[0], POINTS[:, 0], np.zeros(4)])
        grid.save(tmp_path / f"case_{i}.vtu")
    (tmp_path / "table.csv").write_text("a\n" + "\n".join(map(repr, A.tolist())))
    return tmp_path


def test_one_file_for_each_run(cases):
    results = ps.read_results(str(cases / "case_*.vtu"), cases / "table.csv")
    assert np.array_equal(results.mus[:, 0], A)
    assert np.allclose(results.fields["T"], field(A))
    assert results.fields["u"].shape == (12, 4, 2)  # a vector in the plane
    assert results.points.shape == (4, 2)
    assert len(results.cells) == 2  # a quadrilateral, cut in two
    names = [f"case_{i}.vtu" for i in reversed(range(12))]
    turned = ps.read_results(cases, {"file": names, "a": A[::-1]}, fields=["T"])
    assert np.allclose(turned.fields["T"], field(A[::-1]))


def test_rows_find_their_files(cases):
    """By numbers and by folders; a column of numbers was taken for a parameter, and the rows for the order of the files."""
    turned = ps.read_results(cases, {"case": np.arange(12.0)[::-1], "a": A[::-1]}, fields=["T"])
    assert turned.parameters == ("a",)
    assert np.allclose(turned.fields["T"], field(A[::-1]))
    with pytest.warns(
        ps.ParasolWarning, match="9 of 12 files are not in the table of parameters and left out: case_0.vtu"
    ):
        ps.read_results(cases, {"run": [3, 1, 2], "a": A[[3, 1, 2]]})
    with pytest.raises(ps.ParasolError, match=r"'case' .* names '66', which is none of the 12 files. Add the file"):
        ps.read_results(cases, {"case": np.arange(66, 78), "a": A})
    with pytest.raises(ps.ParasolError, match=r"'case_1.vtu' twice"):
        ps.read_results(cases, {"file": ["case_1.vtu", "case_1.vtu"], "a": [1.0, 2.0]})
    for i in range(12):
        (cases / f"run_{i}").mkdir()
        (cases / f"case_{i}.vtu").rename(cases / f"run_{i}" / "end.vtu")
    for table in ({"file": [f"run_{i}/end.vtu" for i in reversed(range(12))]}, {"id": np.arange(12)[::-1]}):
        turned = ps.read_results(str(cases / "*" / "end.vtu"), {**table, "a": A[::-1]}, fields=["T"])
        assert np.allclose(turned.fields["T"], field(A[::-1]))
    with pytest.raises(ps.ParasolError, match=r"'end.vtu', which is several"):
        ps.read_results(str(cases / "*" / "end.vtu"), {"file": ["end.vtu"] * 12, "a": A})


def test_files_that_say_their_parameters(cases):
    pyvista = pytest.importorskip("pyvista")
    with pytest.raises(ps.ParasolError, match=r"case_0.vtu' does not say its parameter 'a'"):
        ps.read_results(cases, ["a"])
    for i, a in enumerate(A):
        grid = pyvista.read(cases / f"case_{i}.vtu")
        grid.field_data["a"], grid.field_data["number"], grid.field_data["by"] = [a], [i], ["me"]
        grid.save(cases / f"case_{i}.vtu")
    assert ps.read_results(cases, ["a"]).parameters == ("a",)
    assert ps.read_results(cases).parameters == ("a", "number")


def test_files_that_do_not_belong_together(cases):
    pyvista = pytest.importorskip("pyvista")
    with pytest.raises(ps.ParasolError, match="12 files and 11 rows"):
        ps.read_results(cases, {"a": A[:11]})
    with pytest.raises(ps.ParasolError, match=r"'case_77.vtu', which is none"):
        ps.read_results(cases, {"file": ["case_77.vtu"], "a": [1.0]})
    with pytest.raises(ps.ParasolError, match="do not say their parameters"):
        ps.read_results(cases)
    grid = pyvista.read(cases / "case_3.vtu")
    grid.points[:, 0] *= 2
    grid.save(cases / "case_3.vtu")
    with pytest.raises(ps.ParasolError, match=r"case_3.vtu' has another mesh"):
        ps.read_results(cases, {"a": A})
    grid.points[:, 0] /= 2
    corners = grid.cells.copy()
    corners[[1, 2]] = corners[[2, 1]]
    other = pyvista.UnstructuredGrid(corners, grid.celltypes, grid.points)
    other.point_data.update(grid.point_data)
    other.save(cases / "case_3.vtu")
    with pytest.raises(ps.ParasolError, match=r"case_3.vtu' joins the points to other cells"):
        ps.read_results(cases, {"a": A})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("runs.npz", "a,b\n1,2\n", "cannot be read as .npz: it is no archive of arrays"),
        ("runs.csv", "1,2\n3,4\n", "must name the columns"),
        ("runs.csv", "a,b\n", "has no rows"),
        ("runs.csv", "a,a\n1,2\n", "two columns 'a'"),
        ("runs.csv", "a,b\n1,2\n3\n", "row 2 .* has 1 cells"),
        ("runs.csv", "a,b\n1,steel\n", "'b' is text, not real numbers"),
        ("runs.csv", "b,c\n1,2\n", "has no 'a'"),
        ("runs.docx", "a,b\n1,2\n", "cannot be read as results"),
        ("other.csv", "a,b\n1,2\n", "there are no results at"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path, name, text, message):
    (tmp_path / name.replace("other", "own")).write_text(text)
    with pytest.raises(ps.ParasolError, match=message) as caught:
        ps.read_results(tmp_path / name, ["a"])
    assert "\n" not in str(caught.value)


def test_names_of_the_columns_of_mus(tmp_path):
    np.savez(tmp_path / "runs.npz", mus=np.column_stack([A, -A]), solutions=field(A))
    results = ps.read_results(tmp_path / "runs.npz", ["a", "b"])
    assert results.parameters == ("a", "b")
    assert np.array_equal(results.mus[:, 1], -A)
    with pytest.raises(ps.ParasolError, match=r"mus in .* has shape \(12, 2\), parameters names a\."):
        ps.read_results(tmp_path / "runs.npz", ["a"])  # the names were passed over without a word


# ---- one table or array for each run ----------------------------------------------------------------------------------
def written(folder, rows=A, suffix=".csv"):
    """A file for each run, and the table of parameters in another order than the files."""
    for i, a in enumerate(rows):
        columns = {"x": POINTS[:, 0], "y": POINTS[:, 1], "T": field([a])[0], "q": -field([a])[0]}
        path = folder / f"run_{i}{suffix}"
        if suffix == ".csv":
            lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            path.write_text("\n".join(lines))
        elif suffix == ".npz":
            np.savez(path, **columns)
        else:
            np.save(path, columns["T"])
    order = np.random.default_rng(0).permutation(len(rows))
    lines = ["run,a", *(f"run_{i},{rows[i]}" for i in order)]
    (folder / "table.csv").write_text("\n".join(lines))
    return order


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".npy"])
def test_a_table_or_arrays_for_each_run(tmp_path, suffix, recwarn):
    order = written(tmp_path, suffix=suffix)
    pattern = str(tmp_path / ("*.csv" if suffix == ".csv" else f"run_*{suffix}"))  # the table of parameters is no run
    about = {"points": POINTS} if suffix == ".npy" else {}
    results = ps.read_results(pattern, tmp_path / "table.csv", **about)
    assert not recwarn.list  # of a file that is not in the table
    assert results.parameters == ("a",)
    assert np.array_equal(results.mus[:, 0], A[order])
    assert np.array_equal(results.points, POINTS)
    assert np.allclose(results.fields["u" if suffix == ".npy" else "T"], field(A[order]))
    assert list(results.fields) == (["u"] if suffix == ".npy" else ["T", "q"])
    if suffix != ".npy":
        assert list(ps.read_results(pattern, tmp_path / "table.csv", fields=["q"]).fields) == ["q"]


def test_tables_that_do_not_belong_together(tmp_path):
    written(tmp_path)
    with pytest.raises(ps.ParasolError, match="12 files do not say their parameters"):
        ps.read_results(str(tmp_path / "run_*.csv"))
    wrong = tmp_path / "run_3.csv"
    for text, said in (
        ("x,y,T,q\n0,0,1,1\n1,0,1,1\n1,1,1,1\n0,2,1,1", "has another 'y' than"),
        ("x,y,T,q\n0,0,1,1", "'x' has shape"),
        ("x,y,T\n0,0,1\n1,0,1\n1,1,1\n0,1,1", "do not hold the same: 'q'"),
    ):
        wrong.write_text(text)
        with pytest.raises(ps.ParasolError, match=said):
            ps.read_results(str(tmp_path / "run_*.csv"), tmp_path / "table.csv")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"u": np.arange(3) * 1j}, "'u' in .*2.npz' are no real numbers"),
        ({"u": np.arange(3).astype("datetime64[s]")}, "dates are no numbers"),
        ({"u": np.array(["1", "n/a", "3"])}, "'u' in .*2.npz' are no real numbers"),
        ({"points": np.array([["a"], ["b"], ["c"]])}, "'points' in .*2.npz' are no real numbers"),
        ({"times": np.arange(3).astype("datetime64[s]")}, "dates are no numbers"),
        ({"cells": np.array([[0, 1], [1, 2_000_001]])}, "another 'cells'"),
        ({"weights": np.array([1.0, 2.0, 1.5])}, "another 'weights'"),
    ],
)
def test_each_run_is_looked_at_by_itself(second, said, tmp_path):
    """Of other runs than the first, imaginary parts were dropped and dates read as numbers."""
    usual = {"u": np.arange(3.0), "points": np.arange(3.0)[:, None], "times": np.arange(3.0), "weights": np.ones(3)}
    usual["cells"] = np.array([[0, 1], [1, 2_000_000]])  # nearly the same is another cell
    np.savez(tmp_path / "run_1.npz", **usual)
    np.savez(tmp_path / "run_2.npz", **(usual | second))
    with pytest.raises(ps.ParasolError, match=said):
        ps.read_results(tmp_path / "run_*.npz", {"a": [1.0, 2.0]})


def test_weights_in_the_file_of_each_run_are_no_field(tmp_path):
    for k in (1, 2):
        np.savez(tmp_path / f"run_{k}.npz", u=k * np.arange(3.0), weights=np.array([1.0, 2.0, 1.0]))
    runs = ps.read_results(tmp_path / "run_*.npz", {"a": [1.0, 2.0]})
    assert list(runs.fields) == ["u"]
    assert runs.weights.tolist() == [1.0, 2.0, 1.0]


def test_numbers_of_runs_of_many_digits(tmp_path):
    """A table of numbers alone holds floats: 1234567 was looked for as 1.23457e+06."""
    for k in (1234567, 1234568):
        np.save(tmp_path / f"run_{k}.npy", np.full(3, k))
    runs = ps.read_results(tmp_path / "run_*.npy", {"case": [1234568.0, 1234567.0], "a": [8.0, 7.0]})
    assert runs.fields["u"][:, 0].tolist() == [1234568.0, 1234567.0]
    assert runs.mus.ravel().tolist() == [8.0, 7.0]


def test_numbers_of_runs_written_with_zeros_in_front(tmp_path):
    for k in (1, 12):
        np.save(tmp_path / f"run_{k:03d}.npy", np.full(3, k))
    runs = ps.read_results(tmp_path / "run_*.npy", {"case": np.array(["012", "001"]), "a": [8.0, 7.0]})
    assert runs.fields["u"][:, 0].tolist() == [12.0, 1.0]


@pytest.mark.parametrize("text", ["a;drag\n0,1;2,5\n0,2;3\n", "a\tdrag\n0.1\t2,5\n0.2\t3\n"])
def test_decimal_commas_are_named_not_taken_for_words(tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(ps.ParasolError, match=r"numbers with commas in the column '(a|drag)', such as (0,1|2,5)"):
        ps.read_results(tmp_path / "runs.csv", parameters=["a"])


@pytest.mark.parametrize("column", ["Run", "File", "run of the index"])
def test_tables_of_any_kind_say_which_file_belongs_to_a_row(column, tmp_path):
    """Only dicts and CSV files did: rows of a data frame were taken in the order of the files."""
    pandas = pytest.importorskip("pandas")
    for k in (1, 2, 10):
        np.save(tmp_path / f"run_{k}.npy", np.full(3, float(k)))
    names = [f"run_{k}" for k in (10, 1, 2)] if column == "File" else [10, 1, 2]
    frame = pandas.DataFrame({"a": [10.0, 1.0, 2.0], column.split()[0]: names})
    frame = frame.set_index("run") if column == "run of the index" else frame
    runs = ps.read_results(tmp_path / "run_*.npy", frame)
    assert runs.parameters == ("a",)
    assert runs.fields["u"][:, 0].tolist() == runs.mus[:, 0].tolist()


def test_places_far_from_zero_are_compared_by_their_own_extent(tmp_path):
    """Of coordinates about 5e6, as maps have them, meshes that were off by metres were the same."""
    for k in (1, 2):
        np.savez(
            tmp_path / f"run_{k}.npz", u=np.full(3, k), points=5e6 + np.array([[0.0], [1.0], [2.0 + 0.5 * (k - 1)]])
        )
    with pytest.raises(ps.ParasolError, match="another 'points'"):
        ps.read_results(tmp_path / "run_*.npz", {"a": [1.0, 2.0]})


def test_names_with_underscores_are_no_numbers(tmp_path):
    (tmp_path / "runs.csv").write_text("mesh,q\n1_2,1\n12,2\n2_2,3\n")
    assert ps.read_results(tmp_path / "runs.csv", ["mesh"]).labels == {"mesh": ("12", "1_2", "2_2")}

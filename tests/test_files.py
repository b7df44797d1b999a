import os
from base64 import b64decode
from math import factorial
from types import SimpleNamespace
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

import parasol as ps
from parasol.cache.disk import check_output, replacing
from parasol.delivery import files
from parasol.delivery.files import cells, write_field


@pytest.fixture(scope="module")
def solution():
    problem = ps.load_problem("cooled-pipe")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400)).solve({"biot": 2.0})


@pytest.fixture(scope="module")
def displacements():
    problem = ps.load_problem("elasticity")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200), degree=3).solve()


@pytest.fixture(scope="module")
def evolution():
    problem = ps.load_problem("gray-scott")  # two unknowns, in time
    return ps.discretize(problem, ps.lattice(problem.domain, 14), degree=2).solve(times=[0.0, 10.0, 25.0])


def volume(nodes, found):
    corners = nodes.points[found]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / factorial(nodes.dimension)


def test_text_holds_every_digit(solution, tmp_path):
    path = write_field(solution, tmp_path / "u.csv")
    assert path.read_text().partition("\n")[0] == "x,y,u"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.array_equal(table, np.column_stack([solution.model.nodes.points, solution.values]))


def test_array_holds_coordinates_then_values(solution, tmp_path):
    table = np.load(write_field(solution, str(tmp_path / "u.npy")), allow_pickle=False)
    assert table.shape == (400, 3)
    assert np.array_equal(table[:, 2], solution.values)


def test_several_unknowns_are_columns_by_name(displacements, tmp_path):
    path = write_field(displacements, tmp_path / "u.csv")
    assert path.read_text().partition("\n")[0] == "x,y,p,q"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.array_equal(table, np.load(write_field(displacements, tmp_path / "u.npy")))
    assert np.array_equal(table[:, 2:].T, list(displacements.fields.values()))
    with h5py.File(write_field(displacements, tmp_path / "u.vtkhdf")) as file:
        assert set(file["VTKHDF/PointData"]) == {"p", "q"}
        assert np.array_equal(file["VTKHDF/PointData/q"][:], displacements.fields["q"])
        assert "Steps" not in file["VTKHDF"]


def test_time_is_the_first_and_slowest_column(evolution, tmp_path):
    path = write_field(evolution, tmp_path / "u.csv")
    assert path.read_text().partition("\n")[0] == "t,x,y,u,v"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.array_equal(table, np.load(write_field(evolution, tmp_path / "u.npy")))
    by_time = table.reshape(3, 196, 5)
    for t, rows, u, v in zip([0.0, 10.0, 25.0], by_time, *evolution.fields.values(), strict=True):
        assert np.array_equal(rows, np.column_stack([np.full(196, t), evolution.model.nodes.points, u, v]))


def test_named_arrays_repeat_nothing(displacements, evolution, tmp_path):
    with np.load(write_field(displacements, tmp_path / "p.npz"), allow_pickle=False) as arrays:
        assert set(arrays) == {"points", "p", "q"}
        assert np.array_equal(arrays["q"], displacements.fields["q"])
    with np.load(write_field(evolution, tmp_path / "u.npz"), allow_pickle=False) as arrays:
        assert set(arrays) == {"points", "times", "u", "v"}
        assert arrays["points"].shape == (196, 2)
        assert arrays["times"].tolist() == [0.0, 10.0, 25.0]
        assert np.array_equal(arrays["v"], evolution.fields["v"])


def test_vtkhdf_in_time_has_steps_that_share_the_mesh(evolution, tmp_path):
    # read back with the vtk wheel once: times, values and mesh at every step
    with h5py.File(write_field(evolution, tmp_path / "u.vtkhdf")) as file:
        root = file["VTKHDF"]
        steps = root["Steps"]
        assert steps.attrs["NSteps"] == 3
        assert steps["Values"][:].tolist() == [0.0, 10.0, 25.0]
        assert root["Points"].shape == (196, 3)
        assert root["NumberOfPoints"][:].tolist() == [196]
        for name in ("PartOffsets", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets"):
            assert not np.any(steps[name][:])
        assert steps["NumberOfParts"][:].tolist() == [1, 1, 1]
        for name, values in evolution.fields.items():
            starts = steps[f"PointDataOffsets/{name}"][:]
            read = [root[f"PointData/{name}"][start : start + 196] for start in starts]
            assert np.array_equal(read, values)


def test_vtkhdf_is_an_unstructured_grid(solution, tmp_path):
    with h5py.File(write_field(solution, tmp_path / "u.vtkhdf")) as file:
        root = file["VTKHDF"]
        assert root.attrs["Type"] == b"UnstructuredGrid"
        assert root.attrs["Version"].tolist() == [2, 0]
        count = root["NumberOfCells"][0]
        assert count > 0
        assert root["Points"].shape == (root["NumberOfPoints"][0], 3)
        assert root["Offsets"].shape == (count + 1,)
        assert root["Offsets"][-1] == root["NumberOfConnectivityIds"][0] == root["Connectivity"].size == 3 * count
        assert set(root["Types"][:]) == {5}
        assert np.array_equal(root["PointData/u"][:], solution.values)
        assert root["FieldData/biot"][:].tolist() == [2.0]


@pytest.mark.parametrize("name", ["cooled-pipe", "graded-material", "hollow-block", "boundary-layer", "reaction-layer"])
def test_cells_fill_the_domain_and_nothing_else(name):
    nodes = ps.scatter(ps.load_problem(name).domain, n_nodes=600)
    found = cells(nodes)
    signed = volume(nodes, found)
    assert signed.min() > 0  # the orientation VTK expects
    assert signed.sum() == pytest.approx(nodes.domain.volume(), rel=0.015)
    assert set(np.unique(found)) == set(range(nodes.n_nodes))


def test_cells_do_not_bridge_a_notch():
    # a slot narrower than the spacing: triangles across it have corners on both walls
    slotted = ps.Polygon([(0, 0), (1, 0), (1, 1), (0.51, 1), (0.5, 0.2), (0.49, 1), (0, 1)])
    nodes = ps.scatter(slotted, n_nodes=300)
    found = cells(nodes)
    assert volume(nodes, found).sum() == pytest.approx(slotted.volume(), rel=1e-9)
    x, y = np.moveaxis(nodes.points[found], 2, 0)
    assert not np.any((y > 0.8).all(axis=1) & (x.min(axis=1) < 0.495) & (x.max(axis=1) > 0.505))


def test_cells_stop_at_the_seam_of_a_period():
    nodes = ps.scatter(ps.load_problem("periodic-channel").domain, n_nodes=500)
    found = cells(nodes)
    assert np.ptp(nodes.points[found][:, :, 0], axis=1).max() < 4 * nodes.spacing.max()
    _, owner, wrapped = files.wrapped_cells(nodes)
    assert owner.max() < nodes.n_nodes
    assert len(wrapped) > len(found)


def test_cells_of_a_line_in_two_pieces():
    nodes = ps.scatter(ps.Box(0.0, 1.0) | ps.Box(2.0, 3.0), n_nodes=20)
    assert volume(nodes, cells(nodes)).sum() == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("u.docx", "'.docx' is unknown. Use one of: .csv, .npy, .npz, .vtkhdf"),
        ("u", "no suffix"),
        ("no/u.csv", "no directory"),
    ],
)
def test_wrong_outputs_are_refused(solution, tmp_path, name, words):
    with pytest.raises(ps.ParasolError, match=words):
        write_field(solution, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_only_ordinary_files_are_replaced(tmp_path):
    (tmp_path / "u.csv").mkdir()
    with pytest.raises(ps.ParasolError, match="not an ordinary file"):
        check_output(tmp_path / "u.csv", None)
    with pytest.raises(ps.ParasolError, match="not an ordinary file"):
        check_output("/dev/null", None)


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(solution, tmp_path, monkeypatch):
    path = tmp_path / "u.npy"
    path.write_bytes(b"old")

    def full_disk(target, *_, **__):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(ps.errors.WriteFailed) as caught:
        write_field(solution, path)
    assert str(caught.value) == f"cannot write '{path}': No space left on device. Choose another place."
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_on_the_way_to_another_file_has_that_name(tmp_path):
    with pytest.raises(ps.errors.WriteFailed) as caught, replacing(tmp_path / "u.csv") as outer, replacing(outer):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == f"cannot write '{tmp_path / 'u.csv'}': No space left on device. Choose another place."
    assert not list(tmp_path.iterdir())


def test_replacing_follows_links(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    os.symlink(real, link)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_fields_of_several_components_are_vectors_in_their_order():
    fields = {name: np.full(4, float(i)) for i, name in enumerate(("p", "u_x", "u_y", "s"))}
    model = SimpleNamespace(vectors=(("p", 1), ("u", 2), ("s", 1)))
    found = files._point_data(SimpleNamespace(fields=fields, model=model))
    assert list(found) == ["p", "u", "s"]
    assert found["u"].tolist() == [[1.0, 2.0, 0.0]] * 4  # three, as VTK wants
    assert found["p"].tolist() == [0.0] * 4
    assert found["s"].tolist() == [3.0] * 4


def test_vtu_holds_points_cells_and_values(solution, tmp_path):
    root = ElementTree.parse(write_field(solution, tmp_path / "u.vtu")).getroot()
    kinds = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}
    arrays = {}
    for one in root.iter("DataArray"):
        raw = b64decode(one.text)
        assert int.from_bytes(raw[:8], "little") == len(raw) - 8
        arrays[one.get("Name")] = np.frombuffer(raw[8:], kinds[one.get("type")])
    nodes = solution.model.nodes
    found = cells(nodes)
    assert np.array_equal(arrays["u"], solution.values)
    assert np.array_equal(arrays["biot"], [2.0])
    assert np.array_equal(arrays["Points"].reshape(-1, 3), np.column_stack([nodes.points, np.zeros(400)]))
    assert np.array_equal(arrays["connectivity"].reshape(-1, 3), found)
    assert np.array_equal(arrays["offsets"], 3 * np.arange(1, len(found) + 1))  # where each cell ends
    assert set(arrays["types"]) == {5}
    assert root.find(".//Piece").attrib == {"NumberOfPoints": "400", "NumberOfCells": str(len(found))}

import os
from math import factorial

import h5py
import numpy as np
import pytest

import parasol as ps
from parasol.delivery import files
from parasol.delivery.files import cells, check_output, replacing, write_field


@pytest.fixture(scope="module")
def solution():
    problem = ps.load_problem("cooled-pipe")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400)).solve({"biot": 2.0})


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
        ("u.docx", "'.docx' is unknown. Use one of: .csv, .npy, .vtkhdf"),
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
        check_output(tmp_path / "u.csv")
    with pytest.raises(ps.ParasolError, match="not an ordinary file"):
        check_output("/dev/null", None)


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(solution, tmp_path, monkeypatch):
    path = tmp_path / "u.npy"
    path.write_bytes(b"old")

    def full_disk(target, *_, **__):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_field(solution, path)
    assert caught.value.filename == str(path.resolve())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_follows_links(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    os.symlink(real, link)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"

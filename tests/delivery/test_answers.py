"""What an answer can be asked for besides its values: a field by name, values at points, a figure, a dataset."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.quantities import Quantities


@pytest.fixture(scope="module")
def surrogates(tmp_path_factory):
    """Of a system in time and of a steady problem, each as loaded from a file."""
    folder = tmp_path_factory.mktemp("answers")
    x, y = ps.coordinates("x y")
    (a,) = ps.parameters(a=(1.0, 2.0))
    u = ps.unknown("u", x, y)
    steady = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0), exact=(1 - x**2 - y**2) / a)
    model = ps.discretize(steady, ps.scatter(steady.domain, n_nodes=200))
    mus = ps.sample(model, 20, rng=0)
    snapshots = ps.solve_many(model, mus)
    found = {"steady": ps.fit(snapshots, "polynomial", basis=ps.pod(snapshots, n_modes=1), model=model)}
    rng = np.random.default_rng(0)
    where, times = rng.uniform(0, 1, (30, 2)), np.array([0.0, 0.5, 1.0])
    shape = np.stack([where[:, 0], where[:, 1]])  # two unknowns
    values = np.array([[(1 + t * m) * shape for t in times] for m in mus[:, 0]]).reshape(len(mus), -1)
    system = ps.fit_snapshots(mus, values, "polynomial", level=None)
    layout = ps.runtime.Layout(("p", "q"), where, 30, times=times)
    found["system"] = replace(system, layout=layout)
    return {name: ps.load(ps.save(s, folder / f"{name}.parasol")) for name, s in found.items()}


def test_fields_by_name(surrogates):
    one, many = surrogates["system"]([1.5]), surrogates["system"]([[1.5], [1.2]])
    assert one["q"].shape == (3, 30)
    assert many["q"].shape == (2, 3, 30)
    assert np.allclose(one["q"][2], 2.5 * surrogates["system"].layout.points[:, 1])
    assert surrogates["steady"]([1.5])["u"].shape == (200,)
    with pytest.raises(ps.errors.InputError, match="no unknown 'w'"):
        one["w"]


def test_values_at_points_are_those_of_the_restricted_surrogate(surrogates):
    points = np.array([[0.1, 0.2], [-0.3, 0.4]])
    steady = surrogates["steady"]
    assert np.allclose(steady([1.5]).at(points), (1 - np.sum(points**2, axis=1)) / 1.5, atol=1e-6)
    assert np.allclose(steady([[1.5], [1.1]]).at(points), steady.restricted(points=points)([[1.5], [1.1]]).values)
    with pytest.raises(ps.errors.InputError, match="outside the domain"):
        steady([1.5]).at([[3.0, 0.0]])
    with pytest.raises(ps.errors.InputError, match="restricted"):
        steady.restricted(points=points)([1.5]).at(points)


@pytest.mark.slow
def test_a_figure_and_a_dataset(surrogates):
    figure = surrogates["steady"]([1.5]).plot()
    assert len(figure.axes) >= 1
    dataset = surrogates["steady"]([[1.5], [1.1]]).to_xarray()
    assert dataset["u"].shape == (2, 200)
    with pytest.raises(ps.ParasolError, match="Take one"):
        surrogates["steady"]([[1.5], [1.1]]).plot()


def test_a_table_by_name(surrogates):
    pandas = pytest.importorskip("pandas")
    steady, system = surrogates["steady"], surrogates["system"]
    table = pandas.DataFrame({"note": ["x", "y"], "a": [1.5, 1.1]})
    assert steady(table).to_pandas()["a"].tolist() == [1.5, 1.1]
    rows = np.ones((1, 3, system.basis.n_modes)) * [[1.0], [2.0], [3.0]]
    known = Quantities(("force",), rows, np.array([[1.0, 2.0, 3.0]]))
    answer = replace(system, quantities=known, conformal=ConformalBound(0.95, 40, 0.01))(table[["a"]].to_numpy())
    found = answer.to_pandas(bounds=True)
    assert found.index.names == ["sample", "t"]
    assert found["force"].to_numpy().reshape(2, 3) == pytest.approx(answer.quantities["force"])
    assert found.loc[(1, 0.5), "p1"] == 1.1
    assert found.loc[(1, 0.5), "bound of force"] == pytest.approx(answer.quantity_bounds["force"][1, 1])
    assert found["bound_kind"].unique().tolist() == ["calibrated"]


def test_a_dataset_is_an_input_too():
    """As answers give them, with parameters as coordinates; columns of different dimensions are no table."""
    xarray = pytest.importorskip("xarray")
    mus = np.random.default_rng(0).uniform(0, 1, (30, 2))
    plane = ps.fit_snapshots(
        mus,
        mus @ [[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]],
        "linear",
        n_modes=2,
        level=None,
        ranges={"a": (0, 1), "b": (0, 1)},
    )
    answer = plane(mus[:5])
    assert np.array_equal(plane(answer.to_xarray()).values, answer.values)
    assert plane(xarray.Dataset({"b": ("i", [0.1, 0.2]), "a": 0.3})).mus.tolist() == [[0.3, 0.1], [0.3, 0.2]]
    with pytest.raises(ps.errors.InputError, match="dimensions i and j"):
        plane(xarray.Dataset({"a": ("i", [0.1, 0.2]), "b": ("j", [0.3, 0.4])}))
    with pytest.raises(ps.errors.InputError, match=r"b in \[0, 1\] is missing"):
        plane(xarray.Dataset({"a": ("i", [0.1, 0.2])}))

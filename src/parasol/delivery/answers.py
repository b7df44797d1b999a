"""Answers of a surrogate as files: one parameter as a full solve would be, many with samples on axis 0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache.disk import check_output, replacing
from parasol.delivery.datasets import to_xarray, write_netcdf
from parasol.delivery.files import FIELD_SUFFIXES, GRID_SUFFIXES, free_name, table_of, write_arrays, write_field
from parasol.delivery.hull import NodeHull, nearest_distances
from parasol.errors import InputError
from parasol.pde.evolution import Evolution
from parasol.pde.layout import FieldLayout
from parasol.pde.quantities import QuantityRows
from parasol.pde.steady import Solution
from parasol.runtime.above import borrowed
from parasol.runtime.answer import Answer
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.surrogate import Surrogate
from parasol.space.mesh import MeshDomain
from parasol.space.nodes import Nodes

ANSWER_SUFFIXES = (*FIELD_SUFFIXES, ".nc")
PICTURE_SUFFIXES = (".png", ".svg", ".pdf", ".gif", ".mp4")
MANY_SUFFIXES = (".csv", ".npy", ".npz", ".nc")


def write_answer(answer: Answer, path: str | Path, *, bounds: bool = False) -> Path:
    """Write an answer: `.csv`, `.npy`, `.npz`, `.nc` (NetCDF); where it is to one parameter also `.vtkhdf`, `.vtu` and pictures.

    The answer to one parameter makes the files that `write_field` makes of a full solve. To several: `.npy` holds the
    values (n_samples, n_values); `.npz` mus, points, times and each unknown by its name (n_samples, [n_times,] n_nodes);
    `.csv` the table of each sample beneath that of the one before, with its number and its parameters first. With `bounds`
    the relative error bounds and estimates go along in `.npz`, `.csv` (of several) and `.nc`, in the first and the last
    the bounds of the quantities and the kinds of the bounds too. These say as well which samples are `extrapolated`, where
    any is. The file appears complete or not at all.
    """
    path = check_output(path, (*ANSWER_SUFFIXES, *PICTURE_SUFFIXES) if answer.single else MANY_SUFFIXES)
    suffix = path.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        return borrowed("draw")(answer, path)
    if suffix in GRID_SUFFIXES:
        check_fields(answer.surrogate, path)
    if suffix == ".nc":
        return write_netcdf(to_xarray(answer, bounds=bounds), path)
    if answer.single and suffix != ".npz":
        return write_field(as_solution(answer), path)
    with replacing(path) as temporary:
        if suffix == ".npz":
            write_arrays(_arrays(answer, bounds), temporary)
        elif suffix == ".npy":
            _write_values(answer, temporary)
        else:
            _write_tables(answer, temporary, bounds)
    return path


def as_solution(answer: Answer) -> Solution | Evolution:
    """The answer to one parameter as if it had been solved for, for all that files and pictures ask of a solution."""
    if len(answer.mus) != 1:
        raise InputError(f"the answer is to {len(answer.mus)} parameters. Take one: surrogate(mus[0]).")
    return _as_solution(Answering(answer.surrogate), answer.mus[0], answer.values)


def check_fields(surrogate: Surrogate, path: str | Path) -> None:
    """Refuse a picture or a grid of values that fill no region: of bare data, or at chosen points."""
    name, layout = Path(path).name, surrogate.layout
    if layout.points is None:
        raise InputError(f"{name!r} needs nodes, and this surrogate of bare data knows none. Write .npy or .csv.")
    if surrogate.readout is not None and not layout.n_interior:
        raise InputError(f"{name!r} needs the whole field, not values at chosen points. Write .csv, .npy or .npz.")


def _as_solution(model: Answering, mu: np.ndarray, values: np.ndarray) -> Solution | Evolution:
    times = model.surrogate.layout.times
    values = np.asarray(values, dtype=float).reshape(-1)
    if times is None:
        return Solution(model, mu, values, 0.0, 0.0, "surrogate")  # type: ignore[arg-type]
    values = values.reshape(len(times), -1)
    if len(times) == 1:
        return Solution(model, mu, values[0], 0.0, 0.0, "surrogate", time=float(times[0]))  # type: ignore[arg-type]
    return Evolution(model, mu, times, values, 0, "surrogate", 0.0)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Names:
    """What a problem is called, and its unknowns and coordinates."""

    name: str
    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    time: str
    exact: None = None


@dataclass(frozen=True, eq=False)
class Answering:
    """As much of a model as files and pictures ask for, from what a surrogate knows of it."""

    surrogate: Surrogate

    @cached_property
    def problem(self) -> _Names:
        """Names only."""
        layout = self.surrogate.layout
        return _Names(self.surrogate.provenance.problem or "", layout.names, layout.axes, layout.time)

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes, in their domain where that is known, else in the region they fill."""
        layout, points = self.surrogate.layout, self.points
        domain = layout.domain
        if domain is None and layout.cells is not None and layout.outline is None:
            domain = MeshDomain(points, layout.cells)
        elif domain is None:
            domain = NodeHull(points, layout.n_interior, layout.outline)
        none = np.empty(0, dtype=int)  # normals and parts of the boundary, which nobody asks for
        spacing = nearest_distances(points)
        return Nodes(domain, points, layout.n_interior, none, none, none, spacing)

    @property
    def points(self) -> np.ndarray:
        """(n_nodes, dimension); bare data have no dimension."""
        surrogate, layout = self.surrogate, self.surrogate.layout
        n_nodes = surrogate.n_values // (layout.n_times * len(layout.names))
        return np.empty((n_nodes, 0)) if layout.points is None else layout.points

    @property
    def vectors(self) -> tuple[tuple[str, int], ...]:
        """Fields and the numbers of their components; () where each is one number."""
        return self.surrogate.layout.vectors

    @property
    def parameters(self) -> ParameterSpace:
        """Those of the surrogate."""
        return self.surrogate.parameters

    @property
    def scheme(self) -> Any:
        """For values between nodes."""
        return self.surrogate.layout.scheme

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.points)

    @property
    def layout(self) -> FieldLayout:
        """The unknown functions one after the other."""
        return FieldLayout(self.problem.names, self.n_nodes, 0)

    @property
    def quantities(self) -> QuantityRows:
        """None: `answer.quantities` has them."""
        return QuantityRows((), np.empty((0, self.layout.n_unknowns)))

    def exact(self, mu, t: float | None = None) -> None:
        """A surrogate does not know it."""


def _arrays(answer: Answer, bounds: bool) -> dict[str, np.ndarray]:
    layout = answer.surrogate.layout
    values = answer.values.reshape(*answer.values.shape[:-1], layout.n_times, len(layout.names), -1)
    arrays = {"mu" if answer.single else "mus": answer.mus[0] if answer.single else answer.mus}
    if layout.points is not None:
        arrays["points"] = layout.points
    if layout.times is not None:
        arrays["times"] = layout.times
    if bounds:
        arrays |= {"bound": np.asarray(answer.bound), "bound_kind": np.asarray(answer.bound_kind)}
        if answer.estimate is not None:
            arrays["estimate"] = np.asarray(answer.estimate)
    if np.any(answer.extrapolated):
        arrays["extrapolated"] = np.asarray(answer.extrapolated)
    for i, name in enumerate(layout.names):
        field = values[..., i, :] if layout.times is not None else values[..., 0, i, :]
        arrays[free_name(name, arrays)] = field
    for name, quantity in answer.quantities.items():
        plain = name.replace("/", " per ")  # a slash would make a folder of it in the file
        arrays[free_name(f"quantity: {plain}", arrays)] = np.asarray(quantity)
        known = [("bound", answer.quantity_bounds), ("estimate", answer.quantity_estimates)] if bounds else []
        for word, sizes in known:
            if sizes is not None:
                arrays[free_name(f"{word} of quantity: {plain}", arrays)] = np.asarray(sizes[name])
    return arrays


def _distinct(scalars: tuple[str, ...], first: list[str], *others: list[str]) -> list[str]:
    """Names of columns, each once: the parameters keep theirs, for they are read back by name, others get a mark.

    >>> _distinct(("a", "x"), ["sample"], ["bound"], ["x", "y", "u"])
    ['sample', 'a', 'x', 'bound', 'x_', 'y', 'u']
    """
    out: list[str] = []
    for name in [*first, *[name for some in others for name in some]]:
        out.append(free_name(name, scalars, out))
    return [*out[: len(first)], *scalars, *out[len(first) :]]


def _write_values(answer: Answer, path: Path) -> None:
    """All values as one array, a block at a time; a memory map would end the process where the disk is full."""
    shape, kind = (len(answer.mus), answer.surrogate.n_values), answer.coefficients.dtype
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in answer.blocks():
            file.write(np.ascontiguousarray(block, dtype=kind).data)


def _write_tables(answer: Answer, path: Path, bounds: bool) -> None:
    extra = {"bound": answer.bounds.relative} if bounds else {}
    if bounds and answer.estimates is not None:
        extra["estimate"] = answer.estimates.relative
    if np.any(answer.extrapolated):
        extra["extrapolated"] = np.asarray(answer.extrapolated)
    scalars = answer.surrogate.parameters.names  # a function has too many values for a table
    model = Answering(answer.surrogate)
    fields = (values for block in answer.blocks(64) for values in block)
    with path.open("w", encoding="utf-8") as file:
        for i, (mu, values) in enumerate(zip(answer.mus, fields, strict=True)):
            names, table = table_of(_as_solution(model, mu, values))
            if i == 0:
                file.write(",".join(_distinct(scalars, ["sample"], list(extra), names)) + "\n")
            leading = [i, *mu[: len(scalars)], *[column[i] for column in extra.values()]]
            rows = np.column_stack([np.tile(leading, (len(table), 1)), table])
            np.savetxt(file, rows, delimiter=",", fmt=["%d", *["%.17g"] * (rows.shape[1] - 1)])

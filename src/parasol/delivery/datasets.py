"""Answers with names on their axes: xarray datasets, and NetCDF files that other programs read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.cache.disk import check_output, replacing
from parasol.delivery.files import free_name
from parasol.delivery.traced import required
from parasol.errors import NotInstalled
from parasol.runtime.answer import Answer
from parasol.runtime.descriptions import bound_words


def to_xarray(answer: Answer, *, bounds: bool = False) -> Any:
    """The answer as an xarray Dataset: each unknown and each quantity by its name, dimensions sample, time and node.

    Nodes have the coordinates of the problem by their names, samples the parameters. A time that the problem calls
    something else than t gives its name to the dimension. An answer to one parameter has no dimension sample, a
    steady one no time. With `bounds` the variable `bound` holds the bounds of the relative errors, `bound_kind` what is
    known of them, and `estimate` the estimates of these errors where there are any. Where a sample lies outside the box,
    the variable `extrapolated` says which.
    """
    xarray = require_xarray()
    layout, space = answer.surrogate.layout, answer.surrogate.parameters
    samples = () if answer.single else ("sample",)
    when = "time" if layout.time == "t" else _free(layout.time)
    times = () if layout.times is None else (when,)
    mus = answer.mus[0] if answer.single else answer.mus
    coordinates: dict[str, Any] = {}
    if layout.times is not None:
        coordinates[when] = layout.times
    if layout.points is not None:
        for axis, column in zip(layout.axes, layout.points.T, strict=True):
            coordinates[_free(axis, coordinates)] = ("node", column)
    shape = np.shape(answer.values)[:-1]
    values = np.reshape(answer.values, (*shape, layout.n_times, len(layout.names), -1))
    variables: dict[str, Any] = {}
    for i, name in enumerate(layout.names):
        field = values[..., i, :] if times else values[..., 0, i, :]
        variables[_free(name, coordinates, variables)] = ((*samples, *times, "node"), field)
    for name, quantity in answer.quantities.items():
        # a slash would make a group of it in the file
        text = name.replace("/", " per ")
        variables[_free(text, coordinates, variables)] = ((*samples, *times), quantity)
        known = [("bound", answer.quantity_bounds), ("estimate", answer.quantity_estimates)] if bounds else []
        for word, sizes in known:
            if sizes is not None:
                variables[_free(f"{word} of {text}", coordinates, variables)] = ((*samples, *times), sizes[name])
    if bounds:
        words = {"long_name": "bound of the relative error of the whole field"}
        variables[_free("bound", coordinates, variables)] = (samples, answer.bound, words)
        words = {"long_name": "what is known of the bound", "meaning": _meaning(answer)}
        variables[_free("bound_kind", coordinates, variables)] = (samples, answer.bound_kind, words)
    if bounds and answer.estimate is not None:
        words = {"long_name": "estimate of the relative error of the whole field"}
        variables[_free("estimate", coordinates, variables)] = (samples, answer.estimate, words)
    if np.any(answer.extrapolated):
        words = {"long_name": "whether the parameters lie where nothing is promised"}
        variables[_free("extrapolated", coordinates, variables)] = (samples, answer.extrapolated, words)
    for j, p in enumerate(space.scalars):
        words = {"low": p.low, "high": p.high, "scale": p.scale}
        coordinates[_free(p.name, coordinates, variables)] = (samples, mus[..., j], words)
    if space.functions:
        coordinates[_free("functions", coordinates, variables)] = (
            (*samples, "function value"),
            mus[..., len(space.scalars) :],
        )
    return xarray.Dataset(variables, coordinates, {"parasol": __version__, **answer.surrogate.provenance.words})


def to_pandas(answer: Answer, *, bounds: bool = False) -> Any:
    """Parameters and quantities by name as a pandas DataFrame, a row for each sample, or in time for each sample and time.

    With `bounds` the columns "bound of <quantity>" say how far each can be off, `bound` bounds the relative error of the whole
    field, and `bound_kind` says what is known of that.
    """
    pandas, space, layout = required("pandas"), answer.surrogate.parameters, answer.surrogate.layout
    n, times = len(answer.mus), layout.times
    columns: dict[str, Any] = {p.name: answer.mus[:, j] for j, p in enumerate(space.scalars)}
    if bounds:
        columns[_free("bound", columns)] = np.reshape(answer.bound, n)
        columns[_free("bound_kind", columns)] = np.reshape(answer.bound_kind, n)
    if times is not None and answer.quantities:
        columns = {name: np.repeat(column, len(times)) for name, column in columns.items()}
    for name, quantity in answer.quantities.items():
        columns[_free(name, columns)] = np.ravel(quantity)
        if bounds:
            columns[_free(f"bound of {name}", columns)] = np.ravel(answer.quantity_bounds[name])
    index = pandas.RangeIndex(n, name="sample")
    if times is not None and answer.quantities:
        index = pandas.MultiIndex.from_product([range(n), times], names=["sample", layout.time])
    return pandas.DataFrame(columns, index=index)


def write_netcdf(dataset: Any, path: str | Path) -> Path:
    """Write a dataset as NetCDF-4; the file appears complete or not at all."""
    path = check_output(path, (".nc",))
    try:
        import h5netcdf  # noqa: F401
    except ImportError:
        raise NotInstalled("NetCDF needs h5netcdf. Install it with: pip install 'parasol-pde[xarray]'.") from None
    # in memory first: HDF5 does not survive a disk that is full
    buffer = io.BytesIO()
    dataset.to_netcdf(buffer, engine="h5netcdf")
    with replacing(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    return path


def require_xarray() -> Any:
    """The package xarray, or advice how to install it."""
    try:
        import xarray
    except ImportError:
        raise NotInstalled("datasets need xarray. Install it with: pip install 'parasol-pde[xarray]'.") from None
    return xarray


def _meaning(answer: Answer) -> str:
    return bound_words(answer.surrogate, np.unique(answer.bound_kind).tolist())


def _free(name: str, *taken: dict[str, Any]) -> str:
    """The name, with a stroke where somebody has it, or a dimension."""
    return free_name(name, ("sample", "node", "time"), *taken)

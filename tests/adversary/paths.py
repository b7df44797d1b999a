"""Attacks on the ways to an answer (section E of issue 14): every one gives the same numbers and names, saved or not."""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sympy import sin

import parasol as ps
from adversary.families import Draw, family
from adversary.problems import require
from hidden_layer import HiddenLayer
from parasol.runtime.layout import Layout
from parasol.runtime.quantities import quantities_of

_ODD = [
    "tau",
    "sample",
    "bound",
    "k",
    "mus",
    "nodes",
    "values",
    "times",
    "points",
    "mu",
    "extrapolated",
    "b_",
    "a",
    "Ω",
]
_RESERVED = ("mus", "dtype", "extrapolate", "tolerance")  # arguments of a surrogate: given by a mapping instead


# ---- surrogates ------------------------------------------------------------------------------------------------------
def _names(draw: Draw, n: int) -> list[str]:
    return [str(name) for name in draw.rng.permutation(_ODD)[:n]]


def _steady(draw: Draw, recipe) -> ps.Surrogate:
    """A plate whose coordinates are called y and x, or worse, with a certificate."""
    rng = draw.rng
    one, two = draw.turn([("y", "x"), ("r", "s"), ("x", "t"), ("node", "sample"), ("bound", "x")])
    p, q = ps.coordinates(f"{one} {two}")
    names = [name for name in _names(draw, 4) if name not in (one, two)][:2]
    a, b = ps.parameters(**{names[0]: (1.0, 2.0), names[1]: (0.1, 10.0, "log")})
    u = ps.unknown(draw.turn(["u", "x_", "value"]), p, q)
    domain = draw.turn(
        [
            lambda: ps.Disc(),
            lambda: ps.Box((0.0, 0.0), (2.0, 1.0)) - ps.Disc((0.6, 0.5), 0.2),
            lambda: ps.Star("1 + 0.2*cos(3*theta)"),
            lambda: ps.Box((-1.0, -1.0), (1.0, 1.0)) - ps.Box((0.0, -0.01), (1.5, 0.01)),
        ]
    )()
    problem = ps.Problem(
        domain,
        ps.Eq(-a * ps.laplacian(u, p, q) + b / 4 * u, 1 + p * sin(q)),
        ps.Dirichlet(p - 2 * q),
        quantities={"mean": ps.Average(), "flux / length": ps.Flux()},
    )
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=150, rng=int(rng.integers(9))), degree=2)
    reduced = ps.greedy(model, n_modes=4, n_anchors=8).reduced
    surrogate = ps.fit(reduced, recipe, n_labels=80)
    require(surrogate.layout.axes == (one, two), f"the coordinates {one}, {two} are called {surrogate.layout.axes}")
    return surrogate


def _in_time(draw: Draw, recipe) -> ps.Surrogate:
    """Two unknowns in time, which is not called t, calibrated."""
    rng = draw.rng
    when, (x,) = ps.time(draw.turn(["tau", "x", "time", "sample"])), ps.coordinates(draw.turn(["r", "t", "s", "tau_"]))
    names = [name for name in _names(draw, 4) if name not in (str(when), str(x))][:2]
    a, b = ps.parameters(**{names[0]: (0.5, 1.0), names[1]: (-1.0, 1.0)})
    u, v = ps.unknowns(
        draw.turn(["b a", "u bound", "mus_ times_"]).replace(names[0], "w").replace(names[1], "z"), x, when
    )
    problem = ps.Problem(
        ps.Box((0.0,), (1.0,)),
        [ps.Eq(u.diff(when), a * u.diff(x, 2) + b * v), ps.Eq(v.diff(when), v.diff(x, 2))],
        {side: [ps.Dirichlet(0), ps.Dirichlet(1)] for side in ("left", "right")},
        initial={str(u.func): sin(np.pi * x), str(v.func): 1 + x * (1 - x)},
        times=[0.0, 0.03, 0.1][: draw.turn([3, 2])],
        quantities={"mean": ps.Average(of=str(u.func))},
    )
    model = ps.discretize(problem, ps.lattice(problem.domain, 25))
    mus = np.column_stack([rng.uniform(0.5, 1.0, 45), rng.uniform(-1, 1, 45)])
    snapshots = ps.solve_many(model, mus)
    train, kept = (
        ps.reduction.as_snapshots(mus[:25], snapshots.solutions[:25]),
        ps.reduction.as_snapshots(mus[25:], snapshots.solutions[25:]),
    )
    surrogate = ps.fit(train, recipe, basis=ps.pod(train, n_modes=4), model=model, calibration=kept)
    called = (*surrogate.layout.axes, surrogate.layout.time)
    require(called == (str(x), str(when)), f"{x} and {when} are called {called}")
    return surrogate


def _of_data(draw: Draw, recipe) -> ps.Surrogate:
    """Other people's data, with any names, given as an array or as a frame whose columns stand in another order."""
    rng = draw.rng
    p = int(rng.integers(1, 4))
    names = _names(draw, p)
    low, high = rng.uniform(-1, 0, p), rng.uniform(1, 2, p)
    mus = rng.uniform(low, high, (70, p))
    t = np.linspace(0, 1, 12)
    data = 2 + np.sin(mus @ rng.uniform(0.5, 1.5, (p, 1)) + t) + np.cos(mus[:, :1]) * t
    ranges = {name: (low[j], high[j]) for j, name in enumerate(names)}
    quantities = {"mean": np.full(12, 1 / 12), "a/b": np.eye(12)[3]}
    given: object = mus
    if find_spec("pandas") and draw.seed % 2:
        import pandas

        given = pandas.DataFrame(mus, columns=names)[list(rng.permutation(names))]
    surrogate = ps.fit_snapshots(given, data, recipe, ranges=ranges, quantities=quantities, rng=draw.seed % 5)
    if draw.seed % 3 == 2:  # with nodes after all, in three dimensions
        layout = Layout(("p", "q"), rng.random((6, 3)), coordinates=("sample", "y", "bound"))
        surrogate = replace(surrogate, layout=layout)
        rows = rng.normal(size=(1, 12))
        wanted = quantities_of(("w",), rows, surrogate.basis.modes, None)
        surrogate = replace(surrogate, quantities=wanted, parts=None)  # those were of other quantities
    return surrogate


def _recipe(draw: Draw):
    kind = draw.turn(
        ["polynomial", "gaussian process", "linear", HiddenLayer(), "network", "polynomial", "gaussian process"]
    )
    if kind != "network" or not find_spec("jax"):
        return "polynomial" if kind == "network" else kind
    dtype = str(draw.rng.choice(["float64", "float32"]))
    return replace(ps.fitting.NetworkRecipe.best(widths=(8, 12), iterations=20), dtype=dtype)


# ---- what an answer is, whoever gives it -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Known:
    """What Python says of some parameters, and how far another way may be from it."""

    surrogate: ps.Surrogate
    mus: np.ndarray
    extrapolate: bool = False

    @cached_property
    def answer(self):
        """The answer of the surrogate in memory."""
        return self.surrogate(self.mus, extrapolate=self.extrapolate)

    @cached_property
    def rounding(self) -> float:
        """What the last digits of the parameters do to the values: maps may magnify rounding."""
        moved = self.surrogate(self.mus * (1 + 4 * np.finfo(float).eps), extrapolate=True).values
        return 10 * float(np.max(np.abs(moved - self.answer.values)) / np.max(np.abs(self.answer.values)))

    def same(self, way: str, found, wanted, *, limit: float = 1e-12) -> None:
        """Two arrays agree, up to rounding of the largest value; infinite where the other is."""
        limit = max(limit, self.rounding)
        found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
        require(found.shape == wanted.shape, f"{way}: shape {found.shape} instead of {wanted.shape}")
        finite = np.isfinite(wanted)
        require(np.array_equal(np.isfinite(found), finite), f"{way}: infinite elsewhere")
        if finite.any():
            off = np.max(np.abs(found[finite] - wanted[finite]), initial=0.0) / (np.max(np.abs(wanted[finite])) or 1.0)
            require(off <= limit, f"{way}: off by {off:.1e}")

    def same_bounds(self, way: str, found, wanted, scale=1.0) -> None:
        """Two bounds agree as far as rounding of the answers lets them, in units of the `scale`."""
        found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
        require(found.shape == wanted.shape, f"{way}: shape {found.shape} instead of {wanted.shape}")
        limit = 1e-6 * np.abs(wanted) + max(1e-12, self.rounding) * scale
        same = (found == wanted) | (np.abs(found - np.where(np.isfinite(wanted), wanted, 0)) <= limit) & np.isfinite(
            limit
        )
        require(bool(np.all(same)), f"{way}: {found} instead of {wanted}")

    def answers(self, way: str, found, *, limit: float = 1e-12) -> None:
        """Another answer has the same values, bounds, words, flags and quantities."""
        a = self.answer
        self.same(f"{way}, values", np.reshape(found.values, a.values.shape), a.values, limit=limit)
        self.same(f"{way}, flags", np.atleast_1d(found.extrapolated), np.atleast_1d(a.extrapolated))
        require(list(found.quantities) == list(a.quantities), f"{way}: quantities {list(found.quantities)}")
        for name, wanted in a.quantities.items():
            self.same(
                f"{way}, {name}", np.reshape(found.quantities[name], np.shape(wanted)), wanted, limit=max(limit, 1e-11)
            )
        if not self.surrogate.has_bounds:
            return
        kind = [found.bound_kind] if isinstance(found.bound_kind, str) else found.bound_kind
        require(kind == a.bound_kind, f"{way}: bounds are {kind}")
        if limit <= 1e-12:
            self.same_bounds(f"{way}, bounds", found.bounds.relative, a.bounds.relative)
            for name, wanted in a.quantity_bounds.items():
                other = np.reshape(found.quantity_bounds[name], np.shape(wanted))
                self.same_bounds(
                    f"{way}, bound of {name}", other, wanted, scale=1e3 * np.max(np.abs(a.quantities[name]))
                )


def _by_python(draw: Draw, known: Known, surrogate: ps.Surrogate, saved: str) -> None:
    """Every form in which Python takes parameters."""
    rng, mus, names = draw.rng, known.mus, list(surrogate.parameters.names)
    options = {"extrapolate": True} if known.extrapolate else {}
    mixed = [str(n) for n in rng.permutation(names)]
    columns = {name: mus[:, names.index(name)] for name in mixed}
    known.answers(f"{saved}an array", surrogate(mus, **options))
    known.answers(f"{saved}lists", surrogate(mus.tolist(), **options))
    known.answers(f"{saved}a mapping", surrogate(columns, **options))
    if not set(names) & set(_RESERVED):
        known.answers(f"{saved}keywords", surrogate(**columns, **options))
    table = np.zeros(len(mus), dtype=[(name, float) for name in [*mixed, "more"]])
    for name in mixed:
        table[name] = columns[name]
    known.answers(f"{saved}a structured array", surrogate(table, **options))
    if find_spec("pandas"):
        import pandas

        frame = pandas.DataFrame({"other": 1.0, **columns}, index=rng.permutation(len(mus)))
        known.answers(f"{saved}a frame", surrogate(frame, **options))
        one = surrogate(frame.iloc[0].drop("other"), **options)
        known.same(f"{saved}a series", one.values, known.answer.values[0])
    i = int(rng.integers(len(mus)))
    single = surrogate({name: float(columns[name][i]) for name in mixed}, **options)
    known.same(f"{saved}one parameter", single.values, known.answer.values[i])
    if surrogate.has_bounds:
        known.same_bounds(f"{saved}the bound of one", single.bound, known.answer.bounds.relative[i])
    rough = surrogate(mus, dtype=np.float32, **options)
    known.answers(f"{saved}float32", rough, limit=1e-4)
    known.same(f"{saved}coefficients", surrogate.coefficients(mus, **options), known.answer.coefficients)


# ---- the command line ------------------------------------------------------------------------------------------------
def _command(*words) -> tuple[int, str, str]:
    from typer.testing import CliRunner

    from parasol.cli import app

    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def _table(path: Path) -> dict[str, np.ndarray]:
    """The columns of a file by name; no name twice."""
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    require(len(set(names)) == len(names), f"{path.name} has the columns {names}")
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return dict(zip(names, rows.T, strict=True))


def _write_csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.17g", encoding="utf-8")
    return path


def _by_command(draw: Draw, known: Known, file: Path, folder: Path) -> None:
    """`parasol predict`: parameters by name and from files, answers in every form."""
    surrogate, mus, a = known.surrogate, known.mus, known.answer
    layout, names = surrogate.layout, list(surrogate.parameters.names)
    mixed = [str(n) for n in draw.rng.permutation(names)]
    options = ["--extrapolate"] if known.extrapolate else []
    bounds = ["--bounds"] if surrogate.has_bounds else []
    given = _write_csv(folder / "mus.csv", {"other": mus[:, 0] + 1, **{n: mus[:, names.index(n)] for n in mixed}})
    np.save(folder / "mus.npy", mus)
    outs = [folder / f"out{suffix}" for suffix in (".npy", ".npz", ".csv")]
    if find_spec("xarray") and find_spec("h5netcdf"):
        outs.append(folder / "out.nc")
    words = [w for out in outs for w in ("--out", out)]
    for mus_file in (given, folder / "mus.npy"):
        code, text, err = _command("predict", file, "--mus", mus_file, *words, *bounds, *options, "--json", "-")
        require(code == 0, f"predict ends with {code}: {err[-300:]}")
        facts = json.loads(text)
        way = f"predict --mus {mus_file.suffix}"
        known.same(f"{way}, .npy", np.load(folder / "out.npy"), a.values)
        _npz(known, way, folder / "out.npz", bool(bounds))
        _csv(known, way, folder / "out.csv", bool(bounds))
        if (folder / "out.nc").is_file():
            _nc(known, way, folder / "out.nc", bool(bounds))
        flagged = int(np.count_nonzero(a.extrapolated))
        require(facts["extrapolated"] == flagged, f"{way}: {facts['extrapolated']} extrapolated of {flagged}")
        for j, name in enumerate(names):
            known.same(f"{way}, range of {name}", facts["parameters"][name]["maximum"], mus[:, j].max())
    if len(mus) and not known.extrapolate:  # its own file, read again: each parameter stands there under its name
        code, _, err = _command(
            "predict", file, "--mus", folder / "out.csv", "--out", folder / "again.npy", *options, "-q"
        )
        require(code == 0, f"predict cannot read what it wrote: {err[-200:]}")
        n_rows = a.values.shape[1] // len(layout.names)
        known.same("predict, its own file", np.load(folder / "again.npy")[::n_rows], a.values)
    i = int(draw.rng.integers(len(mus)))
    pairs = [f"{n}={mus[i, names.index(n)]!r}".replace("np.float64(", "").rstrip(")") for n in mixed]
    code, _, err = _command("predict", file, *pairs, "--out", folder / "one.npz", *bounds, *options, "-q")
    require(code == 0, f"predict {' '.join(pairs)}: {err[-200:]}")
    one = np.load(folder / "one.npz")
    values = a.values[i].reshape(layout.n_times, len(layout.names), -1)
    for k, name in enumerate(layout.names):
        key = name if f"{name}_" not in one.files or name not in ("mu", "points", "times", "bound") else f"{name}_"
        known.same(f"predict {name} of one", one[key].ravel(), values[:, k].ravel())
    known.same("predict, mu of one", one["mu"], mus[i])


def _npz(known: Known, way: str, path: Path, bounds: bool) -> None:
    a, layout = known.answer, known.surrogate.layout
    held = np.load(path)
    values = a.values.reshape(len(a.mus), layout.n_times, len(layout.names), -1)
    known.same(f"{way}, mus in .npz", held["mus"], a.mus)
    for k, name in enumerate(layout.names):
        key = f"{name}_" if name in ("mus", "points", "times", "bound", "extrapolated") and f"{name}_" in held else name
        known.same(f"{way}, {name} in .npz", held[key].ravel(), values[:, :, k].ravel())
    for name, wanted in a.quantities.items():
        known.same(f"{way}, {name} in .npz", held[f"quantity: {name.replace('/', ' per ')}"], wanted, limit=1e-11)
    if bounds:
        known.same_bounds(f"{way}, bounds in .npz", held["bound"], a.bounds.relative)
    flags = held["extrapolated"] if "extrapolated" in held.files and np.any(a.extrapolated) else np.zeros(len(a.mus))
    known.same(f"{way}, flags in .npz", flags, a.extrapolated)


def _csv(known: Known, way: str, path: Path, bounds: bool) -> None:
    a, surrogate = known.answer, known.surrogate
    layout, held = surrogate.layout, _table(path)
    names = list(held)
    n_each = len(next(iter(held.values()))) // len(a.mus)
    for j, name in enumerate(surrogate.parameters.names):
        known.same(f"{way}, {name} in .csv", held[name][::n_each], a.mus[:, j])
    axes = [*([layout.time] if layout.times is not None else []), *layout.axes]
    tail = names[len(names) - len(layout.names) - len(axes) :]
    for wanted, found in zip([*axes, *layout.names], tail, strict=True):
        require(found.rstrip("_") == wanted.rstrip("_"), f"{way}: the column of {wanted} is called {found}")
    values = a.values.reshape(len(a.mus), layout.n_times, len(layout.names), -1)
    for k, column in enumerate(tail[len(axes) :]):
        known.same(f"{way}, {column} in .csv", held[column], values[:, :, k].ravel())
    if layout.points is not None:
        start = len(axes) - len(layout.axes)
        for k, column in enumerate(tail[start : len(axes)]):
            wanted = np.tile(layout.points[:, k], len(a.mus) * layout.n_times)
            known.same(f"{way}, {column} in .csv", held[column], wanted)
    if bounds:
        column = names[1 + len(surrogate.parameters.names)]
        require(column.rstrip("_") == "bound", f"{way}: the bound is called {column}")
        known.same_bounds(f"{way}, bounds in .csv", held[column][::n_each], a.bounds.relative)


def _nc(known: Known, way: str, path: Path, bounds: bool) -> None:
    import xarray

    a, surrogate = known.answer, known.surrogate
    layout = surrogate.layout
    values = a.values.reshape(len(a.mus), layout.n_times, len(layout.names), -1)
    with xarray.open_dataset(path, engine="h5netcdf") as held:

        def column(name: str, wanted) -> None:
            """The variable of that name, with a mark or without, that has these numbers."""
            close = [str(n) for n in held.variables if str(n).rstrip("_") == name.rstrip("_")]
            require(bool(close), f"{way}: .nc has no {name}, only {list(held.variables)}")
            for one in close:
                found = np.asarray(held[one].values, dtype=float)
                wanted = np.asarray(wanted, dtype=float)
                if found.size == wanted.size and np.allclose(found.ravel(), wanted.ravel(), rtol=1e-9, equal_nan=True):
                    return
            require(False, f"{way}: {name} in .nc ({close}) holds other numbers")

        for j, name in enumerate(surrogate.parameters.names):
            column(name, a.mus[:, j])
        for k, name in enumerate(layout.names):
            column(name, values[:, :, k])
        for k, name in enumerate(layout.axes):
            column(name, layout.points[:, k])  # type: ignore[index]
        for name, wanted in a.quantities.items():
            column(name.replace("/", " per "), wanted)
        if bounds:
            column("bound", a.bounds.relative)
        if np.any(a.extrapolated):
            column("extrapolated", a.extrapolated)


# ---- the server, ONNX ------------------------------------------------------------------------------------------------
def _ask(app, path: str, **options):
    import httpx

    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return await client.request("POST", path, **options)

    return asyncio.run(ask())


def _by_server(draw: Draw, known: Known, surrogate: ps.Surrogate, app) -> None:
    a, mus, names = known.answer, known.mus, list(surrogate.parameters.names)
    asked = {"bounds": True} if surrogate.has_bounds else {}
    asked |= {"quantities": True} if surrogate.quantities is not None else {}
    asked |= {"extrapolate": True} if known.extrapolate else {}
    mixed = [str(n) for n in draw.rng.permutation(names)]
    rows = [{n: float(mu[names.index(n)]) for n in mixed} for mu in mus]
    for way, given in {"arrays": mus.tolist(), "names": rows}.items():
        response = _ask(app, "/v1/predict", json={"mus": given, **asked})
        require(response.status_code == 200, f"the server: {response.text[:200]}")
        found = response.json()
        known.same(f"server, {way}", found["values"], a.values)
        known.same(f"server, {way}, flags", found["extrapolated"], a.extrapolated)
        require(found["unknowns"] == list(surrogate.layout.names), f"server: unknowns {found['unknowns']}")
        for name, wanted in a.quantities.items():
            known.same(f"server, {name}", found["quantities"][name], wanted, limit=1e-11)
        if surrogate.has_bounds:
            told = [np.inf if v is None else float(v) for v in found["bounds"]["relative"]]
            known.same_bounds("server, bounds", told, a.bounds.relative)
            require(found["bounds"]["rigorous"] == a.bounds.rigorous.tolist(), "server: other bounds are rigorous")
    buffer = io.BytesIO()
    np.save(buffer, mus)
    headers = {"content-type": "application/x-npy", "accept": "application/x-npy"}
    query = "?extrapolate=true" if known.extrapolate else ""
    response = _ask(app, f"/v1/predict{query}", content=buffer.getvalue(), headers=headers)
    require(response.status_code == 200, f"the server: {response.text[:200]}")
    known.same("server, NumPy", np.load(io.BytesIO(response.content)), a.values)
    if not known.extrapolate:
        response = _ask(app, "/Evaluate", json={"name": "field", "input": [mus[0].tolist()]})
        require(response.status_code == 200, f"UM-Bridge: {response.text[:200]}")
        known.same("UM-Bridge", response.json()["output"][0], a.values[0])


def _by_onnx(known: Known, surrogate: ps.Surrogate, folder: Path) -> None:
    if not (find_spec("onnx") and find_spec("onnxruntime")):
        return
    import onnxruntime

    for dtype, limit in (("float64", 1e-9), ("float32", 2e-5)):
        made = ps.export(surrogate, folder / f"{dtype}.onnx", dtype=dtype)
        session = onnxruntime.InferenceSession(str(made.path), providers=["CPUExecutionProvider"])
        mus = known.mus.astype(dtype)
        wanted = known.surrogate(mus.astype(float), extrapolate=True).values
        known.same(f"ONNX {dtype}", session.run(["u"], {"mu": mus})[0], wanted, limit=limit)
        told = json.loads(session.get_modelmeta().custom_metadata_map["parameters"])
        require([p["name"] for p in told] == list(surrogate.parameters.names), f"ONNX: names {told}")


# ---- families --------------------------------------------------------------------------------------------------------
_KINDS = {"steady": _steady, "in time": _in_time, "data": _of_data}


def _made(draw: Draw) -> tuple[str, ps.Surrogate]:
    kind = draw.turn(["data", "steady", "data", "in time"])
    recipe = _recipe(draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = _KINDS[kind](draw, recipe)
    return (
        f"{kind}, {recipe if isinstance(recipe, str) else type(recipe).__name__}, {', '.join(surrogate.parameters.names)}",
        surrogate,
    )


def _inside(draw: Draw, surrogate: ps.Surrogate, n: int) -> np.ndarray:
    space = surrogate.parameters.answered
    return space.from_unit(np.vstack([draw.rng.uniform(size=(n, len(space.scalars))), np.zeros(len(space.scalars))]))


@family("14E paths", n_cases=12)
def paths_to_the_same_numbers(draw: Draw) -> str:
    """Python in all forms, files, the command line, the server, ONNX: the same numbers and names, saved or not."""
    said, surrogate = _made(draw)
    known = Known(surrogate, _inside(draw, surrogate, 4))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = ps.save(surrogate, folder / "model.parasol")
        again = ps.load(file)
        _by_python(draw, known, surrogate, "")
        _by_python(draw, known, again, "loaded, ")
        twice = ps.load(ps.save(again, folder / "twice.parasol"))
        known.answers("loaded twice", twice(known.mus))
        _by_command(draw, known, file, folder)
        app = ps.delivery.make_app(again)
        _by_server(draw, known, again, app)
        _by_onnx(known, draw.turn([surrogate, again]), folder)
    return f"{said}: the same on all paths"


@family("14E paths", n_cases=12)
def paths_out_of_the_box(draw: Draw) -> str:
    """Outside the box: refused on every path alike, or the same numbers, flags and words."""
    said, surrogate = _made(draw)
    mus = _inside(draw, surrogate, 3)
    j = int(draw.rng.integers(mus.shape[1]))
    low, high = surrogate.parameters.answered.limits
    mus[1, j] = high[j] + 0.01 * (high[j] - low[j])
    known = Known(surrogate, mus, extrapolate=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = ps.save(surrogate, folder / "model.parasol")
        again = ps.load(file)
        np.save(folder / "mus.npy", mus)
        _refusals(
            {
                "Python": lambda: surrogate(mus),
                "loaded": lambda: again(mus),
                "one": lambda: again(mus[1]),
                "predict": lambda: _command("predict", file, "--mus", folder / "mus.npy", "-q"),
                "server": lambda: _ask(ps.delivery.make_app(again), "/v1/predict", json={"mus": mus.tolist()}),
            },
            "a parameter outside its range",
        )
        require(list(np.flatnonzero(known.answer.extrapolated)) == [1], f"extrapolated {known.answer.extrapolated}")
        if surrogate.has_bounds:
            require(known.answer.bound_kind[1] != "proven", "proven outside the box")
        _by_python(draw, known, surrogate, "")
        _by_python(draw, known, again, "loaded, ")
        _by_command(draw, known, file, folder)
        _by_server(draw, known, again, ps.delivery.make_app(again, extrapolate=True))
    return f"{said}: refused alike, or the same"


def _refusals(ways: dict[str, Callable], what: str) -> None:
    """Every way refuses, in one line."""
    for way, ask in ways.items():
        try:
            answer = ask()
        except ps.ParasolError as refusal:
            require("\n" not in str(refusal), f"{way}, {what}: several lines")
            continue
        if isinstance(answer, tuple):
            code, _, text = answer
            require(code == 2 and len(text.strip().splitlines()) == 1, f"{way}, {what}: ends with {code}: {text[:200]}")
            continue
        status = getattr(answer, "status_code", None)
        require(status in (400, 422), f"{way}, {what}: answered {'' if status is None else status}")


@family("14E paths", n_cases=12)
def paths_refuse_wrong_names(draw: Draw) -> str:
    """A name that is wrong, left out or given twice is refused on every path alike."""
    said, surrogate = _made(draw)
    names = list(surrogate.parameters.names)
    mu = _inside(draw, surrogate, 1)[0]
    good = dict(zip(names, map(float, mu), strict=True))
    left_out = dict(list(good.items())[1:])
    misspelt = {f"{n}x" if i == 0 else n: v for i, (n, v) in enumerate(good.items())}
    more = good | {"nobody": 1.0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = ps.save(surrogate, folder / "model.parasol")
        again = ps.load(file)
        app = ps.delivery.make_app(again)
        for what, given in {"a name left out": left_out, "a wrong name": misspelt, "a name too many": more}.items():
            if not given:
                continue
            ways: dict[str, Callable] = {
                "a mapping": lambda g=given: surrogate(g),
                "a mapping, loaded": lambda g=given: again(g),
                "columns": lambda g=given: again({n: [v, v] for n, v in g.items()}),
                "the server": lambda g=given: _ask(app, "/v1/predict", json={"mus": g}),
                "predict": lambda g=given: _command("predict", file, *[f"{n}={v!r}" for n, v in g.items()], "-q"),
            }
            if not set(given) & set(_RESERVED):
                ways["keywords"] = lambda g=given: surrogate(**g)
            if what != "a name too many":  # tables may have more columns, beside those asked for
                table = _write_csv(folder / "wrong.csv", {n: np.array([v, v]) for n, v in given.items()})
                ways["predict --mus"] = lambda t=table: _command("predict", file, "--mus", t, "-q")
                array = np.zeros(2, dtype=[(n, float) for n in given])
                ways["a structured array"] = lambda t=array: again(t)
                if find_spec("pandas"):
                    import pandas

                    frame = pandas.DataFrame([given, given])
                    ways["a frame"] = lambda f=frame: again(f)
                    ways["a series"] = lambda f=frame: again(f.iloc[0])
                    mixed = frame.rename(columns={list(given)[-1]: 7})
                    ways["a frame of names and numbers"] = lambda f=mixed: (
                        again(f) if f.shape[1] > 1 else surrogate({"?": 1})
                    )
            _refusals(ways, what)
        pairs = [f"{n}={v!r}" for n, v in good.items()]
        double = "{" + ", ".join(f'"{n}": {v!r}' for n, v in [*good.items(), *good.items()]) + "}"
        head = {"content-type": "application/json"}
        twice: dict[str, Callable] = {
            "predict": lambda: _command("predict", file, *pairs, pairs[0], "-q"),
            "the server": lambda: _ask(app, "/v1/predict", content=f'{{"mus": {double}}}', headers=head),
            "both forms": lambda: surrogate(mu, **good) if not set(good) & set(_RESERVED) else surrogate(None),
        }
        (folder / "twice.csv").write_text(
            ",".join([*names, names[0]]) + "\n" + ",".join(map(repr, map(float, [*mu, mu[0]]))) + "\n"
        )
        twice["predict --mus"] = lambda: _command("predict", file, "--mus", folder / "twice.csv", "-q")
        if find_spec("pandas"):
            import pandas

            frame = pandas.DataFrame([[*mu, mu[0]]], columns=[*names, names[0]])
            twice["a frame"] = lambda: again(frame)
        _refusals(twice, "a name given twice")
    return f"{said}: refused alike"


@family("14E paths", n_cases=6)
def paths_between_nodes(draw: Draw) -> str:
    """Values at points, at nodes and at some times: the same in memory, loaded, on the command line and by the server."""
    kind = draw.turn(["steady", "in time"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = _KINDS[kind](draw, draw.turn(["polynomial", "gaussian process", "linear"]))
    layout, rng = surrogate.layout, draw.rng
    low, high = layout.domain.bounds
    points = rng.uniform(low, high, (400, layout.points.shape[1]))
    rim = layout.domain.project(points[:6]) if layout.points.shape[1] > 1 else np.array([low, high])
    points = np.vstack(
        [points[layout.domain.distance(points) < 0][:12], layout.points[rng.integers(0, len(layout.points), 3)], rim]
    )
    chosen: dict[str, object] = {"points": points}
    if layout.times is not None:
        chosen["times"] = layout.times[-1:]
    mus = _inside(draw, surrogate, 3)
    there = surrogate.restricted(**chosen)
    known = Known(there, mus)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = ps.save(surrogate, folder / "model.parasol")
        again = ps.load(file)
        known.answers("loaded, restricted", again.restricted(**chosen)(mus))
        part = ps.load(ps.save(there, folder / "part.parasol"))
        known.answers("restricted, saved", part(mus))
        require(part.layout.axes == layout.axes, f"the coordinates are called {part.layout.axes}")
        order = [int(k) for k in rng.permutation(len(layout.axes))]
        table = _write_csv(folder / "points.csv", {layout.axes[k]: points[:, k] for k in order})
        np.save(folder / "mus.npy", mus)
        words = ["--times", ",".join(f"{t!r}" for t in map(float, chosen["times"]))] if "times" in chosen else []  # type: ignore[arg-type]
        out = [w for suffix in (".npy", ".csv", ".npz") for w in ("--out", folder / f"at{suffix}")]
        code, _, err = _command("predict", file, "--mus", folder / "mus.npy", "--points", table, *words, *out, "-q")
        require(code == 0, f"predict --points: {err[-200:]}")
        known.same("predict --points, .npy", np.load(folder / "at.npy"), known.answer.values)
        _csv(known, "predict --points", folder / "at.csv", False)
        known.same("predict --points, points", np.load(folder / "at.npz")["points"], points)
        asked = {"mus": mus.tolist(), "points": points.tolist()} | (
            {"times": list(map(float, chosen["times"]))} if "times" in chosen else {}
        )  # type: ignore[arg-type]
        response = _ask(ps.delivery.make_app(again), "/v1/predict", json=asked)
        require(response.status_code == 200, f"the server: {response.text[:200]}")
        known.same("server, points", response.json()["values"], known.answer.values)
        nodes = [int(k) for k in rng.integers(0, len(layout.points), 4)]
        full = surrogate(mus).values.reshape(len(mus), layout.n_times, len(layout.names), -1)[..., nodes]
        known.same("nodes", again.restricted(nodes=nodes)(mus).values, full.reshape(len(mus), -1))
        outside = np.asarray(high) + 0.5 * (np.asarray(high) - np.asarray(low))
        np.save(folder / "outside.npy", outside[None])
        _refusals(
            {
                "in memory": lambda: surrogate.restricted(points=outside[None]),
                "loaded": lambda: again.restricted(points=outside[None]),
                "predict": lambda: _command("predict", file, "--points", folder / "outside.npy", "-q"),
                "server": lambda: _ask(
                    ps.delivery.make_app(again), "/v1/predict", json={"mus": mus.tolist(), "points": [outside.tolist()]}
                ),
            },
            "a point outside",
        )
    return f"{kind}: {len(points)} points, the same on all paths"


@family("14E paths", n_cases=2)
def paths_by_the_names_of_columns(draw: Draw) -> str:
    """Wherever parameters go in, a table whose columns stand in another order means the same, or is refused."""
    rng = draw.rng
    (x,) = ps.coordinates("x")
    names = [str(n) for n in rng.permutation(["a", "k", "tau"])]
    p = ps.parameters(**dict.fromkeys(names, (1.0, 2.0)))
    u = ps.unknown("u", x)
    equation = ps.Eq(-p[0] * u.diff(x, 2) + p[1] ** 3 * u, 1 + p[2] * x)
    problem = ps.Problem(ps.Box((0.0,), (1.0,)), equation, ps.Dirichlet(0.3))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=25))
    mus = rng.uniform(1, 2, (60, 3))
    mixed = [names[2], names[0], names[1]]
    table: Any = np.zeros(60, dtype=[(name, float) for name in mixed])
    for j, name in enumerate(names):
        table[name] = mus[:, j]
    if draw.turn([True, False]) and find_spec("pandas"):
        import pandas

        table = pandas.DataFrame(table)
    columns = {name: np.asarray(table[name]) for name in mixed}
    first = {name: float(columns[name][0]) for name in mixed}
    truth = ps.solve_many(model, mus)
    reduced = ps.greedy(model, n_modes=5, n_anchors=10).reduced
    c = reduced.solve(mus).coefficients
    wanted = {"values": truth.solutions, "reduced": reduced.basis.lift(c), "bounds": reduced.certify(mus, c).relative}
    learned = ps.learn(problem, 1e-2, data=(mus, truth.solutions), recipe="polynomial")
    wanted["learned"] = learned(mus).values
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        ps.solve_many(model, mus, store=store)
        other = ps.pde.ParameterSpace(tuple(p[names.index(name)] for name in mixed))
        turned = type("Turned", (), {"parameters": other, "solve": lambda self, mu: mu})()
        ways: dict[str, tuple[str, Callable]] = {
            "solve_many": ("values", lambda: ps.solve_many(model, table).solutions),
            "solve_many of a mapping": ("values", lambda: ps.solve_many(model, columns).solutions),
            "reduced model": ("reduced", lambda: reduced.solve(table).values),
            "certificate": ("bounds", lambda: reduced.certify(table, c).relative),
            "learn from data": (
                "learned",
                lambda: ps.learn(problem, 1e-2, data=(table, truth.solutions), recipe="polynomial")(mus).values,
            ),
            "learn from data of nobody": (
                "values",
                lambda: ps.learn(None, 1e-2, data=(table, truth.solutions), recipe="polynomial")(table).values,
            ),
            "learn from a store": (
                "values",
                lambda: ps.learn(turned, 1e-2, data=store, recipe="polynomial")(columns).values,
            ),
            "fit_snapshots": ("values", lambda: ps.fit_snapshots(table, truth.solutions, "polynomial")(columns).values),
            "accuracy": (
                "values",
                lambda: ps.reduction.as_snapshots(table, truth.solutions).solutions if _turned(table, mus) else None,
            ),
        }
        refused = []
        for way, (what, ask) in ways.items():
            try:
                found = ask()
            except ps.ParasolError as refusal:
                refused.append(f"{way} ({str(refusal)[:40]})")
                continue
            off = float(np.max(np.abs(found - wanted[what])) / np.max(np.abs(wanted[what])))
            require(off < 5e-2, f"{way}: a table with its columns in another order is off by {off:.1e}")
    off = np.max(np.abs(model.solve(first).values - truth.solutions[0]))
    require(off == 0, f"model.solve by names is off by {off:.1e}")
    if not isinstance(table, np.ndarray):
        off = np.max(np.abs(model.solve(table.iloc[0]).values - truth.solutions[0]))
        require(off == 0, f"model.solve of a series is off by {off:.1e}")
    return f"{len(ways) - len(refused)} of {len(ways)} ways the same, refused: {', '.join(refused)}"


def _turned(table, mus: np.ndarray) -> bool:
    """Snapshots take the parameters by position: with a table they would be wrong."""
    require(
        np.array_equal(ps.reduction.as_snapshots(table, mus).mus, mus),
        "as_snapshots takes the columns of a table by position",
    )
    return True

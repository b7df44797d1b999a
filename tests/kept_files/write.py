"""Write one small file of every kind, and what was answered from it, with the version of parasol that runs this.

Run once per released version, and before code moves: `python tests/kept_files/write.py 0.1.0`. `test_kept_files.py`
reads every folder that lies here with the present version.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import parasol as ps

HERE = Path(__file__).parent
N_QUERIES = 4


def helmholtz():
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=80))
    return ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=5))


def of_recipe(reduced, recipe):
    return lambda: ps.fit(reduced, recipe, n_labels=80)


def function_parameter():
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100))
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, model.sample(8)), n_modes=4))
    return ps.fit(reduced, "linear", n_labels=40)


def in_time():
    x, t = ps.coordinates("x")[0], ps.time("t")
    u = ps.unknown("u", x, t)
    (k,) = ps.parameters(k=(0.1, 1.0, "log"))
    problem = ps.Problem(
        ps.Box((0.0,), (1.0,)),
        ps.Eq(u.diff(t), k * u.diff(x, 2)),
        ps.Dirichlet(0),
        initial=x * (1 - x),
        quantities={"middle": ps.PointValue((0.5,))},
        times=np.linspace(0, 1, 5),
    )
    return ps.learn(problem, 1e-2, n_nodes=30, solves=40)


def system():
    x, y = ps.coordinates("x y")
    u, v = ps.unknowns("u v", x, y)
    a, b = ps.parameters(a=(1.0, 2.0), b=(0.1, 10.0, "log"))
    problem = ps.Problem(
        ps.Box((0.0, 0.0), (1.0, 1.0)),
        [ps.Eq(-a * ps.laplacian(u) + v, 1), ps.Eq(-ps.laplacian(v) + b * u, x)],
        {"left": [ps.Dirichlet(y), ps.Dirichlet(0)]}
        | {side: [ps.Neumann(0), ps.Dirichlet(1)] for side in ("right", "bottom", "top")},
    )
    return ps.learn(problem, 1e-2, n_nodes=100)


def data():
    mus = np.random.default_rng(3).uniform(0, 1, (80, 2))
    fields = np.sin(3 * mus[:, :1] + np.linspace(0, 1, 20)) * (1 + mus[:, 1:])
    return ps.fit_snapshots(mus, fields, "polynomial", tolerance=1e-4, ranges={"p": (0, 1), "q": (0, 1)})


def constructed():
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100))
    return ps.construct(model, ps.pod(ps.solve_many(model, ps.sample(model, 6)), n_modes=2), accuracy=0.2)


def own_map():
    """A map that parasol does not know, kept by its program; since 0.2.0."""
    from parasol.runtime import Activation, Affine, Program, ProgramMap

    class Waves(ProgramMap):
        def __init__(self, program):
            self.program, self.error = program, 0.0

    class Recipe:
        def fit(self, x, y, **options):
            inner = np.random.default_rng(0).standard_normal((30, x.shape[1]))
            start = (Affine(inner), Activation("tanh"))
            c = np.linalg.lstsq(Program(start)(x), y, rcond=1e-8)[0]
            return Waves(Program((*start, Affine(np.ascontiguousarray(c.T)))))

    return ps.fit(helmholtz(), Recipe(), n_labels=80)


def solid():
    """A domain whose file holds its solids; since 0.2.0."""
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    (a,) = ps.parameters(a=(1.0, 2.0))
    domain = ps.Box((-1, -1, -1), (1, 1, 1)) - ps.Ball((0, 0, 0), 0.5)
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u) + a * u, 1 + x), ps.Dirichlet(y))
    return ps.learn(problem, 1e-2, n_nodes=200, recipe="polynomial")


def kinds():
    """What is written: a name and how it is made."""
    since_2 = {"own-map": own_map, "solid": solid} if ps.__version__ >= "0.2" else {}
    reduced = helmholtz()
    network = ps.fitting.NetworkRecipe.compact(iterations=10)
    return {
        "polynomial": of_recipe(reduced, "polynomial"),
        "linear": of_recipe(reduced, "linear"),
        "gaussian-process": of_recipe(reduced, "gaussian process"),
        "network": of_recipe(reduced, network),
        "function-parameter": function_parameter,
        "in-time": in_time,
        "system": system,
        "data": data,
        "constructed": constructed,
        **since_2,
    }


def answers_of(surrogate) -> dict:
    """What a file is held to: values, bounds, quantities and gradients at a few parameters."""
    rng = np.random.default_rng(7)
    scalars = surrogate.parameters.scalars
    unit = rng.uniform(0.05, 0.95, (N_QUERIES, surrogate.n_parameters))
    mus = unit.copy()
    for i, p in enumerate(scalars):
        mus[:, i] = (
            p.low * (p.high / p.low) ** unit[:, i] if p.scale == "log" else p.low + unit[:, i] * (p.high - p.low)
        )
    answer = surrogate(mus)
    return {
        "names": list(surrogate.parameters.names),
        "mus": mus.tolist(),
        "values": answer.values.tolist(),
        "bound": np.asarray(answer.bound).tolist() if surrogate.reduced or surrogate.conformal else None,
        "quantities": {name: np.asarray(value).tolist() for name, value in answer.quantities.items()},
        "gradient": np.asarray(surrogate.gradient(mus[0])).tolist(),
        "facts": sorted(surrogate.facts),
    }


def main(folder: Path) -> None:
    """Write every kind into the folder."""
    folder.mkdir(parents=True)
    warnings.simplefilter("ignore")
    answers = {}
    for name, make in kinds().items():
        surrogate = make()
        path = ps.save(surrogate, folder / f"{name}.parasol")
        answers[name] = answers_of(ps.load(path))
        print(f"{name}: {path.stat().st_size} bytes, {type(surrogate.map).__name__}")
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60))
    snapshots = ps.solve_many(model, ps.sample(model, 5), store=folder / "snapshots", chunk_size=3)
    answers["snapshots"] = {"mus": snapshots.mus.tolist(), "solutions": np.asarray(snapshots.solutions).tolist()}
    (folder / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(HERE / sys.argv[1])

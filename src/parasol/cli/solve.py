"""`parasol solve`: one full solve."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from parasol.cli.options import JsonFile, Problem, Quiet, Values, assignments
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.terminal import check_place, one_line_warnings, tell

if TYPE_CHECKING:  # everything heavy is imported where it is used, so that --help answers at once
    from parasol.pde.model import Model
    from parasol.pde.problem import Problem as PdeProblem
    from parasol.pde.problem import Settings
    from parasol.report.outputs import Outputs


Out = Annotated[
    list[str] | None,
    Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the solution: .png .svg .pdf .csv .npy .npz .vtkhdf, in time also .gif .mp4 (repeatable).",
    ),
]
NodesOut = Annotated[str | None, Option(metavar="FILE", help="Draw the nodes and their quality: .png .svg .pdf.")]
NodeCount = Annotated[int | None, Option(min=1, python="n_nodes", metavar="N", help="Number of nodes.")]
BoundaryCount = Annotated[
    int | None, Option(min=1, python="n_boundary", metavar="N", help="How many of them on the boundary.")
]
Method = Annotated[
    Literal["fill", "front", "hexagonal", "lattice"] | None,
    Option(help="How nodes are scattered; lattice is for boxes."),
]
Kernel = Annotated[
    str | None,
    Option(metavar="NAME:NUMBER", help="phs:7, imq:3, mq:3, iq:3, gaussian:3, matern:2,3.5 or wendland:1,4."),
]
Degree = Annotated[int | None, Option(metavar="P", help="Degree of the polynomials, -1 for none.")]
Stencil = Annotated[int | None, Option(python="stencil_size", metavar="K", help="Nodes per stencil.")]
Preset = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="Settings that come with the problem, e.g. paper; if not given, the one named default. Single options override it.",
        show_default=False,
    ),
]
Neumann = Annotated[Literal["ghosts", "one-sided"] | None, Option(help="How conditions on the slope are met.")]
Times = Annotated[
    str | None, Option(metavar="START:STOP:COUNT", help="Times to store instead of the problem's own, like 0:10:101.")
]
Step = Annotated[float | None, Option(metavar="H", help="Constant steps in time of this size.")]
Tolerance = Annotated[
    float | None, Option(metavar="T", help="Steps in time adapted so that each errs by less, relative to u.")
]
Integrator = Annotated[Literal["averaged", "sbdf2", "esdirk4"] | None, Option(help="How steps in time are made.")]
Solver = Annotated[
    Literal["auto", "direct", "iterative", "superlu", "mkl"] | None, Option(help="How linear systems are solved.")
]
Extrapolate = Annotated[
    bool, Option("--extrapolate", help="Solve outside of the ranges that the problem declares, too.")
]
Seed = Annotated[
    int, Option(min=0, python="rng", metavar="S", help="For the nodes, and for parameters that are random functions.")
]


def solve(
    problem: Problem,
    values: Values = None,
    out: Out = None,
    nodes_out: NodesOut = None,
    json_file: JsonFile = None,
    nodes: NodeCount = None,
    boundary_nodes: BoundaryCount = None,
    method: Method = None,
    kernel: Kernel = None,
    degree: Degree = None,
    stencil: Stencil = None,
    preset: Preset = None,
    neumann: Neumann = None,
    times: Times = None,
    step: Step = None,
    tolerance: Tolerance = None,
    integrator: Integrator = None,
    solver: Solver = None,
    extrapolate: Extrapolate = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Solve PROBLEM once, at the given parameters.

    [dim]parasol solve helmholtz a=0.927 k=1.697 --out u.png --out u.vtkhdf[/dim]

    [dim]parasol solve sine-gordon beta=0.05 rho=-1 --times 0:10:51 --out u.gif[/dim]

    .csv, .npy: one row per node, in time per stored time and node: t, x, y, u.
    .npz: arrays points, times and, by name, each unknown (times, nodes).
    .vtkhdf: for ParaView. .gif, or .mp4 with ffmpeg: up to 101 stored times.
    PROBLEM may also be a model in a file, path/to/file.py:name, such as a ps.AffineModel.

    --method      fill: any domain; front: the plane; hexagonal: a regular lattice inside; lattice: boxes
    --integrator  esdirk4: adapted steps; sbdf2: constant ones; averaged: constant ones, of equations with u''
    --neumann     ghosts: nodes outside the boundary; one-sided: stencils of nodes inside
    --solver      auto: by size; direct: elimination; superlu: the same; mkl: Intel's, if installed; iterative: GMRES with multigrid
    """
    given = assignments(values or [])
    with stages(quiet) as stage, one_line_warnings() as said:
        stage("reading the problem")
        from parasol.pde.catalogue import load_problem  # SciPy and SymPy take a while
        from parasol.pde.model import Model
        from parasol.pde.problem import Settings
        from parasol.report.outputs import solve_outputs, write_outputs
        from parasol.report.solutions import SolveReport

        targets = solve_outputs(out or [], nodes_out, json_file if json_file != "-" else None)
        for path in targets.paths:
            check_place(path, None)
        source = load_problem(problem, model=True)
        declared = source.problem if isinstance(source, Model) else source
        _check_parameters(declared, given, extrapolate)
        targets.check_problem(declared)
        in_time = _in_time(declared, times=times, step=step, tolerance=tolerance, integrator=integrator)
        counts = {"nodes": nodes, "boundary_nodes": boundary_nodes, "stencil": stencil}
        chosen = {**counts, "method": method, "degree": degree, "kernel": kernel, "neumann": neumann}
        start = time.perf_counter()
        if isinstance(source, Model):
            model, settings = _as_it_is(source, solver, targets, preset=preset, **chosen), Settings()
        else:
            settings = _settings(source, preset, **chosen)
            model = _discretised(source, settings, solver, seed, stage)
        seconds = time.perf_counter() - start
        fraction = stage("solving")
        if declared.time is not None:
            in_time = {**_steps(settings, in_time), "progress": fraction}
        mu = model.vector(given, rng=seed, extrapolate=extrapolate)
        solution = model.solve(mu, extrapolate=extrapolate, **in_time)
        stage("estimating the discretisation error")
        report = SolveReport(
            solution, given.keys(), seed, seconds, [str(path) for path in targets.paths], said, estimate=True
        )
        data, rows = report.to_dict(), report.rows()
        write_outputs(report, targets, stage=stage)
    tell(data, "-" if json_file == "-" else None, quiet, rows.items(), wrote=targets.paths)


def _discretised(problem: PdeProblem, settings: Settings, solver: str | None, seed: int, stage) -> Model:
    """The model of these settings on nodes of this seed."""
    from parasol.pde.by_elements import elements_for, wants_elements
    from parasol.pde.discretize import discretize
    from parasol.pde.placing import nodes_for
    from parasol.space.stencils import default_scheme

    scheme = {"kernel": settings.kernel, "degree": settings.degree, "stencil_size": settings.stencil_size}
    default_scheme(problem.domain.dimension, **scheme)  # says what does not fit before nodes are scattered
    stage("scattering nodes")
    if wants_elements(problem, settings, rng=seed):
        return elements_for(problem, settings, rng=seed, **_chosen(solver=solver))
    scattered = nodes_for(problem, settings, rng=seed)
    stage("computing weights")
    return discretize(problem, scattered, **scheme, neumann=settings.neumann, **_chosen(solver=solver))


def _as_it_is(model: Model, solver: str | None, targets: Outputs, **options) -> Model:
    """A model of the user's own, which has its nodes already."""
    from copy import copy

    from parasol.errors import InputError

    for name in _chosen(**options):
        raise InputError(f"--{name.replace('_', '-')} is for equations, but a model has its nodes. Leave it out.")
    if model.nodes is None and (targets.fields or targets.nodes):
        raise InputError("files need points= and cells= in ps.AffineModel: this model has none. Use --json.")
    if solver is not None:
        model = copy(model)  # its class may be made by other arguments than it has fields
        object.__setattr__(model, "solver", solver)
    return model


def _check_parameters(problem: PdeProblem, given: dict[str, float], extrapolate: bool) -> None:
    """Refuse wrong parameters before anything expensive begins."""
    from parasol.errors import InputError

    for name in [f.name for f in problem.parameters.functions if f.name in given]:
        raise InputError(f"parameter {name!r} is a function, drawn at random. Choose another with --seed.")
    problem.parameters.vector(given, extrapolate=extrapolate)


def _settings(
    problem: PdeProblem,
    preset: str | None,
    *,
    kernel: str | None,
    nodes: int | None,
    boundary_nodes: int | None,
    stencil: int | None,
    **options,
) -> Settings:
    """The preset, or none, with what the single options say instead."""

    from parasol.errors import InputError, did_you_mean
    from parasol.pde.problem import Settings
    from parasol.space.kernels import kernel_from_text

    if preset is not None and preset not in problem.settings:
        known = ", ".join(problem.settings) or "none"
        near = did_you_mean(preset, problem.settings)
        raise InputError(f"preset {preset!r} is unknown for this problem. {near}It has: {known}.")
    base = problem.settings.get("default", Settings()) if preset is None else problem.settings[preset]
    options |= {"n_nodes": nodes, "n_boundary": boundary_nodes, "stencil_size": stencil}
    return replace(base, **_chosen(**options, kernel=None if kernel is None else kernel_from_text(kernel)))


def _in_time(problem: PdeProblem, *, times: str | None, **options) -> dict[str, Any]:
    """What the options say about time; refused for a steady problem, and where the times to store are not known."""
    from parasol.errors import InputError

    chosen = _chosen(times=times, **options)
    if problem.time is None:
        for name in chosen:
            raise InputError(f"--{name} is for problems in time, but this one is steady. Leave it out.")
    elif times is not None:
        chosen["times"] = _times(times, problem)
    elif problem.times is None:
        raise InputError("the problem does not say which times to store. Say it like --times 0:10:101.")
    return chosen


def _times(text: str, problem: PdeProblem):
    import numpy as np

    from parasol.errors import InputError

    try:
        start, stop, count = text.split(":")
        first, last, n_times = float(start), float(stop), int(count)
    except ValueError:
        raise InputError(f"--times {text!r} is not START:STOP:COUNT. Write it like 0:10:101.") from None
    if not (math.isfinite(first) and math.isfinite(last) and first < last and n_times >= 2):
        raise InputError(f"--times {text!r} does not go forward in at least 2 times. Write it like 0:10:101.")
    begin = first if problem.times is None else float(problem.times[0])
    if first != begin:
        raise InputError(
            f"--times {text!r} starts at {first:g}, but the initial state is that at {begin:g}. Start there."
        )
    return np.linspace(first, last, n_times)


def _steps(settings: Settings, chosen: dict[str, Any]) -> dict[str, Any]:
    """The settings' way to make steps in time, and what was chosen instead; a tolerance leaves no constant steps."""
    base = {} if "tolerance" in chosen else _chosen(step=settings.step, integrator=settings.integrator)
    return base | chosen


def _chosen(**options) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}

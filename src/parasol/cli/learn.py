"""`parasol learn`: the whole offline phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from parasol.cli.options import Jobs, JsonFile, OptionalProblem, Quiet
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.start import Terminated
from parasol.cli.terminal import check_json, check_place, one_line_warnings, tell, write_safely

_ELSEWHERE, _NOT_MET = 1, 3  # exit statuses

Tolerance = Annotated[
    float, Option("--tolerance", "-t", metavar="T", help="Relative error to stay below on new parameters.")
]
Out = Annotated[str, Option("--out", "-o", metavar="FILE", help="Where the surrogate goes.")]
Total = Annotated[
    bool, Option("--total", help="The tolerance includes the discretisation error, not only the surrogate's.")
]
Solves = Annotated[int | None, Option(min=8, metavar="N", help="At most so many full solves.")]
Seconds = Annotated[float | None, Option(metavar="S", help="At most so many seconds.")]
NodeCount = Annotated[
    int | None, Option(min=1, python="n_nodes", metavar="N", help="Number of nodes; if not given, as many as it takes.")
]
Recipe = Annotated[
    str | None,
    Option(metavar="NAME", help="The map, one of those above; if not given, the cheapest that is good enough."),
]
Store = Annotated[
    str | None, Option(metavar="DIR", help="Keep full solves there: a run that was stopped goes on, others reuse them.")
]
Data = Annotated[
    str | None,
    Option(metavar="FILES", help="Learn from results instead: a .csv, .npz, .h5 or .nc, 'case_*.vtu', or a store."),
]
Table = Annotated[
    str | None,
    Option(metavar="TABLE", help="Of the results: a .csv with a row for each run, or names of columns, a,k."),
]
Missing = Annotated[
    str,
    Option(metavar="refuse|drop", help="Runs of the results with values that are missing: refuse, or leave them out."),
]
Proof = Annotated[
    bool,
    Option("--proof", help="Compute constants that prove the bound of a linear steady problem where they can; slower."),
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Tell the plan and its cost: nodes, solves, seconds, memory, disk. Learn nothing.")
]
Cluster = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="A Dask cluster for the full solves: tcp://host:8786, a scheduler file, or local. Needs --store.",
    ),
]
Seed = Annotated[int, Option(min=0, python="rng", help="Another seed draws other samples and other first weights.")]


def learn(
    problem: OptionalProblem = None,
    tolerance: Tolerance = 1e-3,
    out: Out = "model.parasol",
    total: Total = False,
    solves: Solves = None,
    seconds: Seconds = None,
    nodes: NodeCount = None,
    recipe: Recipe = None,
    store: Store = None,
    data: Data = None,
    parameters: Table = None,
    missing: Missing = "refuse",
    proof: Proof = False,
    dry_run: DryRun = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """From PROBLEM to a surrogate that answers any parameter with an error below the tolerance.

    [dim]parasol learn helmholtz --tolerance 1e-4 --out helmholtz.parasol[/dim]

    [dim]parasol learn my_equation.py --store runs/mine --seconds 600 --out mine.parasol[/dim]

    [dim]parasol learn --data 'case_*.vtu' --parameters params.csv --out plate.parasol[/dim]

    [dim]parasol learn bratu --store runs/bratu --cluster tcp://node1:8786 --out bratu.parasol[/dim]

    [dim]parasol learn helmholtz --tolerance 1e-4 --dry-run[/dim]

    PROBLEM may also be a model in a file, such as a ps.AffineModel, or a solver of
    one's own: an object with solve(mu) and parameters, or a function that has them.
    Chooses nodes, full solves, modes and the map; stops when the error is met on
    parameters nobody has seen.

    Maps for --recipe:
    polynomial        Chebyshev polynomials; cheap, best where solutions depend smoothly on few parameters
    gaussian process  a trend and a Gaussian process; the best from few samples
    linear            a matrix; for solutions that are linear in a function that is a parameter
    kernel ridge      principal components of the inputs, then a kernel; for data with many parameters
    best              a network of tanh by variable projection; needs JAX
    compact           as best, but small: the quickest answers; needs JAX
    paper             the paper's network, 500 and 500 ReLU by Adam: minutes; needs JAX

    Exit status: 0 met, 3 not met within the solves or the time allowed (the best surrogate is
    written all the same), 2 wrong input, 1 the surrogate could not be written to FILE (it says
    where it is instead).
    """
    _check_options(problem, data, proof=proof, dry_run=dry_run, parameters=parameters, missing=missing)
    if cluster is not None:
        _check_cluster(cluster, store, dry_run, data)
    check_json(json_file)
    wish = {"tolerance": tolerance, "total": total, "n_nodes": nodes, "store": store, "rng": seed}
    if dry_run:
        return _plan(problem, wish, json_file, quiet)
    check_place(out, None)
    solved_before = 0 if store is None else _count_solves(store)
    try:
        with stages(quiet) as stage, one_line_warnings() as said:
            stage("reading the problem")
            from parasol.learning.report import LearnReport  # SciPy and SymPy take a while
            from parasol.learning.run import learn as learn_surrogate
            from parasol.pde.catalogue import load_source
            from parasol.runtime.files import save

            declared = None if problem is None else load_source(problem)
            results = None if data is None else _results(data, parameters, missing)
            limits = {"solves": solves, "seconds": seconds, "data": results, "recipe": recipe, "proof": proof}
            with _hands(cluster, jobs, stage) as hands:
                surrogate = learn_surrogate(declared, **wish, **limits, **hands, progress=stage)
            stage("writing the surrogate")
            path, as_asked = write_safely(lambda place: save(surrogate, place), out, store=store)
    except (KeyboardInterrupt, Terminated):  # here the line of progress is gone
        _say_how_to_go_on(store, solved_before)
        raise
    kept = ("problem", "equation", "tolerance", "measured", "learn")
    facts = {k: surrogate.facts[k] for k in kept if k in surrogate.facts}
    facts = {"file": str(path), **facts, "warnings": said}
    rows = LearnReport.of(surrogate).rows()
    if parameters is not None:  # which columns were parameters, which were not
        rows = {"results": str(results).removeprefix("<Results of ").removesuffix(">")} | rows
    tell(facts, json_file, quiet, rows.items(), wrote=(path,))
    if not as_asked:
        raise SystemExit(_ELSEWHERE)
    if not surrogate.provenance.met:
        raise SystemExit(_NOT_MET)


def _plan(problem: str | None, wish: Mapping[str, Any], json_file: str | None, quiet: bool) -> None:
    """Tell what learning would do and cost."""
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the problem")
        from parasol.learning.run import plan
        from parasol.pde.catalogue import load_source

        learn_plan = plan(None if problem is None else load_source(problem), **wish, progress=stage)
    tell(learn_plan.facts(), json_file, quiet, learn_plan.rows().items())


def _check_options(
    problem: str | None, data: str | None, *, proof: bool, dry_run: bool, parameters: str | None, missing: str
) -> None:
    """Refuse options that do not go with each other."""
    from parasol.errors import InputError

    if problem is None and data is None:
        raise InputError("there is nothing to learn. Name a problem (parasol problems lists them), or give --data.")
    if proof and data is not None:
        raise InputError("data prove nothing: --proof needs an equation. Leave one of --proof and --data out.")
    if dry_run and data is not None:
        raise InputError("--dry-run plans full solves, and data need none. Leave one of --dry-run and --data out.")
    if parameters is not None and data is None:
        raise InputError("--parameters says what the results in --data are results of. Give --data too.")
    if missing != "refuse" and data is None:
        raise InputError("--missing says what to do with results in --data. Give --data too.")


def _check_cluster(address: str, store: str | None, dry_run: bool, data: str | None) -> None:
    """Refuse a cluster that has nothing to do, or nowhere to write."""
    from parasol.errors import InputError
    from parasol.reduction.cluster import check_address

    if data is not None or dry_run:
        raise InputError("--cluster is for full solves, and this makes none. Leave it out.")
    if store is None:
        raise InputError("--cluster needs --store DIR, a folder that all workers see: they write their solves there.")
    check_address(address)


@contextmanager
def _hands(address: str | None, jobs: int | None, stage: Callable[[str], object]) -> Iterator[dict[str, Any]]:
    """Who makes the full solves: processes of this machine, or a cluster while the run lasts."""
    if address is None:
        yield {"jobs": jobs}
        return
    from parasol.reduction.cluster import cluster

    stage(f"waiting for workers of the cluster {address}")
    with cluster(address, jobs=jobs) as executor:
        yield {"executor": executor}


def _results(data: str, parameters: str | None, missing: str) -> Any:
    """What --data and --parameters name: results where there is a table of parameters, else what `learn` reads."""
    from parasol.fitting.reading import read_results

    if parameters is None:
        return data if missing == "refuse" else read_results(data, missing=missing)
    is_table = Path(parameters).expanduser().is_file() or parameters.endswith((".csv", ".tsv", ".txt"))
    names = parameters if is_table else [name.strip() for name in parameters.split(",")]
    return read_results(data, names, missing=missing)


def _count_solves(store: str) -> int:
    """Full solves in a store, of whatever problem; each has a file of its own."""
    kinds = "receipts/[0-9]*.json", "chunk-*.h5"  # the second in stores of version 1
    return sum(1 for kind in kinds for _ in Path(store).expanduser().glob(f"solves-*/batch-*/{kind}"))


def _say_how_to_go_on(store: str | None, before: int) -> None:
    """What a run that was stopped leaves behind: `before` it the store held so many solves."""
    new = 0 if store is None else _count_solves(store) - before
    if store is None:
        line = "nothing is kept. With --store DIR a run that is stopped goes on where it was"
    elif new > 0:
        line = (
            f"{new} new full solve{'s are' if new > 1 else ' is'} kept in {store}. Run the same command again to go on"
        )
    else:
        line = f"no new full solve was finished, so {store} holds none of this run"
    print(f"parasol: {line}.", file=sys.stderr)

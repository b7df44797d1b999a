"""`parasol learn`: the whole offline phase."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from parasol.cli.app import app
from parasol.cli.terminal import (
    catalogue_names,
    check_json,
    one_line_warnings,
    stages,
    tell,
)

_NOT_MET = 3  # exit status


@app.command()
def learn(
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM",
            help="Name in the catalogue, or path/to/file.py[:name].",
            show_default=False,
            autocompletion=catalogue_names,
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", "-t", metavar="T", help="Relative error to stay below on new parameters.")
    ] = 1e-3,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where the model goes.")] = "model.parasol",
    total: Annotated[
        bool, typer.Option("--total", help="The tolerance includes the discretisation error, not only the surrogate's.")
    ] = False,
    solves: Annotated[int | None, typer.Option(min=8, metavar="N", help="At most so many full solves.")] = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="At most so many seconds.")] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of nodes; if not given, as many as it takes.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The map: best, compact, polynomial, gaussian process, linear; if not given, ours."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep full solves there: a run that was stopped goes on, others reuse them."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Learn from data instead: an .npz with mus and solutions, or a store."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell the plan and the cost of a solve, learn nothing.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes for the full solves.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other samples and other first weights.")] = 0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the account as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """From PROBLEM to a model that answers any parameter with an error below the tolerance.

    [dim]parasol learn helmholtz --tolerance 1e-4 --out helmholtz.parasol[/dim]

    [dim]parasol learn my_equation.py --store runs/mine --seconds 600 --out mine.parasol[/dim]

    Chooses nodes, full solves, modes and network; stops when the error is met on parameters nobody has seen. Exit status:
    0 met, 3 not met within the solves or the time allowed (the best model is written all the same), 2 wrong input.
    """
    from parasol.checks import ParasolError
    from parasol.delivery.artifact import save
    from parasol.delivery.files import check_output
    from parasol.pde.catalogue import load_problem
    from parasol.surrogate.learning import learn as learning

    if problem is None and data is None:
        raise ParasolError("there is nothing to learn. Name a problem (parasol problems lists them), or give --data.")
    check_json(json_file)
    if not dry_run:
        check_output(out, None)
    wish = {"tolerance": tolerance, "total": total, "n_nodes": nodes, "store": store, "rng": seed}
    surrogate = None
    with one_line_warnings() as said, stages(quiet) as stage:
        stage("reading the problem")
        declared = None if problem is None else load_problem(problem)
        try:
            if dry_run:
                found = learning.plan(declared, **wish, progress=stage)
                facts, rows = found.facts(), found.rows()
            else:
                limits = {"solves": solves, "seconds": seconds, "data": data, "jobs": jobs, "recipe": recipe}
                surrogate = learning.learn(declared, **wish, **limits, progress=stage)
                stage("writing the model")
                save(surrogate, out)
                kept = ("problem", "equation", "tolerance", "measured", "learn")
                facts = {"file": out, **{k: surrogate.facts[k] for k in kept if k in surrogate.facts}, "warnings": said}
                rows = learning.account_rows(surrogate)
        except KeyboardInterrupt:
            _say_how_to_go_on(store)
            raise
    tell(facts, json_file, quiet, rows.items(), wrote=() if surrogate is None else (out,))
    if surrogate is not None and not surrogate.facts["learn"]["met"]:
        raise typer.Exit(_NOT_MET)


def _say_how_to_go_on(store: str | None) -> None:
    if store is None or not Path(store).exists():
        line = "nothing is kept. With --store DIR a run that is stopped goes on where it was"
    else:
        line = f"the full solves made so far are in {store}. Run the same command again to go on"
    print(f"parasol: {line}.", file=sys.stderr)

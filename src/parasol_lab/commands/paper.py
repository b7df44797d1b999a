"""`parasol paper`: a section of the paper's numerical experiments again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from parasol.cli import check_folder, check_json, one_line_warnings, say, stages, tell

app = typer.Typer(rich_markup_mode="rich")


@app.command()
def paper(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="helmholtz, sine-gordon or schrodinger.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Where results, report, figures and model go.")
    ],
    preset: Annotated[
        str,
        typer.Option(
            help="paper: its scheme and training. best: as many samples, trained as parasol does. few: few full solves, labels from the reduced model."
        ),
    ] = "best",
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see that everything runs.")] = False,
    store: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where full solves and maps are kept for other runs; snapshots beside --out."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes for the full solves.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu, for the training of networks.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other samples and other first weights.")] = 0,
    degree: Annotated[
        int, typer.Option(min=1, metavar="L", help="schrodinger: where the random series of f is cut.")
    ] = 8,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Seeds of every training: 5, at most 3 for the largest network."),
    ] = None,
    readings: Annotated[
        bool,
        typer.Option("--readings", help="With --preset paper: try what it leaves open (scales, first weights, loss)."),
    ] = False,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the results there too; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """A section of the paper again: every solver, table and figure, beside the paper's numbers, in one report.

    [dim]parasol paper helmholtz --preset few --out runs/helmholtz[/dim]

    A run that is stopped goes on where it was when started again; full solves are shared between presets.
    """
    check_json(json_file)
    check_folder(out)
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the problem")
        from parasol_lab.paper.reproduction import paper_rows, reproduce  # SciPy and SymPy take a while

        results = reproduce(
            problem,
            out,
            preset=preset,
            quick=quick,
            store=store,
            jobs=jobs,
            device=device,
            seed=seed,
            degree=degree,
            seeds=seeds,
            readings=readings,
            command=shlex.join(["parasol", *sys.argv[1:]]),
            progress=stage,
        )
    files = [Path(out) / name for name in ("results.json", "model.parasol", "report.html", "explore.html")]
    tell(results, json_file, quiet, paper_rows(results), wrote=files)
    if json_file != "-" and not quiet:
        say("open report.html in a browser: it leads to explore.html, where you move the parameters yourself")

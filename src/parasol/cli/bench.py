"""`parasol bench`: measurements, side by side in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from parasol.cli.app import app
from parasol.cli.terminal import print_json, show_rows, stages

bench = typer.Typer(no_args_is_help=True, help="Measure: every figure beside what it is compared with, in one run.")
app.add_typer(bench, name="bench")


@bench.command()
def offline(
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON; - is stdout.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see that everything runs.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """Bases, reduced models, error bounds and sampling on the paper's Helmholtz problem; about two minutes."""
    from parasol.delivery.files import check_output
    from parasol.study.offline import measure_offline, offline_rows
    from parasol.study.outputs import write_json

    if json_file not in (None, "-"):
        check_output(str(json_file), None)
    with stages(quiet) as stage:
        facts = measure_offline(quick=quick, progress=stage)
    if json_file == "-":
        print_json(facts)
        return
    if not quiet:
        show_rows(offline_rows(facts))
    if json_file is not None:
        write_json(facts, json_file)

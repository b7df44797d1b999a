"""`parasol info`: what is in a model."""

from __future__ import annotations

from typing import Annotated

import typer

from parasol.cli.app import app
from parasol.cli.terminal import check_json, tell


@app.command()
def info(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file such as model.parasol.", show_default=False)],
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write all facts as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """Tell what is in MODEL: equation, ranges, sizes, errors, what its bounds mean, how it was made.

    [dim]parasol info model.parasol[/dim]
    """
    from parasol.report.surrogates import surrogate_rows
    from parasol.runtime.description import description
    from parasol.runtime.files import load

    check_json(json_file)
    facts = description(load(model), model)
    tell(facts, json_file, quiet, surrogate_rows(facts).items())

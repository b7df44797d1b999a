"""`parasol info`: what is in a model."""

from __future__ import annotations

from typing import Annotated

import typer

from parasol.cli.app import app
from parasol.cli.terminal import print_json, say, show_rows


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
    from parasol.delivery.artifact import load
    from parasol.delivery.files import check_output
    from parasol.study.outputs import write_json
    from parasol.surrogate.words import model_facts, model_rows

    if json_file not in (None, "-"):
        check_output(str(json_file), None)
    facts = model_facts(load(model), model)
    if json_file == "-":
        print_json(facts)
        return
    if json_file is not None:
        write_json(facts, json_file)
    if not quiet:
        show_rows(model_rows(facts).items())
        if json_file is not None:
            say(f"wrote {json_file}")

"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from parasol.cli.terminal import catalogue_names

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A file such as model.parasol.", show_default=False)]
_PROBLEM = typer.Argument(
    metavar="PROBLEM",
    help="Name in the catalogue, or path/to/file.py[:name].",
    show_default=False,
    autocompletion=catalogue_names,
)
Problem = Annotated[str, _PROBLEM]
OptionalProblem = Annotated[str | None, _PROBLEM]
Values = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE",
        help="Parameters: all of them, or none for the middle of every range.",
        show_default=False,
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes for the full solves.")]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON; - is stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


def assignments(values: list[str]) -> dict[str, float]:
    """Numbers by name, from words such as a=0.9."""
    from math import isfinite, nan

    from parasol.errors import InputError

    out: dict[str, float] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise InputError(f"{text!r} is not an assignment. Write parameters as name=value, like a=0.9.")
        try:
            number = float(value)
        except ValueError:
            number = nan
        if not isfinite(number):
            raise InputError(f"{text!r} does not give a finite number. Write it like {name}=0.9.")
        if name in out:
            raise InputError(f"parameter {name!r} is given twice. Give it once.")
        out[name] = number
    return out

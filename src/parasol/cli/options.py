"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from parasol.cli.reading import Argument, Option
from parasol.cli.terminal import catalogue_names

SurrogateFile = Annotated[str, Argument(metavar="SURROGATE", help="A file such as model.parasol.", show_default=False)]
_PROBLEM = Argument(
    metavar="PROBLEM",
    help="Name in the catalogue, or path/to/file.py[:name].",
    show_default=False,
    autocompletion=catalogue_names,
)
Problem = Annotated[str, _PROBLEM]
OptionalProblem = Annotated[str | None, _PROBLEM]
Values = Annotated[
    list[str] | None,
    Argument(
        metavar="NAME=VALUE", help="Parameters: all of them, or none for the middle of every range.", show_default=False
    ),
]
Jobs = Annotated[int | None, Option(min=1, metavar="N", help="Processes for the full solves.")]
JsonFile = Annotated[str | None, Option("--json", metavar="FILE", help="Write the results as JSON; - is stdout.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


def assignments(values: list[str]) -> dict[str, float]:
    """Numbers by name, from words such as a=0.9."""
    return numbers(texts(values))


def numbers(given: Mapping[str, str], known: Collection[str] = ()) -> dict[str, Any]:
    """Numbers by name; words stay where they are values of a parameter that is `known` to have such."""
    from math import isfinite

    from parasol.errors import InputError

    out: dict[str, Any] = {}
    for name, value in given.items():
        try:
            out[name] = float(value)
        except ValueError:
            out[name] = value
        if not (name in known if isinstance(out[name], str) else isfinite(out[name])):
            text = f"{name}={value}"
            raise InputError(f"{text!r} does not give a finite number. Write it like {name}=0.9.")
    return out


def texts(values: list[str]) -> dict[str, str]:
    """Texts by name, from words such as a=0.9."""
    from parasol.errors import InputError

    out: dict[str, str] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise InputError(f"{text!r} is not an assignment. Write parameters as name=value, like a=0.9.")
        if name in out:
            raise InputError(f"parameter {name!r} is given twice. Give it once.")
        out[name] = value
    return out

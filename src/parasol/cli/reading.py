"""A command line that leaves no question, read without typer: with NumPy it would be half of what `predict` takes.

Commands are functions whose annotations say what they are called with (`Argument`, `Option`). What is misspelt, missing,
unusual or asks for help is left to typer, which gets the same annotations and says what is wrong.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, getdoc, signature
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_NUMBER = {int: re.compile(r"\d{1,9}"), float: re.compile(r"\d+(\.\d*)?(e[+-]?\d+)?")}  # others are rare


class _Described:
    def __init__(self, *names: str, python: str = "", **settings: Any):
        self.names, self.settings = names, settings  # as of typer.Argument and typer.Option
        self.python = python  # what it is called there, where that is not the name of the parameter


class Argument(_Described):
    """A word of a command known by its place; metavar, help, … as of `typer.Argument`."""


class Option(_Described):
    """A word of a command known by its names; metavar, help, min, … as of `typer.Option`."""


@dataclass(frozen=True)
class Word:
    """What a parameter of a command is: its kind of value, whether there may be many, and how it is described."""

    name: str
    kind: Any
    many: bool
    described: _Described
    required: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called by on the command line."""
        return self.described.names or ("--" + self.name.replace("_", "-"),)

    def value(self, text: str) -> Any:
        """The text as a value of this kind; ValueError where there may be something to say about it."""
        settings = self.described.settings
        if get_origin(self.kind) is Literal:
            if text not in get_args(self.kind):
                raise ValueError
            return text
        if self.kind is str:
            return text
        if self.kind not in _NUMBER or not _NUMBER[self.kind].fullmatch(text):
            raise ValueError
        value = self.kind(text)
        if value < settings.get("min", value) or value > settings.get("max", value):
            raise ValueError
        return value


@cache
def command_function(name: str) -> Callable[..., None]:
    """The command of ours by this name; the others are not imported."""
    return getattr(import_module(f"parasol.cli.{name}"), name)


def words_of(command: Callable[..., None]) -> list[Word]:
    """What a command can be called with, in its order."""
    hints = get_type_hints(command, include_extras=True)
    parameters = signature(command).parameters.values()
    return [_word(parameter, hints[parameter.name]) for parameter in parameters]


def words_of_python(name: str) -> dict[str, str]:
    """How the arguments that messages speak of are given to a command of ours: {"n_nodes": "--nodes", …}."""
    out = {}
    for word in words_of(command_function(name)):
        place = isinstance(word.described, Argument)
        out[word.described.python or word.name] = word.described.settings["metavar"] if place else word.names[0]
    return out


def _word(parameter: Parameter, hint: Any) -> Word:
    kind, described = get_args(hint)[:2]
    if get_origin(kind) in (UnionType, Union):  # with None, which it is where it is left out
        kind = get_args(kind)[0]
    many = get_origin(kind) is list
    required = parameter.default is Parameter.empty
    return Word(parameter.name, get_args(kind)[0] if many else kind, many, described, required)


def read_words(command: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of a command by name, from the words after its name; None where typer should look at them."""
    known = words_of(command)
    if any(word.described.settings.get("envvar", "") in os.environ for word in known):
        return None
    options = {name: word for word in known if isinstance(word.described, Option) for name in word.names}
    places = [word for word in known if isinstance(word.described, Argument)]
    given: dict[str, Any] = {}
    rest = list(words)
    while rest:
        text = rest.pop(0)
        name, sign, value = text.partition("=") if text.startswith("--") else (text, "", "")
        if not text.startswith("-"):
            word = next((one for one in places if one.many or one.name not in given), None)
            value = text
        else:
            word = options.get(name)
        if word is None or (word.name in given and not word.many):
            return None
        if word.kind is bool:
            if sign:
                return None
            given[word.name] = True
            continue
        if text.startswith("-") and not sign:
            if not rest or (rest[0].startswith("-") and rest[0] != "-"):
                return None
            value = rest.pop(0)
        try:
            item = word.value(value)
        except ValueError:
            return None
        given[word.name] = [*given.get(word.name, ()), item] if word.many else item
    return None if any(word.required and word.name not in given for word in known) else given


def _unbroken(text: str) -> str:
    """Paragraphs in one line, which terminals of any width break well; lists keep their lines.

    >>> _unbroken("One\\nsentence.\\n\\nnames   in columns\\nothers  below")
    'One sentence.\\n\\nnames   in columns\\nothers  below'
    """
    is_list = re.compile(r"^\.|\S {2,}\S", re.MULTILINE)
    return "\n\n".join(part if is_list.search(part) else part.replace("\n", " ") for part in text.split("\n\n"))


def for_typer(command: Callable[..., None], typer: Any) -> Callable[..., None]:
    """The same command with annotations that typer knows."""

    def run(**given: Any) -> None:
        command(**given)

    parameters = []
    for word, parameter in zip(words_of(command), signature(command).parameters.values(), strict=True):
        hint = get_args(get_type_hints(command, include_extras=True)[parameter.name])[0]
        make = typer.Argument if isinstance(word.described, Argument) else typer.Option
        described = make(*word.described.names, **word.described.settings)
        parameters.append(parameter.replace(annotation=Annotated[hint, described]))
    run.__name__, run.__doc__ = command.__name__, _unbroken(getdoc(command) or "")
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = signature(command).replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    return run

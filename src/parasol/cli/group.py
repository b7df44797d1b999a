"""The command itself: its help, its version, commands of other packages, and what is wrong with its words in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import parasol
from parasol.cli.reading import command_function, for_typer
from parasol.cli.start import DEBUG, OWN, begins, fail, one_line_errors, orderly_termination
from parasol.errors import InputError, did_you_mean

_PANELS = {**OWN, "What is behind it": ("theorem", "paper", "bench")}  # the last of parasol_lab
_HELP = """Write down a parametric PDE, learn a model that answers any parameter at once and says how wrong it can be.

[bold]parasol problems[/bold]                                      [dim]what there is[/dim]
[bold]parasol solve helmholtz a=0.927 k=1.697 --out u.png[/bold]   [dim]one full solve[/dim]
[bold]parasol learn helmholtz --out model.parasol[/bold]           [dim]learn from many[/dim]
[bold]parasol predict model.parasol a=0.927 k=1.697[/bold]         [dim]ask, with a bound[/dim]
[bold]parasol check model.parasol[/bold]                           [dim]errors, measured[/dim]
[bold]parasol info model.parasol[/bold]                            [dim]what is in it[/dim]
[bold]parasol explore model.parasol[/bold]                         [dim]a page of sliders[/dim]
[bold]parasol serve model.parasol --port 8000[/bold]               [dim]over HTTP[/dim]
[bold]parasol export model.parasol --to model.onnx[/bold]          [dim]for other programs[/dim]
"""
_EPILOG = (
    "Every command has [bold]--help[/bold], [bold]--json FILE[/bold] for machines and [bold]--quiet[/bold]. "
    "Exit status: 0 done, 1 a check failed or a file cannot be written, 2 wrong input, 3 tolerance not met, "
    "130 interrupted, 143 terminated."
)


_ADDED: dict[str, Any] = {}  # commands that other packages have added while running
_GROUP = "parasol.commands"  # of entry points: commands of other packages, found where they are installed


def add_command(name: str, command: typer.Typer) -> None:
    """Add a command of another package to this run, without an entry point."""
    _ADDED[name] = command


def _names_elsewhere() -> list[str]:
    from importlib.metadata import entry_points

    return list(dict.fromkeys([*_ADDED, *entry_points(group=_GROUP).names]))


@cache
def _own_command(name: str) -> Any:
    """The command of ours by this name; the others are not imported."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command()(for_typer(command_function(name), typer))
    return typer.main.get_command(alone)


def _command_elsewhere(name: str) -> Any:
    """The command of another package by this name, or None."""
    from importlib.metadata import entry_points

    commands = [_ADDED[name]] if name in _ADDED else [entry.load() for entry in entry_points(group=_GROUP, name=name)]
    if not commands:
        return None
    command = typer.main.get_command(commands[0])
    # `parasol` completes all of its commands: the options of a typer.Typer that stands alone say something else
    command.params = [p for p in command.params if p.name not in ("install_completion", "show_completion")]
    return command


class _Group(TyperGroup):
    """Shows the commands in their order, and turns what goes wrong into one line on stderr and an exit status."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.commands = {name: None for names in OWN.values() for name in names}  # type: ignore[assignment]

    def list_commands(self, ctx) -> list[str]:  # for the help and for tab completion
        order = [name for names in _PANELS.values() for name in names]
        there = {*self.commands, *_names_elsewhere()}
        return [name for name in dict.fromkeys([*order, *sorted(there)]) if name in there]

    def get_command(self, ctx, cmd_name: str) -> Any:
        command = _own_command(cmd_name) if cmd_name in self.commands else _command_elsewhere(cmd_name)
        if command is not None:
            command.name = cmd_name
            panels = [panel for panel, names in _PANELS.items() if cmd_name in names]
            command.rich_help_panel = panels[0] if panels else "Added by other packages"  # type: ignore[attr-defined]
        return command

    def resolve_command(self, ctx, args: list[str]) -> Any:  # "did you mean" one of other packages too
        if self.get_command(ctx, args[0]) is None and (near := did_you_mean(args[0], self.list_commands(ctx))):
            raise InputError(f"No such command {args[0]!r}. {near}Try: {ctx.command_path} --help")
        elsewhere = None if args[0] in self.commands else self.get_command(ctx, args[0])
        begins(args[0], elsewhere and {one.name: _called(one) for one in elsewhere.params})
        return super().resolve_command(ctx, args)

    def make_context(self, *args, **options) -> Any:  # reads the words before the name of the command
        with _one_line_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx) -> Any:  # reads the rest and runs the command
        with _one_line_errors(), orderly_termination():
            return super().invoke(ctx)


def _called(parameter: Any) -> str:
    """What a parameter of click is called on the command line."""
    return max(parameter.opts, key=len) if parameter.param_type_name == "option" else parameter.name.upper()


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Those of every command, and what is wrong with the words it was called with."""
    try:
        with one_line_errors():
            yield
    except Exception as error:
        # a usage error is known by its method, whichever click it comes from; the one that shows the help may pass
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
            raise
        advice = f"Try: {error.ctx.command_path} --help" if getattr(error, "ctx", None) else ""  # type: ignore[attr-defined]
        said = error.format_message().rstrip(".").replace("Value error, ", "")  # type: ignore[attr-defined]
        if getattr(error, "possibilities", None):  # options that are like the one that was given
            said = f"{error.message}. {did_you_mean(error.option_name, error.possibilities)}".rstrip()  # type: ignore[attr-defined]
        raise fail(f"{said}{'' if said.endswith('?') else '.'} {advice}", 2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_HELP,
    epilog=_EPILOG,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"parasol {parasol.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help=f"Show the whole traceback of an error; so does {DEBUG}=1.")
    ] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"

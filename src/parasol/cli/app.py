"""The command itself: its help, its version, commands of other packages, and errors in one line."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import parasol
from parasol.errors import ParasolError

# the commands as the help shows them: in the order in which they are needed
_OWN = {
    "From an equation to a model": ("problems", "solve", "learn"),
    "What a model is for": ("predict", "check", "info", "explore", "serve", "export"),
}
_PANELS = {**_OWN, "What is behind it": ("theorem", "paper", "bench")}  # the last of parasol_lab
_HELP = """Write down a parametric PDE, learn a model that answers any parameter at once and says how wrong it can be.

[bold]parasol problems[/bold]                                      [dim]what there is[/dim]
[bold]parasol solve helmholtz a=0.927 k=1.697 --out u.png[/bold]   [dim]one full solve[/dim]
[bold]parasol learn helmholtz --out model.parasol[/bold]           [dim]learn from many[/dim]
[bold]parasol predict model.parasol a=0.927 k=1.697[/bold]         [dim]ask, with a bound[/dim]
[bold]parasol check model.parasol[/bold]                           [dim]errors, measured[/dim]
[bold]parasol explore model.parasol[/bold]                         [dim]a page of sliders[/dim]
"""
_EPILOG = (
    "Every command has [bold]--help[/bold], [bold]--json FILE[/bold] for machines and [bold]--quiet[/bold]. "
    "Exit status: 0 done, 1 not possible or a promise that does not hold, 2 wrong input, 3 learned less well than asked, "
    "130 stopped by Ctrl-C, 143 by SIGTERM."
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
    alone.command()(getattr(import_module(f"parasol.cli.{name}"), name))
    return typer.main.get_command(alone)


def _command_elsewhere(name: str) -> Any:
    """The command of another package by this name, or None."""
    from importlib.metadata import entry_points

    found = [_ADDED[name]] if name in _ADDED else [entry.load() for entry in entry_points(group=_GROUP, name=name)]
    return typer.main.get_command(found[0]) if found else None


class Terminated(SystemExit):
    """SIGTERM: everything is left in order on the way out, which the default action of the system does not do."""


class _Group(TyperGroup):
    """Shows the commands in their order, and turns what goes wrong into one line on stderr and an exit status."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.commands = {name: None for names in _OWN.values() for name in names}  # type: ignore[assignment]  for "did you mean"

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

    def make_context(self, *args, **options) -> Any:  # reads the words before the name of the command
        with _one_line_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx) -> Any:  # reads the rest and runs the command
        with _one_line_errors(), _orderly_termination():
            return super().invoke(ctx)


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """SIGTERM raises `Terminated` in here, so that the cursor comes back, locks go and what is kept can be said.

    A training that Ctrl-C would only shorten ends, for `Terminated` is no KeyboardInterrupt. A second SIGTERM ends the
    process at once.
    """
    # a handler can only be set in the main thread; one that is there, or a signal that is ignored, stays as it is
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def terminate(number: int, _) -> None:
        if os.getpid() != process:  # a forked worker, which has inherited this handler: its parent does the talking
            os._exit(128 + number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ending.set()
        raise Terminated(128 + number)

    def stumbled(args) -> None:
        """The thread that looks after workers may fall over their end, which the signal brings them too: that is no news."""
        if not ending.wait(0.5):
            usual(args)

    ending, usual = threading.Event(), threading.excepthook
    signal.signal(signal.SIGTERM, terminate)
    threading.excepthook = stumbled
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.excepthook = usual


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _fail("interrupted", 130) from None
    except Terminated as end:
        raise _fail("terminated", end.code) from None  # type: ignore[arg-type]
    except BrokenPipeError:
        raise  # the reader of our output has gone: nothing is wrong
    except OSError as error:
        where = f" {str(error.filename)!r}" if error.filename else ""
        raise _fail(f"cannot read or write{where}: {error.strerror or error}", 1) from None
    except MemoryError:
        raise _fail("not enough memory. Use fewer nodes or fewer stored times", 1) from None
    except ParasolError as error:
        raise _fail(str(error), 2) from None
    except Exception as error:
        # a usage error is known by its method, whichever click it comes from; the one that shows the help may pass
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
            raise
        advice = f"Try: {error.ctx.command_path} --help" if getattr(error, "ctx", None) else ""  # type: ignore[attr-defined]
        said = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        raise _fail(f"{said}{'' if said.endswith('?') else '.'} {advice}", 2) from None


def _fail(message: str, status: int) -> typer.Exit:
    print(f"parasol: {' '.join(message.split())}", file=sys.stderr)
    return typer.Exit(status)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_HELP,
    epilog=_EPILOG,
)


def main() -> None:
    """Entry point of the command `parasol`."""
    app(prog_name="parasol")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"parasol {parasol.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...

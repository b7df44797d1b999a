"""The command `parasol`: one command per stage, no mathematics.

Other packages add commands by entry points of the group `parasol.commands`, each a `typer.Typer`; what commands share is
here for them too.
"""

from parasol.cli.app import add_command, app, main
from parasol.cli.terminal import (
    catalogue_names,
    check_folder,
    check_json,
    check_place,
    one_line_warnings,
    print_json,
    say,
    show_rows,
    stages,
    tell,
    write_safely,
)

__all__ = [
    "add_command",
    "app",
    "catalogue_names",
    "check_folder",
    "check_json",
    "check_place",
    "main",
    "one_line_warnings",
    "print_json",
    "say",
    "show_rows",
    "stages",
    "tell",
    "write_safely",
]

"""What people see on a terminal: tables, warnings in one line, where files are written."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parasol.cli.start import in_options, output
from parasol.errors import FileError, WriteFailed

if TYPE_CHECKING:
    from parasol.report.render import Facts

_TRIAL = 2**20  # bytes written to see whether a place can be written to


def catalogue_names(incomplete: str) -> list[str]:
    """Names of the catalogue that begin like this, for tab completion: there is no time to load it.

    >>> catalogue_names("helm")
    ['helmholtz']
    """
    from importlib.util import find_spec
    from pkgutil import iter_modules

    spec = find_spec("parasol.pde.catalogue")
    folders = (spec and spec.submodule_search_locations) or []
    names = [module.name.replace("_", "-") for module in iter_modules(folders)]
    return sorted(name for name in names if name.startswith(incomplete))


def print_json(data: Facts | list[Facts]) -> None:
    """Plain values as JSON on stdout."""
    from parasol.report.render import as_json

    sys.stdout.write(as_json(data))


def check_json(json_file: str | None) -> None:
    """Refuse a name for the JSON that cannot be written, before any work is done."""
    if json_file not in (None, "-"):
        check_place(str(json_file), None)


def check_place(path: str | Path, suffixes: Sequence[str] | None) -> Path:
    """The path, if its suffix is known and a file of some size can really be written beside it now."""
    from parasol.cache.disk import check_output

    path = check_output(path, suffixes)
    beside = path.resolve()  # a link stays a link, what it points to is written
    _try_to_write(beside.with_name(f".{beside.stem}.{os.getpid()}.trial{beside.suffix}"), path)
    return path


def check_folder(folder: str | Path) -> None:
    """Refuse a folder, there or still to be made, in which nothing can be written."""
    place = Path(folder).absolute()
    while not place.exists():
        place = place.parent
    if place.is_dir():  # or else the command itself says what it is
        _try_to_write(place / f".parasol.{os.getpid()}.trial", folder)


def _try_to_write(trial: Path, wanted: str | Path) -> None:
    """Permissions say little: a disk may be full, a quota spent, a file system read-only."""
    try:
        with open(trial, "wb") as file:
            file.write(bytes(_TRIAL))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WriteFailed(f"cannot write {str(wanted)!r}: {error.strerror or error}. Choose another place.") from None
    finally:
        with suppress(OSError):
            trial.unlink()


def write_safely(write: Callable[[Path], object], path: str | Path, *, store: str | None = None) -> tuple[Path, bool]:
    """Write what took long to make to the path or, if that fails, where it can be written: the place, and whether it is the path.

    The other places are the store and the temporary directory.
    """
    import tempfile

    path = Path(path)
    try:
        write(path)
        return path, True
    except (OSError, FileError) as error:
        failure = error
    for folder in (store, tempfile.gettempdir()):
        if folder is None or not Path(folder).is_dir():
            continue
        other = Path(folder).absolute() / f"{path.stem}-{os.getpid()}{path.suffix}"
        with suppress(OSError, FileError):
            write(other)
            reason = getattr(failure, "strerror", None) or failure
            print(f"parasol: {str(path)!r} could not be written ({str(reason).rstrip('.')}).", file=sys.stderr)
            print(f"parasol: the surrogate is in {other} instead.", file=sys.stderr)
            return other, False
    raise failure


def tell(
    data: Facts | list[Facts],
    json_file: str | None,
    quiet: bool,
    rows: Iterable[tuple[str, str]] = (),
    *headers: str,
    wrote: Iterable[object] = (),
) -> None:
    """Results as JSON where that is asked for; for people a table, and the files that were written."""
    from parasol.report.render import write_json

    if json_file not in (None, "-"):
        write_json(data, str(json_file))
    with output():
        if json_file == "-":
            print_json(data)
        elif not quiet:
            if rows:
                show_rows(rows, *headers)
            for path in (*wrote, json_file):
                if path is not None:
                    say(f"wrote {path}")


@contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """Show each of our warnings once, as one line without Python's source line; collects them."""
    from parasol.checks import ParasolWarning

    said: list[str] = []
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message, category, *rest, **options) -> None:
            text = " ".join(str(message).split())
            text = in_options(text) if issubclass(category, ParasolWarning) else text
            if not issubclass(category, ParasolWarning):
                usual(message, category, *rest, **options)
            elif text not in said:
                said.append(text)
                print(f"parasol: warning: {text}", file=sys.stderr)

        warnings.simplefilter("always", ParasolWarning)
        warnings.showwarning = show
        yield said


def show_rows(rows: Iterable[tuple[str, str]], *headers: str) -> None:
    """A table of names and what is to be said of each; with headers it also has space between the rows."""
    from shutil import get_terminal_size

    from parasol.report.render import table

    terminal = sys.stdout.isatty()
    bold = terminal and os.name != "nt" and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print(table(rows, *headers, width=get_terminal_size().columns if terminal else 110, bold=bold))


def say(words: str) -> None:
    """One line, however long."""
    from parasol.report.render import visible

    print(visible(words))

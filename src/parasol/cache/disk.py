"""Files that appear when complete, and folders that one run at a time writes to."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from parasol.checks import ParasolError

LOCK = "lock"
TEMPORARY = re.compile(r"\..*\.(tmp|part(\.\w+)?)")  # what a killed run may leave behind


def publish(path: Path, fill: Callable[[Path], object], *, advice: str = "Choose another place.") -> None:
    """Write a file of a store: under another name in the same folder, brought to the disk, then renamed."""
    try:
        with replacing(path) as temporary:
            fill(temporary)
            _to_disk(temporary)  # before the name: should that be lost with the power, the file is just not there
    except OSError as error:
        raise ParasolError(f"cannot write {path}: {error.strerror or error}. {advice}") from None


def check_output(path: str | Path, suffixes: Sequence[str] | None) -> Path:
    """The path, if a file can be written there and its suffix is one of those known (None: any will do).

    >>> check_output("u.docx", (".csv", ".npy"))
    Traceback (most recent call last):
    parasol.checks.ParasolError: cannot write 'u.docx': the suffix '.docx' is unknown. Use one of: .csv, .npy.
    """
    path = Path(path)
    if suffixes is not None and path.suffix.lower() not in suffixes:
        got = f"the suffix {path.suffix!r} is unknown" if path.suffix else "it has no suffix"
        raise ParasolError(f"cannot write {str(path)!r}: {got}. Use one of: {', '.join(suffixes)}.")
    folder = path.parent
    if not folder.is_dir():
        raise ParasolError(f"cannot write {str(path)!r}: there is no directory {str(folder)!r}. Make it first.")
    if path.exists() and not path.is_file():
        raise ParasolError(f"cannot write {str(path)!r}: it is there and not an ordinary file. Choose another name.")
    if not os.access(folder, os.W_OK):
        raise ParasolError(f"cannot write {str(path)!r}: no permission to write in {str(folder)!r}.")
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; takes its place at the end, or vanishes if something goes wrong."""
    path = path.resolve()  # a link stays a link, what it points to is replaced
    temporary = path.with_name(f".{path.stem}.{os.getpid()}-{secrets.token_hex(4)}.part{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:  # the reader knows the path he gave, not ours
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _to_disk(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def claim(folder: Path, what: str = "store", check: Callable[[list[str]], None] | None = None) -> Iterator[None]:
    """Hold a folder for one run: create it if need be, refuse while another run is alive, tidy after dead ones.

    `check` sees the names in it before anything is written there, and may refuse.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError as error:
        raise ParasolError(f"cannot make or open the folder {folder}: {error.strerror}. Choose another path.") from None
    if check is not None:
        check(names)
    from filelock import SoftFileLock, Timeout  # here: writing a file needs no lock

    # a file that holds process, start and host: unlike locks of the kernel it is seen by other machines on any file
    # system; that of a process that is provably dead is set aside, which takes a second attempt
    lock = SoftFileLock(folder / LOCK, timeout=0.2, poll_interval=0.02)
    try:
        lock.acquire()
    except Timeout:
        raise ParasolError(
            f"another run ({_holder(folder / LOCK)}) is writing to the {what} {folder}. Wait for it; if it is gone, "
            f"delete {folder / LOCK}."
        ) from None
    except OSError as error:
        raise ParasolError(f"cannot write to the {what} {folder}: {error.strerror}. Check its permissions.") from None
    try:
        for path in folder.iterdir():
            if TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _holder(lock: Path) -> str:
    """Who holds a lock, in words."""
    try:
        pid, host = lock.read_text().split("\n")[:2]
        return f"process {int(pid)} on {host.partition('?')[0]}"
    except (OSError, ValueError):
        return "of an unknown machine"

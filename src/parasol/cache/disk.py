"""Files that appear when complete, and folders that one run at a time writes to."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from parasol.errors import FileError, InputError, WriteFailed, did_you_mean

LOCK = "lock"
_NO_CONTAINER = 0xEFFFFFFC  # Linux's number of the process table that it starts with
TEMPORARY = re.compile(r"\..*\.(tmp|part(\.\w+)?)")  # what a killed run may leave behind


def publish(path: Path, fill: Callable[[Path], object], *, advice: str = "Choose another place.") -> None:
    """Write a file of a store: under another name in the same folder, brought to the disk, then renamed."""
    with replacing(path, advice=advice) as temporary:
        fill(temporary)
        _to_disk(temporary)  # before the name: should that be lost with the power, the file is just not there


def remove(path: Path, *, advice: str = "Check its permissions.") -> None:
    """Take a file away if it is there; what the system refuses is a `WriteFailed`."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WriteFailed(f"cannot remove {str(path)!r}: {error.strerror}. {advice}") from error


def check_output(path: str | Path, suffixes: Sequence[str] | None) -> Path:
    """The path, if a file can be written there and its suffix is one of those known (None: any will do).

    >>> check_output("u.docx", (".csv", ".npy"))
    Traceback (most recent call last):
    parasol.errors.InputError: cannot write 'u.docx': the suffix '.docx' is unknown. Use one of: .csv, .npy.
    """
    path = Path(path)
    if suffixes is not None and path.suffix.lower() not in suffixes:
        got = f"the suffix {path.suffix!r} is unknown" if path.suffix else "it has no suffix"
        near = did_you_mean(path.suffix, suffixes)
        raise InputError(f"cannot write {str(path)!r}: {got}. {near}Use one of: {', '.join(suffixes)}.")
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"cannot write {str(path)!r}: there is no directory {str(folder)!r}. Make it first.")
    if path.exists() and not path.is_file():
        raise FileError(f"cannot write {str(path)!r}: it is there and not an ordinary file. Choose another name.")
    if not os.access(folder, os.W_OK):
        raise WriteFailed(f"cannot write {str(path)!r}: no permission to write in {str(folder)!r}.")
    return path


def missing(path: Path, advice: str = "") -> FileError:
    """The error that a file is not there; names the one that may be meant."""
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    near = did_you_mean(path.stem, [Path(name).stem for name in names if Path(name).suffix == path.suffix])
    near = near.replace("'?", f"{path.suffix}'?")
    return FileError(f"there is no file {str(path)!r}. {near}{advice}".strip())


@contextlib.contextmanager
def replacing(path: Path, *, advice: str = "Choose another place.") -> Iterator[Path]:
    """A temporary path beside `path` to write to; takes its place at the end, or vanishes if something goes wrong.

    What the system refuses, on a full disk for instance, is a `WriteFailed` that names the path.
    """
    given, path = path, path.resolve()  # a link stays a link, what it points to is replaced
    temporary = path.with_name(f".{path.stem}.{os.getpid()}-{os.urandom(4).hex()}.part{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, WriteFailed) and error.path != str(temporary):
            raise  # of another file
        # readers know the path they gave, not the temporary one
        reason = error.__cause__ if isinstance(error, WriteFailed) else error
        words = getattr(reason, "strerror", None) or " ".join(str(reason).split())
        failed = WriteFailed(f"cannot write {str(given)!r}: {words}. {advice}")
        failed.path = str(given)
        raise failed from reason
    finally:
        with contextlib.suppress(OSError):
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
        raise FileError(f"cannot make or open the folder {folder}: {error.strerror}. Choose another path.") from None
    if check is not None:
        check(names)
    lock = folder / LOCK
    mine = folder / f".{LOCK}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        mine.write_text(json.dumps({"pid": os.getpid(), "started": _started(os.getpid()), "host": _host()}))
        try:
            _take(mine, lock, what)
        finally:
            mine.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to the {what} {folder}: {error.strerror}. Check its permissions.") from None
    try:
        for path in folder.iterdir():
            if TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)
        yield
    finally:
        with contextlib.suppress(OSError):  # of a disk that has become read-only: what it refused is said already
            lock.unlink()


def _take(mine: Path, lock: Path, what: str) -> None:
    """Make `mine` the lock in one step; a lock whose process is dead is set aside first."""
    for _ in range(10):
        with contextlib.suppress(FileExistsError):
            _place(mine, lock)
            return
        try:
            text = lock.read_text()
        except FileNotFoundError:
            continue
        try:
            holder = json.loads(text)
            pid, started, host = int(holder["pid"]), holder["started"], holder["host"]
        except (ValueError, KeyError, TypeError):
            pid, started, host = 0, "", "an unknown machine"
        if host != _host() or (_alive(pid) and _started(pid) == started):
            raise FileError(
                f"another run (process {pid} on {host}) is writing to the {what} {lock.parent}. "
                f"Wait for it; if it is gone, delete {lock}."
            )
        aside = mine.with_name(f".{LOCK}.dead-{os.urandom(4).hex()}.tmp")
        with contextlib.suppress(FileNotFoundError):
            os.rename(lock, aside)
            if aside.read_text() != text:  # somebody else was quicker and this is their lock
                _place(aside, lock)
    raise FileError(f"several runs want the {what} {lock.parent} at once. Try again.")


def _place(text: Path, lock: Path) -> None:
    """Make the lock with this text, which must not be there yet."""
    try:
        os.link(text, lock)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with open(lock, "x") as file:
            file.write(text.read_text())


def _host() -> str:
    """This machine; in a container also which one, since those may share a name and number their processes anew."""
    import socket  # here, for nobody who only reads a file needs it

    with contextlib.suppress(OSError):
        container = os.stat("/proc/self/ns/pid").st_ino
        if container != _NO_CONTAINER:
            return f"{socket.gethostname()} in container {container}"
    return socket.gethostname()


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    if os.name != "posix":  # elsewhere the question would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _started(pid: int) -> str:
    """When a living process began, in the kernel's ticks: tells it from a later one with the same number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return "" if fields[0] in "ZX" else fields[19]  # a zombie is dead
    except (OSError, IndexError):
        return ""

"""What parasol raises and warns of: one family, one meaning each.

A message says what was wrong, what was given and what to do. Code that catches names the class it means, and never
looks at the text.

>>> issubclass(SolveFailed, ParasolError), issubclass(SolveFailed, InputError)
(True, False)
"""

from collections.abc import Iterable, Mapping


class ParasolError(ValueError):
    """What parasol cannot do: one line that says what was wrong, what was given and what to do."""


class ParasolWarning(UserWarning):
    """Something the caller should know about an answer that is still returned."""


class MissingPackage(ParasolWarning):
    """A package is not installed that would give a better answer; the warning says which, and how to install it."""


class InputError(ParasolError):
    """A mistake of the caller's: an argument, an equation or an option that cannot be meant."""


class SolveFailed(ParasolError):
    """No solution at one parameter: Newton's method, the linear system or the steps in time failed. Others may work."""


class NoCertificate(ParasolError):
    """This operator has no reduced model or no bound of its error. Full solves and a calibrated bound remain."""


class Exhausted(ParasolError):
    """The full solves or the seconds that were allowed are used up."""


class FileError(ParasolError):
    """A file or store is missing, damaged, foreign, newer than this version, in use, or cannot be written."""


class WriteFailed(FileError, OSError):
    """The system refuses to write a file: the disk is full, a quota is spent, or there is no permission."""

    path = ""  # of the file

    def __reduce__(self):
        # with two built-in ancestors, what Dask restores exceptions by would take the wrong one
        return _restored, (str(self), self.path)


def _restored(text: str, path: str) -> WriteFailed:
    failed = WriteFailed(text)
    failed.path = path
    return failed


class FormulaError(InputError):
    """A formula that cannot be read or computed, here or at one parameter."""


class UnsuitableNodes(InputError):
    """Nodes that cannot carry what is asked of them: too few, or too regular for the stencils."""


class TooFewSamples(InputError):
    """Samples that do not determine the map that is to be fitted to them."""


class Unhashable(InputError):
    """An object whose content has no hash, so that nothing can be stored under it."""


class NotInstalled(ParasolError):
    """A package that this needs is not installed."""


class WorkerDied(ParasolError):
    """A process that was solving has ended: killed, or out of memory."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question about a misspelt name, with a space behind it, or nothing where none of the known ones is like it.

    >>> did_you_mean("helmholz", ["heat", "helmholtz"]), did_you_mean("A", ["a", "k"]), did_you_mean("x", ["heat"])
    ("Did you mean 'helmholtz'? ", "Did you mean 'a'? ", '')
    """
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    matches = get_close_matches(name.lower(), lower, n=1)
    return f"Did you mean {lower[matches[0]]!r}? " if matches else ""


def reworded(text: str, words: Mapping[str, str]) -> str:
    """A message in Python's words in those of another door: `words` says how an argument is given there.

    Calls stay as they are, and so do values of parameters.

    >>> door = {"n_nodes": "--nodes", "extrapolate": "--extrapolate", "times": "--times"}
    >>> reworded("n_nodes=9 is too small. Use n_nodes >= 20.", door)
    '--nodes 9 is too small. Use --nodes >= 20.'
    >>> reworded("parameter times=9 is outside. Pass extrapolate=True, or ask f(times=[1]).", door)
    'parameter times=9 is outside. Pass --extrapolate, or ask f(times=[1]).'
    """
    import re

    if not words:
        return text
    names = "|".join(sorted(words, key=len, reverse=True))
    bare = "|".join(name for name in words if "_" in name) or "(?!)"  # others are words of English too
    value = r"""=("[^"]*"|'[^']*'|[^\s,;:()]*[^\s,;:().?])"""
    pattern = rf"\w\([^()]*\)|\bparameter \w+=|(?<![\w.-])(?:(?P<given>{names}){value}|(?P<bare>{bare}))(?![\w=])"

    def write(match: re.Match) -> str:
        given, number = match["given"], match[2]
        if given is None:
            return words[match["bare"]] if match["bare"] else match[0]
        return {"True": words[given], "None": f"no {words[given]}"}.get(number, f"{words[given]} {number}")

    return re.sub(pattern, write, text)


def place_of(error: BaseException) -> str:
    """Where in the user's own files an error was raised, "mine.py, line 5"; empty where no file of theirs is involved.

    Found in the text of the traceback, for that of an error in another process is text only.
    """
    import os
    import re
    import sysconfig
    import traceback
    from pathlib import Path

    own = Path(__file__).resolve().parent
    paths = sysconfig.get_paths()
    others = (own, own.with_name("parasol_lab"), *(Path(paths[name]) for name in ("stdlib", "purelib", "platlib")))
    locations = re.findall(r'File "([^"<>\n]+)", line (\d+)', "".join(traceback.format_exception(error)))
    for name, line in reversed(locations):
        path = Path(name).resolve()
        if path.suffix == ".py" and not any(path.is_relative_to(other) for other in others):
            return f"{os.path.relpath(path) if path.is_relative_to(Path.cwd()) else name}, line {line}"
    return ""

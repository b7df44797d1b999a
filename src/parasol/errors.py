"""What parasol raises and warns of: one family, one meaning each.

A message says what was wrong, what was given and what to do. Code that catches names the class it means, and never
looks at the text.

>>> issubclass(SolveFailed, ParasolError), issubclass(SolveFailed, InputError)
(True, False)
"""


class ParasolError(ValueError):
    """What parasol cannot do: one line that says what was wrong, what was given and what to do."""


class ParasolWarning(UserWarning):
    """Something the caller should know about an answer that is still returned."""


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

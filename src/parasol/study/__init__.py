"""HOW GOOD: figures of solutions, errors and nodes."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

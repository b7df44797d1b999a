"""SMALLER: parameters to snapshots, snapshots to a basis, a basis to a small system with bounds of its error."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

"""ONLINE, with NumPy alone: what answers, loads and saves."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

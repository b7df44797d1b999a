"""From parameters to solutions in microseconds: maps fitted to coefficients, and the surrogate around them."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

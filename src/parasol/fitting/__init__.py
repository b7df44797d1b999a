"""THE MAP: kinds of maps fitted to coefficients, and the surrogate made of one."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

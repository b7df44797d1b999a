"""LEARNING: plan, sample, fit, judge, stop, with an account of what was done."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

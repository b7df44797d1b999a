"""LEARNING: plan, sample, fit, judge, stop, with a report of what was done."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

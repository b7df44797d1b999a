"""The paper again: its three experiments with their tables, figures and a report, from one call."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

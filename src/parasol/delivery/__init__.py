"""TO OTHERS: results as files that other programs read."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

"""The theorem examined: the network built, counted, compared with its bounds, tested, and how it grows."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

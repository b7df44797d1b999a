"""What is kept on disk: one content hash, one atomic write, one lock."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

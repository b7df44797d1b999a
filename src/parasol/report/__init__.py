"""What a person reads: figures of solutions, errors and nodes, tables, the error budget."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

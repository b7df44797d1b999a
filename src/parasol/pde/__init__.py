"""WHAT is solved: parameters, fields, equations, problems, their discretisation and solution."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

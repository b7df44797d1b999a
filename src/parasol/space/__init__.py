"""WHERE the equation lives: geometry, nodes, kernels, stencils, operators."""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)

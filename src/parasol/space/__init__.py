"""WHERE the equation lives: geometry, nodes, kernels, stencils, operators."""

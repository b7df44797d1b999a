"""pyMOR with the equation's matrices: POD of the snapshots and Galerkin projection.

Settings: pyMOR documentation, "Tutorial: Projecting a Model" and "Tutorial: Building a Reduced Basis". The error estimator of
pyMOR is for coercive operators; these are not symmetric and have no such constant, so that there is no bound.
"""

import numpy as np
from pymor.algorithms.pod import pod
from pymor.core.logger import set_log_levels
from pymor.models.basic import StationaryModel
from pymor.operators.constructions import LincombOperator, VectorOperator
from pymor.operators.numpy import NumpyMatrixOperator
from pymor.parameters.functionals import ProjectionParameterFunctional
from pymor.reductors.basic import StationaryRBReductor

set_log_levels({"pymor": "ERROR"})


def fit(data, seed, n_modes):
    """The reduced model of as many modes as are asked for."""
    blocks = [NumpyMatrixOperator(block) for block in data.operators]
    thetas = [1.0, ProjectionParameterFunctional("a"), ProjectionParameterFunctional("k")]
    operator = LincombOperator(blocks, thetas)
    fom = StationaryModel(operator, VectorOperator(operator.range.from_numpy(data.load)))
    basis = pod(fom.solution_space.from_numpy(data.solutions.T), modes=n_modes, rtol=0.0)[0]
    reductor = StationaryRBReductor(fom, basis)
    rom = reductor.reduce()

    def predict(queries):
        solved = [rom.solve({"a": a, "k": k}) for a, k in queries]
        return np.hstack([reductor.reconstruct(u).to_numpy() for u in solved]).T

    return {"predict": predict, "n_modes": len(basis)}

"""ONLINE, with NumPy alone: parameters, formulas, map programs, basis, reduced model, bounds, answers, files."""

from parasol.runtime.answer import Answer as Answer
from parasol.runtime.basis import Basis as Basis
from parasol.runtime.basis import slices as slices
from parasol.runtime.conformal import conformal_bound as conformal_bound
from parasol.runtime.container import pack as pack
from parasol.runtime.container import unpack as unpack
from parasol.runtime.descriptions import description as description
from parasol.runtime.expansions import Chebyshev as Chebyshev
from parasol.runtime.expansions import Radial as Radial
from parasol.runtime.features import Features as Features
from parasol.runtime.features import features_of as features_of
from parasol.runtime.layout import Layout as Layout
from parasol.runtime.operations import Activation as Activation
from parasol.runtime.operations import Affine as Affine
from parasol.runtime.operations import Log as Log
from parasol.runtime.operations import Scale as Scale
from parasol.runtime.operations import Sum as Sum
from parasol.runtime.parameters import ParameterSpace as ParameterSpace
from parasol.runtime.program import Program as Program
from parasol.runtime.program import ProgramMap as ProgramMap
from parasol.runtime.program import check_inputs as check_inputs
from parasol.runtime.ranges import ParameterRange as ParameterRange
from parasol.runtime.reduced import ReducedModel as ReducedModel
from parasol.runtime.surrogate import Surrogate as Surrogate

"""From parameters to solutions in microseconds: maps fitted to coefficients, and the surrogate around them."""

from parasol.surrogate import descent as descent
from parasol.surrogate.expansions import Chebyshev as Chebyshev
from parasol.surrogate.expansions import Radial as Radial
from parasol.surrogate.features import Features as Features
from parasol.surrogate.features import features_of as features_of
from parasol.surrogate.last_layer import solve_last_layer as solve_last_layer
from parasol.surrogate.layout import layout_of as layout_of
from parasol.surrogate.linear import ConstructedNetwork as ConstructedNetwork
from parasol.surrogate.linear import NetworkMap as NetworkMap
from parasol.surrogate.linear import check_data as check_data
from parasol.surrogate.operations import Activation as Activation
from parasol.surrogate.operations import Affine as Affine
from parasol.surrogate.operations import Log as Log
from parasol.surrogate.operations import Scale as Scale
from parasol.surrogate.operations import Sum as Sum
from parasol.surrogate.program import Program as Program
from parasol.surrogate.program import ProgramMap as ProgramMap
from parasol.surrogate.program import check_inputs as check_inputs
from parasol.surrogate.recipes import recipe_named as recipe_named
from parasol.surrogate.scaling import Scaling as Scaling
from parasol.surrogate.scaling import mean_relative_error as mean_relative_error
from parasol.surrogate.training import TrainedNetwork as TrainedNetwork

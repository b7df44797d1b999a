"""From parameters to solutions in microseconds: maps fitted to coefficients, and the surrogate around them."""

from parasol.surrogate import descent as descent
from parasol.surrogate.features import Features as Features
from parasol.surrogate.features import features_of as features_of
from parasol.surrogate.fit import calibrated as calibrated
from parasol.surrogate.last_layer import solve_last_layer as solve_last_layer
from parasol.surrogate.layout import layout_of as layout_of
from parasol.surrogate.linear import ConstructedNetwork as ConstructedNetwork
from parasol.surrogate.linear import NetworkMap as NetworkMap
from parasol.surrogate.linear import check_data as check_data
from parasol.surrogate.linear import check_inputs as check_inputs
from parasol.surrogate.maps import GaussianProcess as GaussianProcess
from parasol.surrogate.maps import Linear as Linear
from parasol.surrogate.maps import Polynomial as Polynomial
from parasol.surrogate.maps import RandomFeatures as RandomFeatures
from parasol.surrogate.maps import choose as choose
from parasol.surrogate.network import Network as Network
from parasol.surrogate.recipes import recipe_named as recipe_named
from parasol.surrogate.scaling import Scaling as Scaling
from parasol.surrogate.scaling import mean_relative_error as mean_relative_error
from parasol.surrogate.training import Adam as Adam
from parasol.surrogate.training import TrainedNetwork as TrainedNetwork
from parasol.surrogate.training import VariableProjection as VariableProjection

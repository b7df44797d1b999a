"""THE MAP: kinds of maps fitted to coefficients, and the surrogate made of one."""

from parasol.fitting import descent as descent
from parasol.fitting.gaussian_process import GaussianProcess as GaussianProcess
from parasol.fitting.kernel_ridge import KernelRidge as KernelRidge
from parasol.fitting.last_layer import solve_last_layer as solve_last_layer
from parasol.fitting.layouts import layout_of as layout_of
from parasol.fitting.linear import FittedLinear as FittedLinear
from parasol.fitting.linear import Linear as Linear
from parasol.fitting.maps import check_data as check_data
from parasol.fitting.network import Network as Network
from parasol.fitting.network import NetworkMap as NetworkMap
from parasol.fitting.polynomial import Polynomial as Polynomial
from parasol.fitting.recipes import recipe_named as recipe_named
from parasol.fitting.scaling import Scaling as Scaling
from parasol.fitting.scaling import mean_relative_error as mean_relative_error
from parasol.fitting.training import Adam as Adam
from parasol.fitting.training import NetworkRecipe as NetworkRecipe
from parasol.fitting.training import TrainedNetwork as TrainedNetwork
from parasol.fitting.training import VariableProjection as VariableProjection

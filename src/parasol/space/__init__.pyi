"""WHERE the equation lives: geometry, nodes, kernels, stencils, operators."""

from parasol.space.geometry.domain import Domain as Domain
from parasol.space.interfaces import Interfaces as Interfaces
from parasol.space.kernels import IMQ as IMQ
from parasol.space.kernels import IQ as IQ
from parasol.space.kernels import MQ as MQ
from parasol.space.kernels import PHS as PHS
from parasol.space.kernels import Gaussian as Gaussian
from parasol.space.kernels import Matern as Matern
from parasol.space.kernels import Wendland as Wendland
from parasol.space.node_quality import quality as quality
from parasol.space.nodes import Nodes as Nodes
from parasol.space.operators import differentiate as differentiate
from parasol.space.spacing import feature_spacing as feature_spacing
from parasol.space.spacing import graded_spacing as graded_spacing
from parasol.space.stencils import Scheme as Scheme
from parasol.space.stencils import default_scheme as default_scheme

"""SMALLER: parameters to snapshots, snapshots to a basis, a basis to a small system with bounds of its error."""

from parasol.reduction.affine import AffineForm as AffineForm
from parasol.reduction.affine import affine_form as affine_form
from parasol.reduction.bases_in_space import pod_greedy as pod_greedy
from parasol.reduction.bases_in_space import space_basis as space_basis
from parasol.reduction.fingerprints import fingerprint as fingerprint
from parasol.reduction.greedy import Greedy as Greedy
from parasol.reduction.in_time import TimeReducedModel as TimeReducedModel
from parasol.reduction.interpolation import interpolate as interpolate
from parasol.reduction.nonlinear import NonlinearReducedModel as NonlinearReducedModel
from parasol.reduction.pod import METHODS as METHODS
from parasol.reduction.reduced import Preparation as Preparation
from parasol.reduction.reduced import modes_on_unknowns as modes_on_unknowns
from parasol.reduction.reduced import prepare as prepare
from parasol.reduction.residuals import ResidualBuilder as ResidualBuilder
from parasol.reduction.sampling import split as split
from parasol.reduction.snapshots import Snapshots as Snapshots
from parasol.reduction.snapshots import as_snapshots as as_snapshots
from parasol.reduction.snapshots import open_snapshots as open_snapshots
from parasol.reduction.weights import value_weights as value_weights

"""SMALLER: parameters to snapshots, snapshots to a basis, a basis to a small system with bounds of its error."""

from parasol.reduction.affine import AffineForm as AffineForm
from parasol.reduction.affine import affine_form as affine_form
from parasol.reduction.basis import slices as slices
from parasol.reduction.fingerprints import fingerprint as fingerprint
from parasol.reduction.frames import FrameBuilder as FrameBuilder
from parasol.reduction.pod import METHODS as METHODS
from parasol.reduction.reduced import Workbench as Workbench
from parasol.reduction.reduced import modes_on_unknowns as modes_on_unknowns
from parasol.reduction.reduced import prepare as prepare

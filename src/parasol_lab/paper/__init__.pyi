"""The paper again: its three experiments with their tables, figures and a report, from one call."""

from parasol_lab.paper.operator_nets import DeepONet as DeepONet
from parasol_lab.paper.operator_nets import DirectNetwork as DirectNetwork
from parasol_lab.paper.operator_nets import PodDeepONet as PodDeepONet
from parasol_lab.paper.reproduction import reproduce as reproduce

"""The theorem examined: the network built, counted, compared with its bounds, tested, and how it grows."""

from parasol_lab.theorem.construction.construct import construct as construct
from parasol_lab.theorem.construction.plan import plan_construction as plan_construction
from parasol_lab.theorem.examination import examine as examine
from parasol_lab.theorem.figure import draw_theorem as draw_theorem

"""`learn`: plan, sample, fit, judge, stop, with a report of what was done."""

from parasol.learning.nodes import discretisation_error as discretisation_error
from parasol.learning.report import LearnReport as LearnReport
from parasol.learning.run import learn as learn
from parasol.learning.run import plan as plan

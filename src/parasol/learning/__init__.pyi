"""`learn`: plan, sample, fit, judge, stop, with an account of what was done."""

from parasol.learning.learn import learn as learn
from parasol.learning.learn import plan as plan
from parasol.learning.nodes import discretisation_error as discretisation_error
from parasol.learning.report import LearnReport as LearnReport

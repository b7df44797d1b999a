"""WHAT is solved: parameters, fields, equations, problems, their discretisation and solution."""

from parasol.pde.discretize import discretize_with as discretize_with
from parasol.pde.parameters import Parameter as Parameter

"""WHAT is solved: parameters, fields, equations, problems, their discretisation and solution."""

from parasol.pde.catalogue import problem_names as problem_names
from parasol.pde.discretize import discretize_with as discretize_with
from parasol.pde.evolution import Evolution as Evolution
from parasol.pde.model import Model as Model
from parasol.pde.parameters import Parameter as Parameter
from parasol.pde.parameters import ParameterSpace as ParameterSpace
from parasol.pde.quantities import Weighted as Weighted
from parasol.pde.steady import Solution as Solution

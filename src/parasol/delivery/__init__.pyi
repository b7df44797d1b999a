"""TO OTHERS: results as files that other programs read."""

from parasol.delivery.answers import as_solution as as_solution
from parasol.delivery.answers import write_answer as write_answer
from parasol.delivery.datasets import to_pandas as to_pandas
from parasol.delivery.datasets import to_xarray as to_xarray
from parasol.delivery.files import write_field as write_field
from parasol.delivery.functions import as_jax as as_jax
from parasol.delivery.functions import as_torch as as_torch
from parasol.delivery.page.explore import write_page as write_page
from parasol.delivery.regressor import SurrogateRegressor as SurrogateRegressor
from parasol.delivery.server.app import make_app as make_app

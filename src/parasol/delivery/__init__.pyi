"""TO OTHERS: results as files that other programs read."""

from parasol.delivery.container import pack as pack
from parasol.delivery.container import unpack as unpack

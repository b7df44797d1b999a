"""Networks as plain data: arrays, an activation, and how to evaluate and count them."""

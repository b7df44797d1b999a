"""A surrogate over HTTP: JSON and NumPy arrays, OpenAPI, and the UM-Bridge protocol."""

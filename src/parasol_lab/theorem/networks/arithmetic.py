"""Arithmetic of ReLU networks in one place: squares, products, powers, inverses, polynomials; each with its `…_size`."""

from parasol_lab.theorem.networks.inverse import inverse, inverse_size, power, power_size
from parasol_lab.theorem.networks.polynomials import polynomial, polynomial_size, reciprocal, reciprocal_size
from parasol_lab.theorem.networks.products import (
    MAX_LEVELS,
    gram,
    gram_size,
    matrix_product,
    matrix_product_size,
    product,
    product_size,
    square,
    square_size,
    unpack,
)
from parasol_lab.theorem.networks.sizes import Size, size_of

__all__ = [
    "MAX_LEVELS",
    "Size",
    "gram",
    "gram_size",
    "inverse",
    "inverse_size",
    "matrix_product",
    "matrix_product_size",
    "polynomial",
    "polynomial_size",
    "power",
    "power_size",
    "product",
    "product_size",
    "reciprocal",
    "reciprocal_size",
    "size_of",
    "square",
    "square_size",
    "unpack",
]

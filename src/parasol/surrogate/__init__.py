"""From parameters to solutions in microseconds: maps fitted to coefficients, and the surrogate around them."""

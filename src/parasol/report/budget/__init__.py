"""Where the error of a surrogate comes from, measured on full solves it has not seen."""

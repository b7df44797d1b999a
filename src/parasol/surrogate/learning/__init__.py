"""One call from an equation to a surrogate that meets a tolerance."""

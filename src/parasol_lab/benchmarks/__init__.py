"""Measurements behind `parasol bench`: side by side, in one run."""

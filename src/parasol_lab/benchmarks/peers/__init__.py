"""Peers measured beside parasol: each in an environment of its own, on the same full solves and the same split."""

"""Attacks on parasol through its public names: random problems with known solutions; right, or refused in words."""

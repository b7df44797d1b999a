"""HOW GOOD: figures of solutions, errors and nodes."""

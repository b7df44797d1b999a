"""SMALLER: parameters to snapshots, snapshots to a basis, a basis to a small system with bounds of its error."""

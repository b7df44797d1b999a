"""The command `parasol`: one command per stage, no mathematics."""

from parasol.cli import bench, paper, problems, solve  # noqa: F401  importing a command adds it
from parasol.cli.app import app, main

__all__ = ["app", "main"]

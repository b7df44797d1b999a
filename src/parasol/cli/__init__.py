"""The command `parasol`: one command per stage, no mathematics."""

from parasol.cli import bench, check, explore, export, info, learn, paper, predict, problems, serve, solve, theorem  # noqa: F401  importing a command adds it
from parasol.cli.app import app, main

__all__ = ["app", "main"]

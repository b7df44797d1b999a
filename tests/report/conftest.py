"""A browser, for how reports look."""

from browsers import browser  # noqa: F401

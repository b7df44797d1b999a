"""The type of what JSON knows."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]  # numbers, texts, truth values, None, and lists and dicts of these

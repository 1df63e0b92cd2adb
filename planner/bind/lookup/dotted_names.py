"""Dotted names in parse trees."""

from __future__ import annotations

from typing import Any


def names_of(parts: tuple[Any, ...] | None) -> tuple[str, ...]:
    """The strings of a list of String nodes."""
    return tuple([part.sval for part in parts]) if parts else ()

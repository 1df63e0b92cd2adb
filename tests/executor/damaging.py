"""Kinds of damage to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def flip(path: Path) -> None:
    """Changes one byte in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Removes the second half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Removes all content."""
    path.write_bytes(b"")


DAMAGES: tuple[Callable[[Path], None], ...] = (flip, cut, empty, Path.unlink)

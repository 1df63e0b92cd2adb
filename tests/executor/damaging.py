"""What may happen to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def flip(path: Path) -> None:
    """One byte in the middle is another one."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Its second half is missing."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Nothing is in it."""
    path.write_bytes(b"")


DAMAGES: tuple[Callable[[Path], None], ...] = (flip, cut, empty, Path.unlink)

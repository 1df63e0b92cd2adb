"""The files that a process would leave if it died at this moment, while the process continues."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_crashed(folder: Path, copy: Path) -> None:
    """Copies a live server's folder as of one moment; tries again if background work changes files meanwhile."""
    while True:
        before = _state(folder)
        try:
            shutil.copytree(folder, copy)
        except shutil.Error:  # a file was deleted
            pass
        else:
            if before is not None and _state(folder) == before:
                return
        shutil.rmtree(copy, ignore_errors=True)


def _state(folder: Path) -> list[tuple[str, int, int, int]] | None:
    try:
        files = [(str(path), path.stat()) for path in sorted(folder.rglob("*"))]
    except FileNotFoundError:
        return None
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in files]

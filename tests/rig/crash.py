"""What a process leaves behind that dies at this moment, while the process lives on."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_crashed(folder: Path, copy: Path) -> None:
    """Copies a live server's folder as it is at one moment: again, while its background work changes files."""
    while True:
        before = _state(folder)
        try:
            shutil.copytree(folder, copy)
        except shutil.Error:  # a file went away
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

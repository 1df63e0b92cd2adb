"""Data that takes long to generate, generated once by the first process that needs it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def generated(folder: Path, make: Callable[[], object], part: str = "") -> Path:
    """The folder, with all files that ``make`` writes or with a part of them; other processes wait meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / f"{part}.complete"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            make()
            complete.touch()
    return folder

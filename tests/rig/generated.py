"""Data that takes long to generate, made once by whichever process needs it first."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def generated(folder: Path, make: Callable[[], object], part: str = "") -> Path:
    """The folder, in which ``make`` has written all that it writes, or a part of it; others wait meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / f"{part}.complete"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            make()
            complete.touch()
    return folder

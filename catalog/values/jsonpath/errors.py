"""What goes wrong in a path, and ``silent`` passes over."""

from __future__ import annotations


class PathError(Exception):
    """What a path does not find, or cannot compute: the fields of an error."""

    def __init__(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint

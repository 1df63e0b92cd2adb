"""Errors in paths that ``silent`` suppresses."""

from __future__ import annotations


class PathError(Exception):
    """A path finds nothing where it must, or cannot compute a value; has the fields of an error."""

    def __init__(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint

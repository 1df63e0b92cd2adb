"""The server's own folders, which errors do not tell clients.

Owns: which folders these are, and the text that stands for them: a file of the data folder is named from there on, one
of the program by its last name. What the client wrote itself stays as it is. The log has the whole paths.
"""

from __future__ import annotations

import re
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Final

from catalog.values.errors import SqlError
from server.operations.config import Config

_PROGRAM: Final = (
    str(Path(__file__).resolve().parents[2]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
_REST: Final = r"""(?P<rest>/[^\s"'`:;,()]*)?(?![\w.-])"""


class OwnPaths:
    """Takes the server's folders out of texts."""

    def __init__(self, config: Config) -> None:
        folders = [folder for folder in (config.data, config.storage) if folder]
        self._data = {str(path) for folder in folders for path in (Path(folder).absolute(), Path(folder).resolve())}
        found = sorted({*self._data, *_PROGRAM}, key=len, reverse=True)  # one may be within another
        self._pattern = re.compile(f"(?P<folder>{'|'.join(map(re.escape, found))}){_REST}")

    def hidden(self, error: SqlError, written: str = "") -> SqlError:
        """The error without the server's folders; ``written`` is the client's statement."""
        texts = (error.message, error.detail, error.hint, error.where)
        if not any(text and self._pattern.search(text) for text in texts):
            return error
        message, detail, hint, where = (None if text is None else self._hide(text, written) for text in texts)
        return replace(error, message=message or "", detail=detail, hint=hint, where=where)

    def _hide(self, text: str, written: str) -> str:
        def short(match: re.Match[str]) -> str:
            if match[0] in written:
                return match[0]
            rest = (match["rest"] or "").strip("/")
            return (rest or ".") if match["folder"] in self._data else Path(match[0]).name

        return self._pattern.sub(short, text)

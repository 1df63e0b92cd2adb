"""What the server says about itself: one line an event on stderr, as text or as a JSON object.

Owns: both formats. Everybody logs through the standard library's ``logging.getLogger(__name__)``; Spark's driver
process has a file of its own.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Final

_ESCAPES: Final = str.maketrans({"\n": "\\n", "\r": "\\r"})
_FIELD: Final = re.compile(r"(?:(\w+)=)?%[-+ 0-9.]*([a-z])")


class LineFormatter(logging.Formatter):
    """``2026-11-21T09:23:41.123Z INFO server.main listening address=127.0.0.1:5433``: never more than one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback's line ends are escaped."""
        text = f"{_moment(record)} {record.levelname} {record.name} {record.getMessage()}"
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info)
        return text.translate(_ESCAPES)


class JsonFormatter(logging.Formatter):
    """``{"time": ..., "level": "info", "logger": "server.serving", "message": ..., "port": 5433}`` in one line.

    What a message's template calls ``name=%s`` is a field of that name, a number where it is one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One object."""
        event: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if isinstance(record.args, tuple):
            for (name, _), value in zip(_FIELD.findall(str(record.msg)), record.args, strict=False):
                if name:
                    event.setdefault(name, value if isinstance(value, int | float) else str(value))
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


_FORMATTERS: Final = {"text": LineFormatter, "json": JsonFormatter}


def configure(level: str, form: str = "text") -> None:
    """Sends everything of at least ``level`` to stderr, as ``text`` or ``json``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMATTERS[form]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("py4j", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))

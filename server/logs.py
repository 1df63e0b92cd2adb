"""What the server says about itself: one line an event on stderr, time, level, origin, message.

Owns: the format. Everybody logs through the standard library's ``logging.getLogger(__name__)``; Spark's driver process
does too, so its lines stand among ours.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

_ESCAPES: Final = str.maketrans({"\n": "\\n", "\r": "\\r"})


class LineFormatter(logging.Formatter):
    """``2026-11-21T09:23:41.123Z INFO server.main listening address=127.0.0.1:5433``: never more than one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback's line ends are escaped."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        text = f"{moment}.{int(record.msecs):03d}Z {record.levelname} {record.name} {record.getMessage()}"
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info)
        return text.translate(_ESCAPES)


def configure(level: str) -> None:
    """Sends everything of at least ``level`` to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("py4j", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))

"""What the server says about itself: one line an event on stderr, as text or as a JSON object.

Owns: both formats, and that no value can look like another field or another line. All modules log through the standard
library's ``logging.getLogger(__name__)``; Spark's driver process has a file of its own.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any, Final

#: Characters that end a line somewhere, steer a terminal, or show text in another order than it is in.
_CONTROLS: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0xFEFF),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: Escapes that JSON has as well, so that a whole object may be translated once it is written.
_ESCAPES: Final = {code: _SHORT.get(chr(code), f"\\u{code:04x}") for code in _CONTROLS}
_QUOTED: Final = {ord('"'): '\\"', ord("\\"): "\\\\"}
_FIELD: Final = re.compile(r"(?:(\w+)=)?%([-+ 0-9.]*)([a-z])")
#: A field's value that needs no quotes.
_PLAIN: Final = re.compile(r"[^\s\"=\\]+")
#: What looks like a field within a text.
_LIKE_A_FIELD: Final = re.compile(r"\w=")


class LineFormatter(logging.Formatter):
    """``2026-11-21T09:23:41.123Z INFO server.main listening address=127.0.0.1:5433``: never more than one line.

    A value that has spaces, quotes or ``=`` stands in double quotes, with ``\\"`` and ``\\\\`` for what JSON escapes
    so: ``user="a b"``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback's line ends are escaped."""
        text = f"{_moment(record)} {record.levelname} {record.name} {_message(record)}"
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
            "message": _message(record),
        }
        if isinstance(record.args, tuple):
            for (name, _, _), value in zip(_FIELD.findall(str(record.msg)), record.args, strict=False):
                if name:
                    event.setdefault(name, value if isinstance(value, int | float) else str(value))
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False).translate(_ESCAPES)


def _message(record: logging.LogRecord) -> str:
    """The message, in which a value is told from the template's own words."""
    template, values = str(record.msg), record.args
    fields = _FIELD.findall(template)
    if not isinstance(values, tuple) or len(fields) != len(values):
        return record.getMessage()
    shown = (_shown(name, form, value) for (name, _, form), value in zip(fields, values, strict=True))
    return template % tuple(shown)


def _shown(name: str, form: str, value: Any) -> Any:
    if form != "s" or isinstance(value, int | float):
        return value
    text = str(value)
    if _PLAIN.fullmatch(text) or (not name and not _LIKE_A_FIELD.search(text)):
        return text
    return f'"{text.translate(_QUOTED)}"'


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

"""The differences that are known: a case's name, or its beginning before ``*``, and why it is not mended.

A difference that is not listed here fails the test. docs/compatibility.md shows the list.
"""

from __future__ import annotations

from typing import Final

_BLANKS: Final = "a character value without a length keeps no trailing blanks"

KNOWN: Final[dict[str, str]] = {
    "errors in nested calls": "an error in a part whose value is not needed is met or not, and the first of several "
    "errors may be another's",
    "numerics of more than 38 digits": "22003 where PostgreSQL computes with more",
    "CASE (bpchar)": _BLANKS,
    "max(bpchar)": _BLANKS,
    "min(bpchar)": _BLANKS,
    "COALESCE (bpchar)": _BLANKS,
    "GREATEST, LEAST (bpchar)": _BLANKS,
    "NULLIF (bpchar)": _BLANKS,
    "subquery as a value (bpchar)": _BLANKS,
    "octet_length(bpchar)": _BLANKS,
    "text::bpchar": _BLANKS,
    "bpchar || _text": _BLANKS,
    "_text || bpchar": _BLANKS,
    "float8 * interval": "the last microsecond of spans of centuries",
    "interval * float8": "the last microsecond of spans of centuries",
    "interval / float8": "the last microsecond of spans of centuries",
    "make_interval(*": "seconds beyond 64 bits of microseconds are 22003, where PostgreSQL's wrap around",
    "make_timestamp*": "years before Christ are errors",
}


def known(name: str) -> str | None:
    """The listed name that covers a case's."""
    if name in KNOWN:
        return name
    return next((item for item in KNOWN if item.endswith("*") and name.startswith(item[:-1])), None)

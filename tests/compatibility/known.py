"""The differences that are known: a case's name, or its beginning before ``*``, and why it is not mended.

A difference that is not listed here fails the test. docs/compatibility.md shows the list.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "errors in nested calls": "an error in a part whose value is not needed is met or not, and the first of several "
    "errors may be another's",
    "numerics of more than 38 digits": "22003 where PostgreSQL computes with more",
    "numerics of more than 18 decimals": "quotients and roots show 20 at most, products and what is stored 18",
    **dict.fromkeys(
        ("round(numeric, int4)", "trunc(numeric, int4)"),
        "a numeric that is rounded to a computed number of decimals shows no zeros at its end",
    ),
    **dict.fromkeys(
        ("EXTRACT(julian FROM timestamp)", "EXTRACT(julian FROM timestamptz)"),
        "a day with its part shows at most 20 decimals, as many as its value lets expect",
    ),
    **dict.fromkeys(("float4::numeric", "float8::numeric"), "a number below 10^-18 is 0: numerics keep 18 decimals"),
    "decimals of equal numerics in set operations": "PostgreSQL shows those of a row that its plan chooses",
    **dict.fromkeys(("bpchar || _text", "_text || bpchar"), "the element loses its blanks as by a cast to text"),
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

"""The known differences: a case's name, or its beginning before ``*``, and the reason why it stays.

A difference that is not listed here fails the test. docs/compatibility.md shows the list.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "errors in nested calls": "an error in a part whose value is not needed may or may not be raised, and another one "
    "of several errors may be the first",
    "numerics of more than 38 digits": "Millstream raises 22003, PostgreSQL computes with more digits",
    "numerics of more than 18 decimals": "quotients and roots show at most 20, products and stored values at most 18",
    **dict.fromkeys(
        ("round(numeric, int4)", "trunc(numeric, int4)"),
        "a numeric that is rounded to a computed number of decimals shows no trailing zeros",
    ),
    **dict.fromkeys(
        ("EXTRACT(julian FROM timestamp)", "EXTRACT(julian FROM timestamptz)"),
        "a fractional day shows at most 20 decimals, a number that is estimated from its value",
    ),
    **dict.fromkeys(("float4::numeric", "float8::numeric"), "a number below 10^-18 is 0: numerics keep 18 decimals"),
    "decimals of equal numerics in set operations": "PostgreSQL shows those of one row, which depends on its plan",
    **dict.fromkeys(
        ("bpchar || _text", "_text || bpchar"), "the element loses its trailing blanks, as in a cast to text"
    ),
    "float8 * interval": "the last microsecond of intervals of centuries can differ",
    "interval * float8": "the last microsecond of intervals of centuries can differ",
    "interval / float8": "the last microsecond of intervals of centuries can differ",
    "make_interval(*": "seconds beyond 64 bits of microseconds raise 22003; in PostgreSQL they wrap around",
    "make_timestamp*": "years BC raise an error",
}


def known(name: str) -> str | None:
    """The listed name that matches a case's name."""
    if name in KNOWN:
        return name
    return next((item for item in KNOWN if item.endswith("*") and name.startswith(item[:-1])), None)

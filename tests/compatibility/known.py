"""The differences that are known: a case's name, or its beginning before ``*``, and why it is not mended.

A difference that is not listed here fails the test. docs/compatibility.md shows the list.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}


def known(name: str) -> str | None:
    """The listed name that covers a case's."""
    if name in KNOWN:
        return name
    return next((item for item in KNOWN if item.endswith("*") and name.startswith(item[:-1])), None)

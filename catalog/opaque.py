"""Texts of types that Millstream stores and shows, but does not compute with: addresses, places in the log and of rows.

Owns: their one written form, so that equal values are equal texts, and 22P02 for what is no value. What PostgreSQL
alone writes (access control lists, trees) is taken as it is.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from catalog.errors import invalid_text

_LSN: Final = re.compile(r"([0-9a-f]{1,8})/([0-9a-f]{1,8})\Z", re.ASCII | re.IGNORECASE)
_TID: Final = re.compile(r"\((\d{1,10}),(\d{1,5})\)\Z", re.ASCII)


def canonical(kind: str, text: str) -> str:
    """A value's text as PostgreSQL shows it. Raises 22P02."""
    written = text.strip(" \t\n\v\f\r") if kind == "tid" else text
    match kind:
        case "inet":
            return _inet(text)
        case "pg_lsn" if found := _LSN.match(written):
            return "/".join(f"{int(part, 16):X}" for part in found.groups())
        case "tid" if found := _TID.match(written):
            block, place = map(int, found.groups())
            if block < 1 << 32 and place < 1 << 16:
                return f"({block},{place})"
        case "pg_lsn" | "tid":
            pass
        case _:
            return text
    raise invalid_text(kind, text)


def _inet(text: str) -> str:
    """An address, and the bits of its network where these are not all of it."""
    address, slash, bits = text.partition("/")
    try:
        if "%" in address or (slash and not (bits.isascii() and bits.isdigit())):
            raise ValueError
        found = ipaddress.ip_interface(text)
    except ValueError:
        raise invalid_text("inet", text) from None
    mapped = found.ip.ipv4_mapped if isinstance(found, ipaddress.IPv6Interface) else None
    shown = str(found.ip) if mapped is None else f"::ffff:{mapped}"
    return shown if found.network.prefixlen == found.max_prefixlen else f"{shown}/{found.network.prefixlen}"

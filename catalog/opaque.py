"""Texts of types that Millstream stores and shows, but does not compute with: addresses, places in the log and of rows.

Owns: their one written form, so that equal values are equal texts, 22P02 for what is no value, and 0A000 for their
order, which is not that of the texts. What PostgreSQL alone writes (access control lists, trees) is taken as it is.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from catalog.errors import invalid_text, unsupported
from catalog.nesting import holds
from catalog.types import FORMED, SqlType

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


def is_formed(kind: SqlType) -> bool:
    """Whether a type's values are, or hold, texts with a form of their own."""
    return holds(kind, lambda found: found.name in FORMED)


def refuse_order(kind: SqlType, what: str, position: int | None = None) -> None:
    """Raises 0A000 for an order of such values."""
    if is_formed(kind):
        raise unsupported(f"{what} of values of type {kind}", "Order their texts: cast them to text.", position)


def _inet(text: str) -> str:
    """An address, and the bits of its network where these are not all of it."""
    address, slash, bits = text.partition("/")
    try:
        if "%" in address or (slash and not (bits.isascii() and bits.isdigit())):
            raise ValueError
        found = ipaddress.ip_interface(text)
    except ValueError:
        raise invalid_text("inet", text) from None
    shown = _shown(found.ip)
    return shown if found.network.prefixlen == found.max_prefixlen else f"{shown}/{found.network.prefixlen}"


def _shown(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """IPv6 with an IPv4 address within it ends in that one (inet_net_ntop())."""
    if address.version == 4:
        return str(address)
    high, low = divmod(int(address), 1 << 32)
    if high == 0xFFFF or (high == 0 and low > 0xFFFF):
        return f"::{'ffff:' * (high > 0)}{ipaddress.IPv4Address(low)}"
    return str(address)

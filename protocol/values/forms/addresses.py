"""Binary formats of inet and cidr (family, bits, whether it is a cidr, length, address) and of hardware addresses
(octets)."""

from __future__ import annotations

from functools import partial
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.forms.addresses import Address, address, octets_of, shown_octets
from protocol.values.codec import Codec
from protocol.values.forms.form_codec import Binary, exactly, formed_codec, short, too_long

_FAMILIES: Final = {4: 2, 6: 3}  # PGSQL_AF_INET and PGSQL_AF_INET6


def _write(name: str, text: str) -> bytes:
    found = address(text, name)
    length = found.width // 8
    head = bytes((_FAMILIES[found.family], found.bits, name == "cidr", length))
    return head + found.number.to_bytes(length, "big")


def _read(name: str, data: bytes) -> str:
    """The text of a binary field. Raises 22P03 and 08P01."""
    if len(data) < 4:
        raise short()
    family, bits, _, length = data[:4]
    if family not in _FAMILIES.values():
        raise SqlError("22P03", f'invalid address family in external "{name}" value')
    found = Address(4 if family == 2 else 6, int.from_bytes(data[4:], "big"), bits)
    if bits > found.width:
        raise SqlError("22P03", f'invalid bits in external "{name}" value')
    if length != found.width // 8:
        raise SqlError("22P03", f'invalid length in external "{name}" value')
    exactly(data, 4 + length)
    if name == "cidr" and found.number & found.hosts:
        raise SqlError("22P03", 'invalid external "cidr" value', "Value has bits set to right of mask.")
    return found.cidr()


def _read_mac(data: bytes) -> str:
    return shown_octets(exactly(data, 6))


def _read_mac8(data: bytes) -> str:
    """The text of eight octets, or of six, which are extended to eight."""
    if len(data) not in (6, 8):
        raise short() if len(data) < 8 else too_long()
    return shown_octets(data)


_BINARY: Final[Binary] = {
    **{name: (partial(_write, name), partial(_read, name)) for name in ("inet", "cidr")},
    "macaddr": (octets_of, _read_mac),
    "macaddr8": (octets_of, _read_mac8),
}
CODECS: Final[dict[str, Codec]] = {name: formed_codec(name, _BINARY) for name in _BINARY}

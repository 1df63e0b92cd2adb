"""inet, cidr, macaddr and macaddr8 (network.c, inet_net_pton.c, mac.c, mac8.c).

Owns: their input and output, and ``Address``, which the network functions use. An inet shows the number of its network
bits unless all bits belong to the network, a cidr always. Hardware addresses sort like their texts.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, invalid_text

_V4: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_HEX: Final = "[ \t\n\v\f\r]*([0-9a-fA-F]{1,2})"
_PAIR: Final = "[ \t\n\v\f\r]*((?:0[xX])?[0-9a-fA-F]+)"


class Address(Struct, frozen=True):
    """An address of a family (4 or 6) as a number, and the number of its network bits."""

    family: int
    number: int
    bits: int

    @property
    def width(self) -> int:
        """The number of bits of the family's addresses."""
        return 32 if self.family == 4 else 128

    @property
    def hosts(self) -> int:
        """A mask with all bits after the network bits set."""
        return (1 << self.width - self.bits) - 1

    def host(self) -> str:
        """The address alone (inet_net_ntop()); an IPv6 address that contains an IPv4 address ends with that address's
        form."""
        if self.family == 4:
            return str(ipaddress.IPv4Address(self.number))
        high, low = divmod(self.number, 1 << 32)
        if high == 0xFFFF or (high == 0 and low > 0xFFFF):
            return f"::{'ffff:' * (high > 0)}{ipaddress.IPv4Address(low)}"
        return str(ipaddress.IPv6Address(self.number))

    def inet(self) -> str:
        """The output form of inet."""
        return self.host() if self.bits == self.width else f"{self.host()}/{self.bits}"

    def cidr(self) -> str:
        """The output form of cidr."""
        return f"{self.host()}/{self.bits}"

    def order(self) -> str:
        """A text that sorts as addresses do (network_cmp()): by the bits that both networks have, then by the number of
        these bits, then by the whole address."""
        network = f"{self.number:0{self.width}b}"[: self.bits].translate({48: "1", 49: "2"})
        return f"{self.family}{network}0{self.number:032x}"


def address_ordered(key: str) -> Address:
    """The address for a text of ``Address.order``."""
    return Address(int(key[0]), int(key[-32:], 16), len(key) - 34)


def address(text: str, name: str = "inet") -> Address:
    """The address in a text of inet or cidr. Raises 22P02."""
    try:
        found = _v6(text) if ":" in text else _v4(text, name == "cidr")
    except ValueError:
        raise invalid_text(name, text) from None
    if name == "cidr" and found.number & found.hosts:
        raise SqlError("22P02", f'invalid cidr value: "{text}"', "Value has bits set to right of mask.")
    return found


def _v4(text: str, is_network: bool) -> Address:
    """Up to four octets. For a network, they may be hexadecimal, and the number of bits may follow from the first
    octet."""
    written, slash, rest = text.partition("/")
    if slash and not (rest.isascii() and rest.isdigit()):
        raise ValueError
    if is_network and re.fullmatch("0[xX][0-9a-fA-F]+", written) and len(written) <= 10:
        octets = list(bytes.fromhex(written[2:] + "0" * (len(written) % 2)))
    elif _V4.fullmatch(written) or (not is_network and slash and _V4.fullmatch(written.removesuffix("."))):
        octets = [int(octet) for octet in written.removesuffix(".").split(".")]
    else:
        raise ValueError
    bits = int(rest) if slash else _class_bits(octets) if is_network else 32
    if len(octets) > 4 or max(octets) > 255 or bits > 32:
        raise ValueError
    if not is_network and (bits // 8 > len(octets)):
        raise ValueError
    return Address(4, int.from_bytes(bytes(octets).ljust(4, b"\0"), "big"), bits)


def _class_bits(octets: list[int]) -> int:
    """The number of bits of a network without one: by its class, or of all its octets."""
    first = octets[0]
    bits = next(bits for least, bits in ((240, 32), (224, 8), (192, 24), (128, 16), (0, 8)) if first >= least)
    bits = max(bits, 8 * len(octets))
    return 4 if bits == 8 and first == 224 else bits


def _v6(text: str) -> Address:
    written, slash, bits = text.partition("/")
    if "%" in written or (slash and not re.fullmatch("0|[1-9][0-9]{0,2}", bits)):
        raise ValueError
    if (found := int(bits) if slash else 128) > 128:
        raise ValueError
    return Address(6, int(ipaddress.IPv6Address(written)), found)


# --- hardware addresses ----------------------------------------------------------------------------------------------

#: The formats of macaddr_in()'s sscanf().
_MACS: Final = [
    re.compile(pattern + "[ \t\n\v\f\r]*", re.ASCII)
    for pattern in (
        *(mark.join([_PAIR] * 6) for mark in ":-"),
        *(mark.join([_HEX * 3] * 2) for mark in ":-"),
        *(mark.join([_HEX * 2] * 3) for mark in (r"\.", "-")),
        _HEX * 6,
    )
]
_MAC8: Final = re.compile(r"[ \t\n\v\f\r]*((?:[0-9a-fA-F]{2}[-:.]?){6}|(?:[0-9a-fA-F]{2}[-:.]?){8})[ \t\n\v\f\r]*")


def read_mac(text: str) -> str:
    """The text of six octets. Raises 22P02 and 22003."""
    found = next((match for pattern in _MACS if (match := pattern.fullmatch(text))), None)
    if found is None:
        raise invalid_text("macaddr", text)
    octets = [int(octet, 16) for octet in found.groups()]
    if max(octets) > 255:
        raise SqlError("22003", f'invalid octet value in "macaddr" value: "{text}"')
    return shown_octets(bytes(octets))


def read_mac8(text: str) -> str:
    """The text of eight octets, or of six, which are extended with ff:fe in the middle. Raises 22P02."""
    found = _MAC8.fullmatch(text)
    if found is None or len(set(re.findall("[-:.]", text))) > 1:
        raise invalid_text("macaddr8", text)
    octets = bytes.fromhex(re.sub("[-:.]", "", found[1]))
    return shown_octets(octets if len(octets) == 8 else octets[:3] + b"\xff\xfe" + octets[3:])


def shown_octets(octets: bytes) -> str:
    """Octets as hexadecimal digits with colons."""
    return octets.hex(":")


def octets_of(text: str) -> bytes:
    """The octets of a hardware address."""
    return bytes.fromhex(text.replace(":", ""))


READERS: Final[dict[str, Callable[[str], str]]] = {
    "inet": lambda text: address(text).inet(),
    "cidr": lambda text: address(text, "cidr").cidr(),
    "macaddr": read_mac,
    "macaddr8": read_mac8,
}

"""Functions on network and hardware addresses, which are texts, as functions of the engine.

Owns: ``FUNCTIONS``, ``net_*`` and ``mac_*``, with PostgreSQL's errors (network.c, mac.c, mac8.c).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_
from typing import Final

from msgspec.structs import replace

from catalog.values.errors import SqlError, out_of_range
from catalog.values.forms.addresses import Address, address, octets_of, shown_octets
from executor.embedded.functions.batches import Functions

Both = Callable[[Address, Address], Address]


def _of(change: Callable[[Address], Address]) -> Callable[[str], str]:
    """A function of a text, from a function of an address that returns an inet."""
    return lambda text: change(address(text)).inet()


def _network(found: Address, bits: int) -> Address:
    """The network with this number of bits."""
    kept = replace(found, bits=bits)
    return replace(kept, number=kept.number & ~kept.hosts)


def _mask(found: Address) -> Address:
    return Address(found.family, (1 << found.width) - 1 - found.hosts, found.width)


def _not(found: Address) -> Address:
    return replace(found, number=(1 << found.width) - 1 - found.number)


def _both(name: str, compute: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def call(left: str, right: str) -> str:
        one, other = address(left), address(right)
        if one.family != other.family:
            raise SqlError("22023", f"cannot {name} inet values of different sizes")
        return Address(one.family, compute(one.number, other.number), max(one.bits, other.bits)).inet()

    return call


def _add(text: str, count: int) -> str:
    found = address(text)
    if not 0 <= found.number + count < 1 << found.width:
        raise out_of_range("result is out of range")
    return replace(found, number=found.number + count).inet()


def _distance(left: str, right: str) -> int:
    one, other = address(left), address(right)
    if one.family != other.family:
        raise SqlError("22023", "cannot subtract inet values of different sizes")
    distance = one.number - other.number
    if not -(1 << 63) <= distance < 1 << 63:
        raise out_of_range("result is out of range")
    return distance


def _bits(found: Address, bits: int) -> int:
    if bits == -1:
        return found.width
    if not 0 <= bits <= found.width:
        raise SqlError("22023", f"invalid mask length: {bits}")
    return bits


def _set_bits(text: str, bits: int) -> str:
    found = address(text)
    return replace(found, bits=_bits(found, bits)).inet()


def _set_cidr_bits(text: str, bits: int) -> str:
    found = address(text)
    return _network(found, _bits(found, bits)).cidr()


def _holds(outer: Address, inner: Address, least: int) -> bool:
    """Whether a network contains another one that has at least ``more`` more bits."""
    if outer.family != inner.family or inner.bits < outer.bits + least:
        return False
    return _network(inner, outer.bits) == _network(outer, outer.bits)


def _overlaps(left: str, right: str) -> bool:
    one, other = address(left), address(right)
    return _holds(one, other, 0) or _holds(other, one, 0)


def _merge(left: str, right: str) -> str:
    one, other = address(left), address(right)
    if one.family != other.family:
        raise SqlError("22023", "cannot merge addresses from different families")
    common = min(one.bits, other.bits, one.width - (one.number ^ other.number).bit_length())
    return _network(one, common).cidr()


def _show(text: str) -> str:
    return address(text).cidr()


def _octets(change: Callable[[bytes], bytes]) -> Callable[[str], str]:
    return lambda text: shown_octets(change(octets_of(text)))


def _mac(compute: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def call(left: str, right: str) -> str:
        pairs = zip(octets_of(left), octets_of(right), strict=True)
        return shown_octets(bytes(compute(one, other) for one, other in pairs))

    return call


def _shorter(octets: bytes) -> bytes:
    if octets[3:5] != b"\xff\xfe":
        raise out_of_range("macaddr8 data out of range to convert to macaddr")
    return octets[:3] + octets[5:]


FUNCTIONS: Final[Functions] = {
    "net_host": (lambda text: address(text).host(), "VARCHAR"),
    "net_family": (lambda text: address(text).family, "INTEGER"),
    "net_bits": (lambda text: address(text).bits, "INTEGER"),
    "net_network": (lambda text: _network(found := address(text), found.bits).cidr(), "VARCHAR"),
    "net_mask": (_of(_mask), "VARCHAR"),
    "net_hostmask": (_of(lambda found: Address(found.family, found.hosts, found.width)), "VARCHAR"),
    "net_broadcast": (_of(lambda found: replace(found, number=found.number | found.hosts)), "VARCHAR"),
    "net_abbrev": (lambda text: address(text).inet(), "VARCHAR"),
    "net_not": (_of(_not), "VARCHAR"),
    "net_cidr": (lambda text: _network(found := address(text), found.bits).cidr(), "VARCHAR"),
    "net_inet": (_of(lambda found: found), "VARCHAR"),
    "net_show": (_show, "VARCHAR"),
    "net_and": (_both("AND", and_), "VARCHAR"),
    "net_or": (_both("OR", or_), "VARCHAR"),
    "net_add": (_add, "VARCHAR"),
    "net_added": (lambda count, text: _add(text, count), "VARCHAR"),
    "net_sub": (lambda text, count: _add(text, -count), "VARCHAR"),
    "net_distance": (_distance, "BIGINT"),
    "net_set_bits": (_set_bits, "VARCHAR"),
    "net_set_cidr_bits": (_set_cidr_bits, "VARCHAR"),
    "net_inside": (lambda one, other: _holds(address(other), address(one), 1), "BOOLEAN"),
    "net_within": (lambda one, other: _holds(address(other), address(one), 0), "BOOLEAN"),
    "net_around": (lambda one, other: _holds(address(one), address(other), 1), "BOOLEAN"),
    "net_holds": (lambda one, other: _holds(address(one), address(other), 0), "BOOLEAN"),
    "net_overlaps": (_overlaps, "BOOLEAN"),
    "net_alike": (lambda one, other: address(one).family == address(other).family, "BOOLEAN"),
    "net_merge": (_merge, "VARCHAR"),
    "mac_not": (_octets(lambda octets: bytes(255 - octet for octet in octets)), "VARCHAR"),
    "mac_trunc": (_octets(lambda octets: octets[:3] + bytes(len(octets) - 3)), "VARCHAR"),
    "mac_local": (_octets(lambda octets: bytes((octets[0] | 2,)) + octets[1:]), "VARCHAR"),
    "mac_longer": (_octets(lambda octets: octets[:3] + b"\xff\xfe" + octets[3:]), "VARCHAR"),
    "mac_shorter": (_octets(_shorter), "VARCHAR"),
    "mac_and": (_mac(and_), "VARCHAR"),
    "mac_or": (_mac(or_), "VARCHAR"),
}

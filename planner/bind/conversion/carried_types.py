"""Operators and functions of types whose values another type carries: bit strings, money, network and hardware
addresses, places in the log, sizes, hstore.

Owns: ``OPERATORS`` and ``PREFIXES`` by symbol, ``SIGNATURES`` by PostgreSQL's name, ``COMPARED``, the types whose
values can be compared, and ``CASTS``, the casts that a function computes.
"""

from __future__ import annotations

from typing import Final

from catalog.values.opaque import KEYED
from catalog.values.types import MULTIRANGES

#: Types of which values are compared: their carriers are, or keys of their order.
COMPARED: Final = ("bit", "varbit", "money", "macaddr", "macaddr8", "xid8", *KEYED)
_HARDWARE: Final = ("macaddr", "macaddr8")
_WHOLE: Final = ("int2", "int4", "int8")
_FLOATS: Final = ("float4", "float8")

#: By symbol: the canonical function, both operands, and the result.
OPERATORS: Final[dict[str, tuple[tuple[str, str, str, str], ...]]] = {
    "&": (
        ("bits_and", "bit", "bit", "bit"),
        ("net_and", "inet", "inet", "inet"),
        *(("mac_and", kind, kind, kind) for kind in _HARDWARE),
    ),
    "|": (
        ("bits_or", "bit", "bit", "bit"),
        ("net_or", "inet", "inet", "inet"),
        *(("mac_or", kind, kind, kind) for kind in _HARDWARE),
    ),
    "#": (("bits_xor", "bit", "bit", "bit"),),
    "<<": (("bits_left", "bit", "int4", "bit"), ("net_inside", "inet", "inet", "bool")),
    ">>": (("bits_right", "bit", "int4", "bit"), ("net_around", "inet", "inet", "bool")),
    "<<=": (("net_within", "inet", "inet", "bool"),),
    ">>=": (("net_holds", "inet", "inet", "bool"),),
    "&&": (("net_overlaps", "inet", "inet", "bool"),),
    "||": (("concat", "varbit", "varbit", "varbit"), ("hs_concat", "hstore", "hstore", "hstore")),
    "->": (("hs_get", "hstore", "text", "text"), ("hs_slice_array", "hstore", "_text", "_text")),
    **{
        symbol: ((name, "hstore", "hstore", "bool"),)
        for symbol, name in (("#<#", "lt"), ("#<=#", "le"), ("#>#", "gt"), ("#>=#", "ge"))
    },
    "?": (("hs_exists", "hstore", "text", "bool"),),
    "?|": (("hs_exists_any", "hstore", "_text", "bool"),),
    "?&": (("hs_exists_all", "hstore", "_text", "bool"),),
    "@>": (("hs_contains", "hstore", "hstore", "bool"),),
    "<@": (("hs_contained", "hstore", "hstore", "bool"),),
    "+": (
        ("lsn_add", "pg_lsn", "numeric", "pg_lsn"),
        ("lsn_added", "numeric", "pg_lsn", "pg_lsn"),
        ("money_add", "money", "money", "money"),
        ("net_add", "inet", "int8", "inet"),
        ("net_added", "int8", "inet", "inet"),
    ),
    "-": (
        ("lsn_sub", "pg_lsn", "numeric", "pg_lsn"),
        ("lsn_distance", "pg_lsn", "pg_lsn", "numeric"),
        ("money_sub", "money", "money", "money"),
        ("net_sub", "inet", "int8", "inet"),
        ("net_distance", "inet", "inet", "int8"),
        ("hs_delete", "hstore", "text", "hstore"),
        ("hs_delete_array", "hstore", "_text", "hstore"),
        ("hs_delete_pairs", "hstore", "hstore", "hstore"),
    ),
    "*": (
        *(("money_times", "money", kind, "money") for kind in _WHOLE),
        *(("money_times", kind, "money", "money") for kind in _WHOLE),
        *(("money_scaled", "money", kind, "money") for kind in _FLOATS),
        *(("money_scaled", kind, "money", "money") for kind in _FLOATS),
    ),
    "/": (
        *(("money_parts", "money", kind, "money") for kind in _WHOLE),
        *(("money_divided", "money", kind, "money") for kind in _FLOATS),
        ("money_ratio", "money", "money", "float8"),
    ),
}
#: By symbol of a prefix operator: the canonical function and its operand, which is also its result.
PREFIXES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "~": (("bits_not", "bit"), ("net_not", "inet"), *(("mac_not", kind) for kind in _HARDWARE)),
}

#: As in ``signatures``.
SIGNATURES: Final[dict[str, str]] = {
    "length": "char_length: bit > int4",
    "bit_length": "char_length: bit > int4",
    "octet_length": "bits_octets: bit > int4",
    "bit_count": "bits_count: bit > int8",
    "get_bit": "bits_get: bit int4 > int4",
    "set_bit": "bits_set: bit int4 int4 > bit",
    "substring": "bits_from: bit int4 > bit | bits_part: bit int4 int4 > bit",
    "overlay": "bits_overlay: bit bit int4 > bit | bits_overlay_count: bit bit int4 int4 > bit",
    "position": "bits_position: bit bit > int4",
    "host": "net_host: inet > text",
    "family": "net_family: inet > int4",
    "masklen": "net_bits: inet > int4",
    "network": "net_network: inet > cidr",
    "netmask": "net_mask: inet > inet",
    "hostmask": "net_hostmask: inet > inet",
    "broadcast": "net_broadcast: inet > inet",
    "abbrev": "net_abbrev: inet > text",
    "set_masklen": "net_set_bits: inet int4 > inet | net_set_cidr_bits: cidr int4 > cidr",
    "inet_same_family": "net_alike: inet inet > bool",
    "inet_merge": "net_merge: inet inet > cidr",
    "trunc": "mac_trunc: macaddr > macaddr; macaddr8 > macaddr8",
    "pg_lsn": "lsn_of: numeric > pg_lsn",
    "pg_size_bytes": "size_read: text > int8",
    "macaddr8_set7bit": "mac_local: macaddr8 > macaddr8",
}

#: Casts between types that a function computes, by source and target.
CASTS: Final[dict[tuple[str, str], str]] = {
    ("bit", "int4"): "bits_int4",
    ("bit", "int8"): "bits_int8",
    ("inet", "cidr"): "net_cidr",
    ("cidr", "inet"): "net_inet",
    ("macaddr", "macaddr8"): "mac_longer",
    ("macaddr8", "macaddr"): "mac_shorter",
    ("int4", "money"): "money_whole",
    ("int8", "money"): "money_whole",
    ("numeric", "money"): "money_rounded",
    ("money", "numeric"): "money_numeric",
    ("hstore", "json"): "hs_json",
    ("hstore", "jsonb"): "hs_json",
    ("array", "hstore"): "hs_of_array",
    ("shaped", "hstore"): "hs_of_shaped",
    **{(range_, name): "multirange_of" for name, range_ in MULTIRANGES.items()},
}

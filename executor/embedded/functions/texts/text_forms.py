"""Types whose values are texts in their own form, read by functions of the engine (``catalog.values.forms``).

Owns: ``FUNCTIONS``: ``form_*`` for each such type, the output form of xml, and sort keys (``opaque.KEYED``); and
``STATEMENTS``, ``ms_lsn_*``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from catalog.values.forms import places
from catalog.values.forms.addresses import address, address_ordered
from catalog.values.forms.numbers import read_unsigned
from catalog.values.forms.sizes import read_size
from catalog.values.forms.xmls import shown_xml
from catalog.values.opaque import FORMED, canonical
from catalog.values.types import INTERNAL
from executor.embedded.functions.batches import Functions


def _reader(name: str) -> Callable[[str], str]:
    return partial(canonical, name)


def _unsigned(name: str) -> Callable[[str], int]:
    return lambda text: read_unsigned(text, name)


FUNCTIONS: Final[Functions] = {
    **{f"form_{name}": (_reader(name), "VARCHAR") for name in FORMED | INTERNAL},
    **{f"form_{name}": (_unsigned(name), "BIGINT") for name in ("xid", "cid", "xid8")},
    "xml_shown": (shown_xml, "VARCHAR"),
    "net_order": (lambda text: address(text).order(), "VARCHAR"),
    "net_ordered": (lambda key: address_ordered(key).inet(), "VARCHAR"),
    **{name: (function, "VARCHAR") for name, function in places.ORDERS.items()},
    "size_read": (read_size, "BIGINT"),
}

#: Log positions as numbers, checked in hugeints (pg_lsn.c).
STATEMENTS: Final = """
CREATE MACRO ms_lsn(x) AS CAST('0x' || split_part(x, '/', 1) AS HUGEINT) * 4294967296
    + CAST('0x' || split_part(x, '/', 2) AS HUGEINT);
CREATE MACRO ms_lsn_at(n) AS CASE WHEN n IS NULL THEN NULL
    WHEN n NOT BETWEEN 0 AND 18446744073709551615 THEN error('!22023!pg_lsn out of range')
    ELSE format('{:X}/{:X}', CAST(n // 4294967296 AS BIGINT), CAST(n % 4294967296 AS BIGINT)) END;
CREATE MACRO ms_lsn_of(n) AS ms_lsn_at(CAST(n AS HUGEINT));
CREATE MACRO ms_lsn_add(x, n) AS ms_lsn_at(CAST(CAST(ms_lsn(x) AS DECIMAL(20, 0)) + n AS HUGEINT));
CREATE MACRO ms_lsn_added(n, x) AS ms_lsn_add(x, n);
CREATE MACRO ms_lsn_sub(x, n) AS ms_lsn_at(CAST(CAST(ms_lsn(x) AS DECIMAL(20, 0)) - n AS HUGEINT));
CREATE MACRO ms_lsn_distance(x, y) AS CAST(ms_lsn(x) - ms_lsn(y) AS DECIMAL(20, 0));
"""

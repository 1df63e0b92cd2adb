"""Texts with a form of their own, read by functions of the engine (``catalog.forms``).

Owns: ``FUNCTIONS``: ``form_*`` of each such type, an xml as it is shown, and keys of orders (``opaque.KEYED``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from catalog.forms import places
from catalog.forms.addresses import address, address_ordered
from catalog.forms.numbers import read_unsigned
from catalog.forms.xmls import shown_xml
from catalog.opaque import FORMED, canonical
from catalog.types import INTERNAL
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
}

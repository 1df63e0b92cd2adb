"""Types that Arrow carries as texts in one form (``catalog.values.forms``), and the operations refused for them.

Owns: ``canonical``, this form; which types have no equality or no order in PostgreSQL (42883), and for which ones these
differ from those of their texts (0A000). Types that only PostgreSQL itself writes (access control lists, trees) have no
input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.forms import addresses, bits, geometry, hstores, lexemes, places, xmls
from catalog.values.nested_types import holds
from catalog.values.types import ARRAYS, DISPLAY, GEOMETRIC, INTERNAL, VECTORS, SqlType

_READERS: Final[dict[str, Callable[[str], str]]] = {
    **addresses.READERS,
    **bits.READERS,
    **geometry.READERS,
    **hstores.READERS,
    **lexemes.READERS,
    **places.READERS,
    **xmls.READERS,
    "refcursor": str,
}
#: Types with a form of their own that clients can write.
FORMED: Final = frozenset(_READERS)
#: Types without equality and order in PostgreSQL.
_UNEQUAL: Final = GEOMETRIC | frozenset(
    ("json", "jsonpath", "xml", "pg_snapshot", "txid_snapshot", "refcursor", "gtsvector")
)
#: Types without order in PostgreSQL.
_UNSORTED: Final = _UNEQUAL | frozenset(("xid", "cid", "aclitem"))
#: Types that sort like texts that a function computes from them (``planner.bind.conversion.carried_types``).
KEYED: Final = {"inet": "net", "cidr": "net", "pg_lsn": "lsn", "tid": "tid", "hstore": "hs"}
#: Types that do not sort like their carriers.
_UNORDERED: Final = frozenset(("tsvector", "tsquery", *KEYED))
#: Types of which different values may have the same text.
_ALIKE: Final = frozenset(("tsquery",))


def canonical(kind: str, text: str) -> str:
    """A value's text in output form. Raises 22P02 and similar errors, and 0A000 for a type without input."""
    if kind in INTERNAL:
        raise SqlError("0A000", f"cannot accept a value of type {kind}")
    read = _READERS.get(kind)
    return text if read is None else read(text)


Position = Callable[[], int | None]


def _nowhere() -> None:
    return None


def has_order(name: str) -> bool:
    """Whether values of a type with this name sort like their texts, or have a sort key."""
    return name in KEYED or (name not in _UNORDERED and name not in ARRAYS and name not in VECTORS and name != "record")


def refuse_order(kind: SqlType, what: str, position: Position = _nowhere) -> None:
    """Raises 0A000 for sorting by values that neither sort like their texts nor have a sort key.

    ``position`` finds the place in the statement, which takes longer than the check; the same applies to the functions
    below.
    """
    if kind.name not in KEYED and holds(kind, lambda found: found.name in _UNORDERED):
        raise unsupported(f"{what} of values of type {kind}", "Order their texts: cast them to text.", position())


def check_equality(kind: SqlType, position: Position = _nowhere) -> None:
    """Raises 42883 if a type has no equality in PostgreSQL, and 0A000 if its equality differs from that of the
    texts."""
    if holds(kind, lambda found: found.name in _UNEQUAL):
        raise SqlError("42883", f"could not identify an equality operator for type {_shown(kind)}", position=position())
    if holds(kind, lambda found: found.name in _ALIKE):
        raise unsupported(f"equality of values of type {kind}", "Compare their texts: cast them to text.", position())


def check_sorted(kind: SqlType, what: str, position: Position = _nowhere) -> None:
    """Raises 42883 if a type has no order in PostgreSQL. ``what`` is the missing object: an ordering operator or a
    comparison function."""
    if holds(kind, lambda found: found.name in _UNSORTED):
        hint = "Use an explicit ordering operator or modify the query." if what == "an ordering operator" else None
        raise SqlError("42883", f"could not identify {what} for type {_shown(kind)}", hint=hint, position=position())


def _shown(kind: SqlType) -> str:
    return DISPLAY.get(kind.name, str(kind))

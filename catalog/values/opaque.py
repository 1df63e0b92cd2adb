"""Types that Arrow carries as text in one written form (``catalog.values.forms``), and what is refused of them.

Owns: ``canonical``, their one written form; which types' values have no equality or no order in PostgreSQL (42883), and
which ones have an order or an equality that is not that of their texts (0A000). Types that only PostgreSQL itself
writes (access control lists, trees) have no input.
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
#: Types with a form of their own that clients write.
FORMED: Final = frozenset(_READERS)
#: Types that PostgreSQL finds no equality of, and no order.
_UNEQUAL: Final = GEOMETRIC | frozenset(
    ("json", "jsonpath", "xml", "pg_snapshot", "txid_snapshot", "refcursor", "gtsvector")
)
#: Types that it finds no order of.
_UNSORTED: Final = _UNEQUAL | frozenset(("xid", "cid", "aclitem"))
#: Types whose order is that of texts that a function makes of them (``planner.bind.conversion.carried_types``).
KEYED: Final = {"inet": "net", "cidr": "net", "pg_lsn": "lsn", "tid": "tid", "hstore": "hs"}
#: Types whose order is not that of what carries them.
_UNORDERED: Final = frozenset(("tsvector", "tsquery", *KEYED))
#: Types of which different values have one text.
_ALIKE: Final = frozenset(("tsquery",))


def canonical(kind: str, text: str) -> str:
    """A value's text as PostgreSQL shows it. Raises 22P02 and its like, and 0A000 for a type that takes no text."""
    if kind in INTERNAL:
        raise SqlError("0A000", f"cannot accept a value of type {kind}")
    read = _READERS.get(kind)
    return text if read is None else read(text)


Position = Callable[[], int | None]


def _nowhere() -> None:
    return None


def has_order(name: str) -> bool:
    """Whether a type of this name surely has an order that is that of its texts, or of which there is a key."""
    return name in KEYED or (name not in _UNORDERED and name not in ARRAYS and name not in VECTORS and name != "record")


def refuse_order(kind: SqlType, what: str, position: Position = _nowhere) -> None:
    """Raises 0A000 for an order of such values that is not that of the texts, and of which there is no key.

    ``position`` finds the place in the statement, which takes longer than the check; so too in the others.
    """
    if kind.name not in KEYED and holds(kind, lambda found: found.name in _UNORDERED):
        raise unsupported(f"{what} of values of type {kind}", "Order their texts: cast them to text.", position())


def check_equality(kind: SqlType, position: Position = _nowhere) -> None:
    """Raises 42883 where PostgreSQL finds no equality of a type, and 0A000 where it is not that of the texts."""
    if holds(kind, lambda found: found.name in _UNEQUAL):
        raise SqlError("42883", f"could not identify an equality operator for type {_shown(kind)}", position=position())
    if holds(kind, lambda found: found.name in _ALIKE):
        raise unsupported(f"equality of values of type {kind}", "Compare their texts: cast them to text.", position())


def check_sorted(kind: SqlType, what: str, position: Position = _nowhere) -> None:
    """Raises 42883 where PostgreSQL finds no order of a type. ``what`` it looks for: an ordering operator, a comparison
    function.
    """
    if holds(kind, lambda found: found.name in _UNSORTED):
        hint = "Use an explicit ordering operator or modify the query." if what == "an ordering operator" else None
        raise SqlError("42883", f"could not identify {what} for type {_shown(kind)}", hint=hint, position=position())


def _shown(kind: SqlType) -> str:
    return DISPLAY.get(kind.name, str(kind))

"""Relations that depend on when they are read: by ``now()``, the time of the reader's transaction, or by the catalog,
which other statements change than those that change rows.

Engines never see the call. The session puts a literal in its place in a query; in the final relation of a continuous
view, which is planned once and read at many times, a parameter stands for it.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.types import DATE, TIMESTAMPTZ
from planner.algebra.nodes import Call, Cast, Parameter, Relation, Scan
from planner.algebra.walk import calls_of, contains, find, kinds_of, transform

#: The function that tells the time.
NOW: Final = "now"
_OF_TIME: Final = calls_of(NOW)
_CALLS: Final = kinds_of(Call)
_SCANS: Final = kinds_of(Scan)
_TIME: Final = Parameter(0, TIMESTAMPTZ)


def is_timed(relation: Relation) -> bool:
    """Whether a relation calls ``now()`` or reads the system catalogs."""
    if any(scan.kind == "system" for scan in find(relation, _SCANS)):
        return True
    return contains(relation, _OF_TIME) and any(item.function == NOW for item in find(relation, _CALLS))


def with_time_as_parameter(relation: Relation) -> Relation:
    """The relation with its first parameter, of type timestamptz, for each call of ``now()``."""

    def change(node: Any) -> Any:
        return _TIME if isinstance(node, Call) and node.function == NOW else node

    found: Relation = transform(relation, change, _OF_TIME)
    return found


def at_one_time(relation: Relation) -> Relation:
    """The relation with the date of now() for CURRENT_DATE, so that one function tells the time."""

    def change(node: Any) -> Any:
        if isinstance(node, Call) and node.function == "current_date":
            return Cast(Call(NOW, (), TIMESTAMPTZ), DATE)
        return node

    found: Relation = transform(relation, change, calls_of("current_date"))
    return found

"""Whether the TimeZone setting may change what a program computes."""

from __future__ import annotations

from typing import Final

from catalog.nesting import holds
from catalog.types import SqlType
from planner.program import Program
from planner.retargeting import relations_of
from planner.rules.support import volatility
from planner.walk import Node, walk

#: Types whose values are read, written and compared with others by that setting.
_ZONED: Final = frozenset(("timestamptz", "timetz", "tstzrange", "tstzmultirange"))


def depends_on_zone(program: Program) -> bool:
    """Whether it has values of such types, or calls what is only stable. Where it has, that may still be of no use."""
    relations = relations_of(program)
    return any(volatility(relation) != "immutable" or any(map(_is_zoned, walk(relation))) for relation in relations)


def _is_zoned(node: Node) -> bool:
    kind = getattr(node, "type", None)
    return isinstance(kind, SqlType) and holds(kind, lambda found: found.name in _ZONED)

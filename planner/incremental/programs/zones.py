"""What a view's program computes is its own time zone's, also where it stands in a program of another TimeZone setting.

final over state(...)     ->     in zone Asia/Tokyo (final over state(...))
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from catalog.values.nested_types import holds
from catalog.values.types import SqlType
from planner.algebra.construction import volatility
from planner.algebra.nodes import InZone, Relation
from planner.algebra.walk import Node, walk
from planner.incremental.programs.program import Path, Program

#: Types whose values are read, written and compared with others by that setting.
_ZONED: Final = frozenset(("timestamptz", "timetz", "tstzrange", "tstzmultirange"))


def in_zone(program: Program, zone: str) -> Program:
    """The program, whose relations stay what they are in a time zone, whatever the setting."""
    return replace(
        program,
        paths=tuple(_path_in(path, zone) for path in program.paths),
        final=_relation_in(program.final, zone),
    )


def _path_in(path: Path, zone: str) -> Path:
    statements = (replace(item, relation=_relation_in(item.relation, zone)) for item in path.statements)
    return replace(path, statements=tuple(statements))


def _relation_in(relation: Relation, zone: str) -> Relation:
    return InZone(relation, zone) if depends_on_zone(relation) else relation


def depends_on_zone(relation: Relation) -> bool:
    """Whether it has values of such types, or calls what is only stable. Where it has, that may still be of no use."""
    return volatility(relation) != "immutable" or any(map(_is_zoned, walk(relation)))


def _is_zoned(node: Node) -> bool:
    kind = getattr(node, "type", None)
    return isinstance(kind, SqlType) and holds(kind, lambda found: found.name in _ZONED)

"""Labels of enums that a continuous view writes as text.

A value of an enum is kept as its label's place, which nothing changes; its text is looked up among the labels that
there are. A program is of the view's creation, so what it looks up is given the type as it is now: a label that was
added since belongs to rows that came since. Labels in a state stay what they were, and must not be renamed.

    state::text     ->     state::state (as declared now)::text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from catalog.values.nested_types import enum_of, redeclared
from catalog.values.types import SqlType
from planner.algebra.nodes import AggregateCall, Call, Cast, Relation, Scalar, WindowCall
from planner.algebra.walk import Node, transform, walk
from planner.incremental.programs.program import Program


def shows(node: object) -> bool:
    """Whether an expression makes text of an enum's values."""
    return writes(node, lambda kind: enum_of(kind) is not None)


def writes(node: object, is_carried: Callable[[SqlType], bool]) -> bool:
    """Whether an expression makes text, or values of another type, of such whose carriers do not tell their text."""
    match node:
        case Cast(argument=argument, type=kind):
            return is_carried(argument.type) and not is_carried(kind)
        case Call() | AggregateCall() | WindowCall():
            return _is_written(node.type) and any(is_carried(item.type) for item in node.arguments)
        case _:
            return False


def _is_written(kind: SqlType) -> bool:
    kind = kind.element or kind
    return kind.category == "S" or kind.name in ("json", "jsonb")


def shown(relations: Iterable[Relation]) -> tuple[SqlType, ...]:
    """The enums of which relations make text."""
    found: dict[int, SqlType] = {}
    for node in (item for relation in relations for item in walk(relation) if shows(item)):
        for argument in _arguments(node):
            kind = argument.type.element or argument.type
            if kind.enum is not None:
                found.setdefault(kind.enum.oid, kind)
    return tuple(found.values())


def _arguments(node: Node) -> tuple[Scalar, ...]:
    if isinstance(node, Cast):
        return (node.argument,)
    assert isinstance(node, Call | AggregateCall | WindowCall)
    return node.arguments


def labels_of(program: Program) -> tuple[tuple[SqlType, ...], tuple[int, ...]]:
    """The enums of which a program makes text, and the oids of those whose text is in its states or static results."""
    statements = [statement.relation for path in program.paths for statement in path.statements]
    kept = shown([*statements, *(static.relation for static in program.statics)])
    oids = tuple(kind.enum.oid for kind in kept if kind.enum is not None)
    return shown([*statements, *(static.relation for static in program.statics), program.final]), oids


def with_labels(program: Program, labels: tuple[SqlType, ...]) -> Program:
    """The program that looks up labels as enums are declared now."""
    paths = tuple(
        replace(
            path,
            statements=tuple(replace(item, relation=_relabelled(item.relation, labels)) for item in path.statements),
        )
        for path in program.paths
    )
    statics = tuple(
        replace(item, relation=_relabelled(item.relation, labels)) if item.arrival else item for item in program.statics
    )
    return replace(program, statics=statics, paths=paths, final=_relabelled(program.final, labels))


def _relabelled(relation: Relation, labels: tuple[SqlType, ...]) -> Relation:
    def current(scalar: Scalar) -> Scalar:
        kind = scalar.type
        for label in labels:
            if label.enum is not None:
                kind = redeclared(kind, label.enum)
        return scalar if kind == scalar.type else Cast(scalar, kind)

    def change(node: Any) -> Any:
        if not shows(node):
            return node
        if isinstance(node, Cast):
            return replace(node, argument=current(node.argument))
        return replace(node, arguments=tuple(map(current, node.arguments)))

    found: Relation = transform(relation, change)
    return found

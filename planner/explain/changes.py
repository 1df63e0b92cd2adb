"""Changes of rows as text and as JSON for EXPLAIN: what is done to which table, above the plan of its rows.

Owns: PostgreSQL's words for them (ExplainModifyTarget, show_modifytable_info). The plans are
``planner.explain.plans``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from planner.algebra.nodes import Relation
from planner.explain.plans import explain_relation, relation_json
from planner.statements.statement import Delete, Insert, Merge, Modifying, Query, RowChange, RowStatement, Update

#: The plan of a relation as it runs.
Planned = Callable[[Relation], Relation]


def relations_of(statement: RowStatement) -> Iterator[Relation]:
    """The relations that a statement evaluates first, in the order of its parts."""
    match statement:
        case Query(relation=relation) | Insert(source=relation):
            yield relation
        case Update(relation=relation) | Delete(relation=relation) | Merge(relation=relation):
            yield relation
        case Modifying(statements=parts):
            for part in parts:
                yield from relations_of(part)


def explain_change(statement: RowStatement, planned: Planned) -> list[str]:
    """A statement's plan tree, a line per operator and attribute; parts in WITH come below the rest, by their leaf."""
    match statement:
        case Query(relation=relation):
            return explain_relation(planned(relation))
        case Modifying(parts=parts, main=main):
            lines = explain_change(main, planned)
            for name, part in parts:
                lines += [f"  CTE {name}", *_below(explain_change(part, planned), 4)]
            return lines
        case _:
            (relation,) = relations_of(statement)
            attributes = [f"  {name}: {text}" for name, text in _attributes(statement)]
            title = f"{type(statement).__name__} on {statement.target.name}"
            return [title, *attributes, *_below(explain_relation(planned(relation)), 2)]


def _below(lines: list[str], indent: int) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"{' ' * indent}{'    ' if index else '->  '}{line}"


def change_json(statement: RowStatement, planned: Planned) -> dict[str, Any]:
    """The change in the form of EXPLAIN (FORMAT JSON)."""
    match statement:
        case Query(relation=relation):
            return relation_json(planned(relation))
        case Modifying(parts=parts, main=main):
            value = change_json(main, planned)
            below = [{"Subplan Name": f"CTE {name}", **change_json(part, planned)} for name, part in parts]
            return {**value, "Plans": [*below, *value.get("Plans", ())]}
        case _:
            (relation,) = relations_of(statement)
            return {
                "Node Type": "ModifyTable",
                "Operation": type(statement).__name__,
                "Relation Name": statement.target.name,
                **dict(_attributes(statement)),
                "Plans": [relation_json(planned(relation))],
            }


def _attributes(statement: RowChange) -> Iterator[tuple[str, str]]:
    if isinstance(statement, Insert) and statement.conflict is not None:
        yield "Conflict Resolution", "NOTHING" if statement.conflict.update is None else "UPDATE"
        names = [key.name for key in statement.conflict.keys]
        if names:
            yield "Conflict Arbiter Indexes", ", ".join(names)

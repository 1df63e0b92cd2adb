"""Keeps equal outer values that print differently (``1 mon`` and ``30 days``, 0.0 and -0.0) apart in correlated
subqueries.

    Filter(R, f((SELECT g(r.i) FROM S)))  =  Filter(Project(R, i, i::text AS t), f((SELECT g(i where t) FROM S)))

An engine that unnests a correlated subquery computes it once for all outer values that are equal. With their texts
among what the subquery uses, rows that show otherwise are not taken for one another. ``i where t`` is i itself: both
are NULL for the same rows. What a subquery only compares needs no text.

For the printer, once no rule runs any more: a projection that were merged into what reads it would put the cast
into the subquery.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.values.nested_types import holds
from catalog.values.types import BOOL, TEXT, SqlType
from planner.algebra.construction import Fresh, keep_columns, outermost_subqueries, shown_columns
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    InSubquery,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
)
from planner.algebra.walk import (
    SUBQUERY_KINDS,
    Node,
    children,
    free_columns,
    inputs,
    is_relation,
    kinds_of,
    replace_columns,
    transform,
    transform_relations,
)

_SHOWN_OTHERWISE: Final = frozenset(("interval", "float4", "float8"))


def has_equal_values(kind: SqlType) -> bool:
    """Whether values of a type may be equal and print differently."""
    return holds(kind, lambda found: found.name in _SHOWN_OTHERWISE)


def uses_equal_values(node: Node) -> bool:
    """Whether a node is or has (LATERAL) a subquery that shows outer values of such a type."""
    match node:
        case ScalarSubquery(relation=relation) | Exists(relation=relation) | InSubquery(relation=relation):
            outer = free_columns(relation)
        case Join(left=left, right=relation):
            outer = frozenset(left.columns)
        case _:
            return False
    return any(has_equal_values(column.type) for column in outer & shown_columns(relation))


def separate_outer_values(relation: Relation) -> Relation:
    """An equal relation whose subqueries an engine may compute once for equal outer values."""
    fresh = Fresh(relation)
    return transform_relations(relation, lambda node: _separated(node, fresh), SUBQUERY_KINDS | kinds_of(Join))


def _separated(node: Any, fresh: Fresh) -> Any:
    """One operator, whose inputs are rewritten already."""
    if not is_relation(node):
        return node
    given = {column for below in inputs(node) for column in below.columns if has_equal_values(column.type)}
    if not given:
        return node
    own = [item for child in children(node) if not is_relation(child) for item in outermost_subqueries(child)]
    shown = set().union(*(shown_columns(item.relation) for item in own)) & given
    if isinstance(node, Join):
        shown |= shown_columns(node.right) & given.intersection(node.left.columns)
    found = sorted(shown, key=lambda column: column.id)
    texts = {column: fresh.column("shown", TEXT) for column in found}
    return keep_columns(_with_texts(node, own, texts), node.columns) if texts else node


def _with_texts(node: Any, own: list[Any], texts: dict[Column, Column]) -> Any:
    """The operator with texts among its inputs' columns; its subqueries read the outer values with these texts."""
    values = {column: _where(column, text) for column, text in texts.items()}
    wanting = NodeSet(own)

    def change(item: Any) -> Any:
        return replace(item, relation=replace_columns(item.relation, values)) if item in wanting else item

    node = transform(node, change)
    if not isinstance(node, Join):
        return replace(node, input=_beside(node.input, texts))
    right = replace_columns(node.right, {column: values[column] for column in texts if column in node.left.columns})
    return replace(node, left=_beside(node.left, texts), right=_beside(right, texts))


def _where(column: Column, text: Column) -> Scalar:
    """A column's value, made dependent on its text."""
    is_there = Call("is_not_null", (ColumnRef(text),), BOOL)
    return Case(((is_there, ColumnRef(column)),), Literal(None, column.type), column.type)


def _beside(relation: Relation, texts: dict[Column, Column]) -> Relation:
    """A relation with the texts of its own columns added."""
    found = tuple((texts[column], Cast(ColumnRef(column), TEXT)) for column in relation.columns if column in texts)
    passed = tuple((column, ColumnRef(column)) for column in relation.columns)
    return Project(relation, (*passed, *found)) if found else relation

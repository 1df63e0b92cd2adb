"""WITH RECURSIVE: a query over its own rows becomes a fixpoint.

Owns: the form that such a query must have (base UNION [ALL] step), its columns, and where its name may stand in the
step (42P19). https://www.postgresql.org/docs/15/queries-with.html#QUERIES-WITH-RECURSIVE
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import SetOperation as SetKind

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import NUMERIC, QUOTIENT, SqlType, array, numeric, record, row
from planner.algebra.nodes import Aggregate, Fixpoint, Join, Relation, SetOperation, Working
from planner.algebra.walk import inputs, walk
from planner.bind.conversion.coercion import common_type
from planner.bind.conversion.query_columns import retyped
from planner.bind.lookup.type_names import display
from planner.bind.scalars.select_lists import item_nodes
from planner.bind.state.environment import Binding, Cte
from planner.bind.state.from_names import BoundQuery
from planner.bind.state.with_names import Itself, Known, Refused
from planner.bind.with_queries.cte_columns import cte_names
from planner.bind.with_queries.search_and_cycle import BASE, added_names, traced
from planner.statements.statement import Output

#: Sides of a join that keep all of their rows' partners: there the name may stand.
_INNER_SIDES: Final = {"inner": ("left", "right"), "left": ("left",), "right": ("right",), "full": ()}


def bind_recursive(binding: Binding, cte: Cte) -> BoundQuery:
    """One reference's copy of a WITH query that reads itself. Raises 42P19, 42804 and 0A000."""
    node, query, name = cte.node, cte.node.ctequery, cte.node.ctename
    _check_form(binding, node, query)
    level = cte.level if query.withClause is None else binding.binder.with_clause(cte.level, query.withClause)
    refused = Refused("42P19", f'recursive reference to query "{name}" must not appear within its non-recursive term')
    before = replace(level, ctes=level.ctes.also(name, refused))
    base = before.bind(query.larg)
    labels, added = cte_names(binding, node, base), added_names(node)
    if added:
        query = traced(binding, node, labels)
        known = replace(before, ctes=before.ctes.also(BASE, Known(base, labels)))
        base, labels = known.bind(query.larg), labels + added
    kinds = [_kept(column.type) for column in base.relation.columns]
    typmods = tuple(output.typmod for output in base.outputs)

    def stepped() -> tuple[Itself, BoundQuery]:
        columns = tuple(binding.column(label, kind) for label, kind in zip(labels, kinds, strict=True))
        itself = Itself(f"recursive_{columns[0].id if columns else 0}", columns, [], len(added), typmods)
        return itself, replace(level, ctes=level.ctes.also(name, itself)).bind(query.rarg, False)

    itself, step = stepped()
    pairs = zip(kinds, step.relation.columns, typmods, strict=False)
    if gaining := [place for place, (kind, column, mod) in enumerate(pairs) if mod == -1 and _gains(kind, column.type)]:
        found = [column.type for column in step.relation.columns]
        kinds = [_loosened(kind, found[place]) if place in gaining else kind for place, kind in enumerate(kinds)]
        itself, step = stepped()
    columns = itself.columns
    _check_places(name, step.relation, itself)
    _check_types(binding, node, query, base, step, kinds)
    relation = Fixpoint(
        itself.name,
        bool(query.all),
        retyped(binding, base.relation, kinds, [None] * len(kinds)),
        retyped(binding, step.relation, kinds, [None] * len(kinds)),
        columns,
    )
    outputs = (Output(item.name, item.type, typmod) for item, typmod in zip(columns, typmods, strict=True))
    return BoundQuery(relation, tuple(outputs))


def _check_form(binding: Binding, node: Any, query: Any) -> None:
    if query.op != SetKind.SETOP_UNION:
        form = "does not have the form non-recursive-term UNION [ALL] recursive-term"
        raise SqlError("42P19", f'recursive query "{node.ctename}" {form}', position=binding.position(node))
    clauses = (
        (query.sortClause, "ORDER BY"),
        (query.limitOffset, "OFFSET"),
        (query.limitCount, "LIMIT"),
        (query.lockingClause, "FOR UPDATE/SHARE"),
    )
    for clause, words in clauses:
        if clause:
            first = clause[0].node if isinstance(clause, tuple) and words == "ORDER BY" else clause
            message = f"{words} in a recursive query is not implemented"
            raise SqlError("0A000", message, position=binding.start(first))


def _kept(kind: SqlType) -> SqlType:
    """A column's type for all rounds: a numeric has room to grow, but no new decimals."""
    if kind.name == "array" and kind.element is not None:
        return array(_kept(kind.element))
    if kind.row is not None and not kind.row.oid:
        return row(kind.row.over(_kept))
    return numeric(38, kind.scale) if kind.name == "numeric" else kind


def _loosened(kept: SqlType, kind: SqlType) -> SqlType:
    """A type with numerics that have as many decimals as those of another one are computed with."""
    if kept.element is not None and kind.element is not None:
        return replace(kept, element=_loosened(kept.element, kind.element))
    if kept.row is not None and kind.row is not None and not kept.row.oid:
        pairs = zip(kept.row.fields, kind.row.fields, strict=True)
        return record(*((name, _loosened(ours, theirs)) for (name, ours), (_, theirs) in pairs))
    if not _gains(kept, kind):
        return kept
    return NUMERIC if kind.scale <= NUMERIC.scale else SqlType("numeric", QUOTIENT)


def _gains(kept: SqlType, kind: SqlType) -> bool:
    """Whether numerics of a type have decimals that those of the kept one have not."""
    if kept.element is not None and kind.element is not None:
        return _gains(kept.element, kind.element)
    if kept.row is not None and kind.row is not None:
        pairs = zip(kept.row.fields, kind.row.fields, strict=False)
        return any(_gains(ours, theirs) for (_, ours), (_, theirs) in pairs)
    return kept.name == kind.name == "numeric" and kind.scale > kept.scale


def _check_types(
    binding: Binding, node: Any, query: Any, base: BoundQuery, step: BoundQuery, kinds: Sequence[SqlType]
) -> None:
    """The step's columns must be the base's. Raises 42601 and 42804."""
    if len(step.outputs) != len(kinds):
        place = next(iter(getattr(query.rarg, "targetList", None) or ()), None)
        message = "each UNION query must have the same number of columns"
        raise SqlError("42601", message, position=binding.position(place))
    places, others = (item_nodes(side, len(kinds)) for side in (query.larg, query.rarg))
    for index, (kind, column) in enumerate(zip(kinds, step.relation.columns, strict=True)):
        place, other = places[index], binding.start(others[index])
        overall = common_type([kind, column.type], "UNION", lambda _, at=other: at)  # type: ignore[misc]
        is_declared = base.outputs[index].typmod not in (-1, step.outputs[index].typmod)
        if overall.name != kind.name or display(overall) != display(kind) or is_declared:
            shown = str(base.relation.columns[index].type) if is_declared else display(kind)
            message = (
                f'recursive query "{node.ctename}" column {index + 1} has type {shown} in non-recursive term'
                f" but type {display(overall)} overall"
            )
            hint = "Cast the output of the non-recursive term to the correct type."
            raise SqlError("42804", message, hint=hint, position=binding.start(place))
        if _gains(kind, column.type):
            instead = "Cast both terms' columns to a numeric with a scale, or to double precision."
            raise unsupported("a recursive query whose numerics gain decimals", instead, binding.position(node))


def _check_places(name: str, step: Relation, itself: Itself) -> None:
    """The name stands once, and where each round may look at the newest rows alone. Raises 42P19."""
    found = [item for item in walk(step) if isinstance(item, Working) and item.name == itself.name]
    message = f'recursive reference to query "{name}" must not appear'
    if len(found) > 1:
        raise SqlError("42P19", f"{message} more than once", position=itself.places[1])
    if not found:
        return
    path = _path(step, found[0])
    if path is None:
        raise SqlError("42P19", f"{message} within a subquery", position=itself.places[0])
    for operator, below in path:
        if isinstance(operator, Aggregate) and operator.aggregates:
            raise SqlError("42P19", "aggregate functions are not allowed in a recursive query's recursive term")
        if isinstance(operator, Join) and not any(
            getattr(operator, side) is below for side in _INNER_SIDES.get(operator.kind, ("left",))
        ):
            raise SqlError("42P19", f"{message} within an outer join", position=itself.places[0])
        if isinstance(operator, SetOperation) and operator.kind != "union":
            raise SqlError("42P19", f"{message} within {operator.kind.upper()}", position=itself.places[0])


def _path(root: Relation, wanted: Relation) -> list[tuple[Relation, Relation]] | None:
    """Operators from the root down to a relation, each with its input on the way; None if it is in an expression."""
    stack: list[tuple[Relation, list[tuple[Relation, Relation]]]] = [(root, [])]
    while stack:
        node, above = stack.pop()
        if node is wanted:
            return above
        stack.extend((below, [*above, (node, below)]) for below in inputs(node))
    return None

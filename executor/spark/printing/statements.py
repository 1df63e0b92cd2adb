"""A job's statements as Spark SQL, or the reason why Spark does not run them.

Owns: the outermost SELECT of each state's run (columns c<id> in exactly the state's types, rows merged by key), and the
columns of the leaves that a job reads. The printed form is plain data for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from executor.printing.nodes import column_name, leaf_name
from executor.spark.frames import Frame
from executor.spark.printing.delegation import Function, functions_of
from executor.spark.printing.dialect import SparkPrinter, has_scalar_subquery
from executor.spark.printing.in_subqueries import three_valued
from executor.spark.printing.recursions import Loop, without_loops
from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.nodes import Aggregate, AggregateCall, ColumnRef, Delta, Filter, Join, Project, Relation, Snapshot
from planner.algebra.walk import Node, transform, walk
from planner.incremental.programs.program import State, Statement


class View(Struct, frozen=True):
    """A leaf: its name in SQL, the trace's name or the oid of a delta, and the columns read with Spark's types."""

    name: str
    source: str | int
    columns: tuple[tuple[str, str], ...]


class Printed(Struct, frozen=True):
    """What the driver gets of a job: SQL by state, the views that the SQL reads, the functions that it calls, and
    recursions to be run before. ``relations`` are what the SQL was printed from.
    """

    statements: tuple[tuple[str, str], ...]
    views: tuple[View, ...]
    functions: tuple[Function, ...] = ()
    loops: tuple[Frame, ...] = ()
    relations: tuple[Relation, ...] = ()


def print_statements(
    statements: Sequence[Statement], states: Sequence[State], printer: Callable[[], SparkPrinter] = SparkPrinter
) -> Printed:
    """All statements. Raises 0A000 naming what Spark does not compute as PostgreSQL does."""
    by_name = {state.name: state for state in states}
    for item in (item for statement in statements for item in walk(statement.relation)):
        if isinstance(item, Snapshot) and item.trace in by_name:
            raise unsupported("a statement that reads a state")
    relations: dict[str, list[Relation]] = {}
    loops: list[Loop] = []
    for statement in statements:
        relation, found = without_loops(printer().prepared(statement.relation))
        relations.setdefault(statement.target, []).append(relation)
        loops.extend(found)
    printed = tuple((name, _run(by_name[name], items, printer)) for name, items in relations.items())
    prepared = [relation for items in relations.values() for relation in items]
    prepared += [relation for loop in loops for relation in (loop.base, loop.step)]
    rounds = tuple(_loop(item, printer) for item in loops)
    return Printed(printed, _views(statements, printer()), functions_of(prepared), rounds, tuple(prepared))


def reason(statements: Sequence[Statement], states: Sequence[State]) -> str | None:
    """None when all of it prints; else why not, for a log line: 'function upper is not supported on Spark'."""
    try:
        print_statements(statements, states)
    except SqlError as error:
        return f"{error.message} on Spark"
    return None


def _run(state: State, relations: list[Relation], printer: Callable[[], SparkPrinter]) -> str:
    """The rows that a job adds to one state."""
    arms = [_arm(state, relation, printer()) for relation in relations]
    union = " UNION ALL ".join(arms)
    if state.kind == "concatenate" or (len(arms) == 1 and _is_merged(state, relations[0])):
        return union
    if state.kind == "distinct":
        return f"SELECT DISTINCT * FROM ({union})"
    return _merged(state, union, printer())


def _loop(loop: Loop, printer: Callable[[], SparkPrinter]) -> Frame:
    """A recursion with the SQL of its rounds."""
    state = State(loop.name, "concatenate", loop.columns, ())
    return loop.printed(*(_arm(state, relation, printer()) for relation in (loop.base, loop.step)))


def _arm(state: State, relation: Relation, printer: SparkPrinter) -> str:
    """One statement's rows, named and typed as the state's."""
    pairs = zip(relation.columns, state.columns, strict=True)
    outputs = ", ".join(
        f"CAST(`{column_name(old)}` AS {printer.name_of(new.type)}) AS `{column_name(new)}`" for old, new in pairs
    )
    return f"SELECT {outputs} FROM ({printer.print_relation(three_valued(_filtered_joins(relation)))}) AS `run`"


def _filtered_joins(relation: Relation) -> Relation:
    """Inner joins with what has a scalar subquery in their conditions as a filter above them: Spark takes it there."""

    def change(node: Node) -> Node:
        if not isinstance(node, Join) or node.kind != "inner" or node.predicate is None:
            return node
        parts = list(conjuncts(node.predicate))
        above = conjunction(part for part in parts if has_scalar_subquery(part))
        if above is None:
            return node
        return Filter(
            replace(node, predicate=conjunction(part for part in parts if not has_scalar_subquery(part))), above
        )

    found: Relation = transform(relation, change)
    return found


def _merged(state: State, union: str, printer: SparkPrinter) -> str:
    """GROUP BY the key, by the state's own merge."""
    merge = dict(state.merge)
    outputs = []
    for column in state.columns:
        name = column_name(column)
        value = f"`{name}`" if column not in merge else _merge_call(printer, merge[column])
        outputs.append(f"CAST({value} AS {printer.name_of(column.type)}) AS `{name}`")
    keys = ", ".join(f"`{column_name(column)}`" for column in state.key)
    return f"SELECT {', '.join(outputs)} FROM ({union}) AS `runs`" + (f" GROUP BY {keys}" if keys else "")


def _merge_call(printer: SparkPrinter, call: AggregateCall) -> str:
    return printer.print_scalar(call)


def _is_merged(state: State, relation: Relation) -> bool:
    """Whether the relation's own grouping gives each key of the state once."""
    outputs = dict(zip(state.columns, (ColumnRef(column) for column in relation.columns), strict=True))
    while isinstance(relation, Project):
        below = dict(relation.outputs)
        picked = {key: below[value.column] for key, value in outputs.items()}
        outputs = {key: value for key, value in picked.items() if isinstance(value, ColumnRef)}
        relation = relation.input
    if not isinstance(relation, Aggregate):
        return False
    keys = {outputs[column].column for column in state.key if column in outputs}
    return keys == {column for column, _ in relation.keys} and len(keys) == len(state.key)


def _views(statements: Sequence[Statement], printer: SparkPrinter) -> tuple[View, ...]:
    """Every leaf once, with all columns that some statement reads of it."""
    found: dict[tuple[str, str | int], dict[str, str]] = {}
    for statement in statements:
        for leaf in walk(statement.relation):
            if isinstance(leaf, Delta | Snapshot):
                key = leaf.trace if isinstance(leaf, Snapshot) else leaf.oid
                columns = found.setdefault((leaf_name(leaf), key), {})
                for column, source in zip(leaf.columns, leaf.sources, strict=True):
                    columns[source] = printer.name_of(column.type)
    return tuple(View(name, key, tuple(columns.items())) for (name, key), columns in found.items())

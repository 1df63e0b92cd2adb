"""ALTER TABLE as a write transaction does it: columns in place where it can be, else a table of new rows.

Owns: which of the two it is, the order of what follows from one statement, and the steps that the log record carries
so that recovery can repeat them. A column that is only dropped, renamed, or added with one value for all rows is done
in place; everything else is written anew and logged as rows.
"""

from __future__ import annotations

import json

from catalog.codec import encode
from catalog.objects import Table, subject
from catalog.values.errors import SqlError
from executor.printing.literals import literal_value
from executor.rows.row_shapes import schema_of
from executor.sql.arrival_guards import require_past_rows
from executor.sql.environment import Environment
from executor.tables.definitions.altering import Step, add_step
from executor.transactions.transaction import Transaction
from planner.algebra.construction import volatility
from planner.algebra.nodes import Call, Column, ColumnRef, Literal, Project, Relation, Scalar, Scan, Values
from planner.algebra.walk import used_columns, walk
from planner.statements.definitions import AlterTable


def alter_rows(session: Environment, transaction: Transaction, statement: AlterTable) -> str:
    """Gives the table its new definition and rows, and checks them: the change of the catalog for the log."""
    writer, table = transaction.writer(), statement.table
    if not statement.renames:
        writer.require_settled(statement.before, statement.tag)
        for target in _released(statement):
            writer.require_settled(writer.definitions[target], statement.tag)
    document = {"change": encode(table)}
    steps = None
    if statement.rows is not None and statement.before.columns:
        steps = _steps(session, transaction, statement.rows, table)
    require_past_rows(session.core, transaction, statement, is_in_place=steps is not None)
    if statement.rows is None:
        writer.define(table)
    elif steps is not None:
        writer.alter(table, steps)
        document["storage"] = [list(step) for step in steps]
    else:
        writer.rebuild(table, session.evaluated(statement.rows, transaction, schema_of(table)))
    if not statement.renames:
        writer.verify(statement.before, table, statement.rows is not None and steps is None)
    for name, relation in statement.checks:
        if writer.query(relation, {}, (), session.time_zone).num_rows:
            message = f'check constraint "{name}" of relation "{table.name}" is violated by some row'
            raise SqlError("23514", message, about=subject(table, constraint=name))
    return json.dumps(document)


def _released(statement: AlterTable) -> list[int]:
    """The tables to which a foreign key refers that is dropped alone, without a column of it."""
    table, columns = statement.table, {column.name for column in statement.table.columns}
    kept = {key.name for key in table.foreign_keys}
    dropped = (key for key in statement.before.foreign_keys if key.name not in kept)
    return [key.target for key in dropped if columns.issuperset(key.columns)]


def _steps(session: Environment, transaction: Transaction, rows: Relation, table: Table) -> tuple[Step, ...] | None:
    """The statement's changes in place; None where rows must be computed."""
    assert isinstance(rows, Project)
    assert isinstance(rows.input, Scan)
    names = dict(zip(rows.input.columns, rows.input.sources, strict=True))
    kept: list[Step] = []
    added: list[Step] = []
    left = set(names.values())
    for (_, scalar), definition in zip(rows.outputs, table.stored, strict=True):
        if isinstance(scalar, ColumnRef):
            old = names[scalar.column]
            left.discard(old)
            if old != definition.name:
                kept.append(("rename", old, definition.name))
        elif _is_one_value(scalar) and definition.name not in rows.input.sources:  # a key may be over the old one
            added.append(add_step(definition, _value(session, transaction, scalar)))
        else:
            return None
    if names and len(left) == len(names):  # a stored table keeps one column at any time
        return None
    return (*(("drop", name) for name in sorted(left)), *kept, *added)


def _is_one_value(scalar: Scalar) -> bool:
    # What a domain requires is required of rows alone.
    requires = any(isinstance(item, Call) and item.function == "require" for item in walk(scalar))
    return not used_columns(scalar) and volatility(scalar) != "volatile" and not requires


def _value(session: Environment, transaction: Transaction, scalar: Scalar) -> Literal:
    """A constant expression's value in the session."""
    if isinstance(scalar, Literal):
        return scalar
    row = Project(Values((), ((),)), ((Column(-1, "value", scalar.type), scalar),))
    found = transaction.writer().query(row, {}, (), session.time_zone)
    return Literal(literal_value(found.column(0)[0]), scalar.type)

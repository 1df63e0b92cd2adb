"""TABLESAMPLE: a random filter, or with REPEATABLE a filter by a hash of the row's identity.

Owns: its methods and errors. SYSTEM, which PostgreSQL applies to pages, is applied to rows, as BERNOULLI is.
https://www.postgresql.org/docs/15/sql-select.html#SQL-FROM
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, FLOAT8, INT8
from planner.algebra.nodes import ROW_ID, Call, Cast, ColumnRef, Filter, Literal, Relation, Scalar, Scan
from planner.bind.conversion.coercion import coerce
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment


def sampled(env: Environment, node: Any, relation: Relation) -> Relation:
    """The rows of a table that a RangeTableSample takes."""
    if not isinstance(relation, Scan) or relation.kind != "table":
        message = "TABLESAMPLE clause can only be applied to tables and materialized views"
        hint = "Take a share of the rows by a condition, as in WHERE id % 10 = 0."
        raise env.error("0A000", message, node.relation, hint)
    method = names_of(node.method)[-1]
    if method not in ("bernoulli", "system"):
        raise env.error("42704", f"tablesample method {method} does not exist", node)
    if len(node.args) != 1:
        raise env.error("2202H", f"tablesample method {method} requires 1 argument, not {len(node.args)}", node)
    share = Literal(_percentage(env, node.args[0]) / 100, FLOAT8)
    env.binding.volatile |= node.repeatable is None
    if node.repeatable is None:
        return Filter(relation, Call("lt", (Call("random", (), FLOAT8), share), BOOL))
    seed = _number(env, node.repeatable, "REPEATABLE")
    if isinstance(seed, Literal) and seed.value is None:
        raise SqlError("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null")
    identity = env.binding.column(ROW_ID, INT8, False)
    scan = replace(relation, columns=(*relation.columns, identity), sources=(*relation.sources, ROW_ID))
    chance = Call("hashed_chance", (ColumnRef(identity), seed), FLOAT8)
    return Filter(scan, Call("lt", (chance, share), BOOL))


def _number(env: Environment, node: Any, what: str) -> Scalar:
    scalar = env.bind(node)
    found = coerce(env.binding, scalar, FLOAT8, "assignment", node)
    if found is None:
        words = f"argument of {what} must be type double precision, not type {display(scalar.type)}"
        raise env.error_at("42804", words, node)
    return found


def _percentage(env: Environment, node: Any) -> float:
    found = _number(env, node, "TABLESAMPLE")
    while isinstance(found, Cast):
        found = found.argument
    if not isinstance(found, Literal):
        instead = "Give the percentage as a constant."
        raise unsupported("TABLESAMPLE of a computed share", instead, env.binding.position(node))
    if found.value is None:
        raise SqlError("2202H", "TABLESAMPLE parameter cannot be null")
    value = float(str(found.value))
    if not 0 <= value <= 100:
        raise SqlError("2202H", "sample percentage must be between 0 and 100")
    return value

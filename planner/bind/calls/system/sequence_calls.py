"""nextval, currval, lastval, setval, pg_get_serial_sequence, and pg_sleep, which has an effect as well.

Owns: their arguments. A sequence named by a constant is replaced by its oid; any other text is looked up when the
statement runs. ``executor.tables.statements.effect_calls`` makes the calls; no engine does.
"""

from __future__ import annotations

from typing import Any, Final

from pglast.ast import String

from catalog.objects import Sequence, Table
from catalog.values.errors import SqlError, undefined_table, unsupported
from catalog.values.identifiers import quote_name, split_name
from catalog.values.types import BOOL, FLOAT8, INT8, OID, TEXT, SqlType
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.conversion.coercion import coerce
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_named
from planner.bind.state.environment import Binding, Environment

VOID: Final = SqlType("void")
#: Least and greatest number of arguments.
_ARITIES: Final = {"nextval": (1, 1), "currval": (1, 1), "lastval": (0, 0), "setval": (2, 3), "pg_sleep": (1, 1)}


def sequence_named(binding: Binding, text: str, position: int | None) -> Sequence:
    """What a regclass text names. Raises 42P01, 42602 and 42809."""
    schema, name = split_name(text)
    try:
        found = require_named(binding, name, schema)
    except SqlError as error:
        error.position = position
        raise
    if not isinstance(found, Sequence):
        raise SqlError("42809", f'"{found.name}" is not a sequence')
    return found


def written_name(node: Any) -> tuple[str, Any] | None:
    """The text and node of 'name' or 'name'::regclass; None for anything else."""
    if type(node).__name__ == "TypeCast" and names_of(node.typeName.names)[-1] == "regclass":
        node = node.arg
    if type(node).__name__ == "A_Const" and isinstance(node.val, String):
        return str(node.val.sval), node
    return None


def is_sequence_call(name: str, count: int) -> bool:
    """Whether a function of this name and number of arguments is one of these."""
    least, greatest = _ARITIES.get(name, (1, 0))
    return least <= count <= greatest


def bind_sequence_call(env: Environment, name: str, node: Any) -> Scalar:
    """A call, which makes its statement volatile."""
    sleeps = name == "pg_sleep"
    arguments = [_sequence(env, node.args[0])] if node.args and not sleeps else []
    kinds, rest = ((FLOAT8,), node.args) if sleeps else ((INT8, BOOL), (node.args or ())[1:])
    for kind, place in zip(kinds, rest, strict=False):
        found = coerce(env.binding, env.bind(place), kind, "implicit", place)
        if found is None:
            raise env.error("42883", f"function {name} does not take these arguments", node)
        arguments.append(found)
    env.binding.volatile = True
    call = Call(name, tuple(arguments), VOID if sleeps else INT8)
    env.binding.remember(call, node, name)
    return call


def _sequence(env: Environment, node: Any) -> Scalar:
    """The oid of a sequence that is named by a constant, else the text that names it."""
    binding = env.binding
    written = written_name(node)
    if written is not None:
        found = sequence_named(binding, written[0], binding.position(written[1]))
        binding.depends_on[found.oid] = None
        return Literal(found.oid, OID)
    if type(node).__name__ == "TypeCast" and names_of(node.typeName.names)[-1] == "regclass":
        node = node.arg
    scalar = env.bind(node)
    if isinstance(scalar, Literal) and isinstance(scalar.value, int):
        return Literal(scalar.value, OID)
    name = coerce(binding, scalar, TEXT, "implicit", node)
    if name is None:
        raise unsupported("a sequence name that is not a text", position=binding.start(node))
    return name


def bind_serial_sequence(env: Environment, node: Any) -> Scalar:
    """pg_get_serial_sequence(table, column) of constants: the sequence that goes with a column, or NULL."""
    arguments = [env.bind(item) for item in node.args]
    values = [item.value for item in arguments if isinstance(item, Literal)]
    if len(values) < 2:
        instead = "Give both names as constants."
        raise unsupported("pg_get_serial_sequence() with a computed argument", instead, env.binding.position(node))
    if None in values:
        return Literal(None, TEXT)
    schema, name = split_name(str(values[0]))
    catalog = env.binding.context.catalog
    table = require_named(env.binding, name, schema)
    if not isinstance(table, Table):
        raise undefined_table(str(values[0]))
    if all(column.name != values[1] for column in table.columns):
        raise SqlError("42703", f'column "{values[1]}" of relation "{table.name}" does not exist')
    for sequence in catalog.owned(table.oid):
        if sequence.owner == (table.oid, values[1]):
            return Literal(f"{quote_name(sequence.schema)}.{quote_name(sequence.name)}", TEXT)
    return Literal(None, TEXT)

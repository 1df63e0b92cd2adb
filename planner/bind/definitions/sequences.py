"""CREATE SEQUENCE, ALTER SEQUENCE, and the sequences of serial and identity columns.

Owns: a sequence's options with PostgreSQL's defaults and errors (sequence.c, init_params), its owner, and the name and
default of a column with its own sequence. ``executor.tables.sequences`` has a sequence's value.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any, Final

from msgspec.structs import replace
from pglast.ast import A_Const, Integer

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Sequence, Table
from catalog.values.errors import SqlError
from catalog.values.identifiers import made_name
from catalog.values.types import INT2, INT4, INT8, SqlType
from planner.bind.calls.system.sequence_calls import sequence_named, written_name
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import is_taken, look_up, require_named, require_object, target_schema
from planner.bind.lookup.type_names import display, type_of
from planner.bind.state.environment import Binding
from planner.parse.parser import nodes
from planner.statements.definitions import AlterSequence, CreateSequence
from planner.statements.statement import NoOperation, Statement

_BITS: Final = {"int2": 15, "int4": 31, "int8": 63}
#: Types of columns that bring their own sequence.
SERIALS: Final = {
    **dict.fromkeys(("serial", "serial4"), INT4),
    **dict.fromkeys(("bigserial", "serial8"), INT8),
    **dict.fromkeys(("smallserial", "serial2"), INT2),
}
#: Functions whose first argument names a sequence.
CALLS: Final = ("nextval", "currval", "setval")


def _bounds(kind: SqlType, increment: int) -> tuple[int, int]:
    """The default MINVALUE and MAXVALUE."""
    most = (1 << _BITS[kind.name]) - 1
    return (1, most) if increment > 0 else (-most - 1, -1)


def default_sequence(name: str, kind: SqlType, schema: str) -> Sequence:
    """A sequence without options."""
    low, high = _bounds(kind, 1)
    return Sequence(0, name, kind, 1, 1, low, high, False, 1, 0, 1, schema=schema)


def bind_create_sequence(binding: Binding, node: Any) -> CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS] name options."""
    schema = target_schema(binding, node.sequence)
    exists = is_taken(binding, node.sequence, schema, node.if_not_exists)
    sequence = with_options(binding, default_sequence(node.sequence.relname, INT8, schema), node.options, new=True)
    return CreateSequence(replace(sequence, oid=binding.context.catalog.next_oid), exists)


def bind_alter_sequence(binding: Binding, node: Any) -> Statement:
    """ALTER SEQUENCE [IF EXISTS] name options."""
    name = node.sequence
    if node.missing_ok and look_up(binding, name.relname, name.schemaname) is None:
        return NoOperation("ALTER SEQUENCE", (f'relation "{name.relname}" does not exist, skipping',))
    found = require_object(binding, name)
    if not isinstance(found, Sequence):
        raise SqlError("42809", f'"{found.name}" is not a sequence')
    changed = with_options(binding, found, node.options, new=False)
    return AlterSequence(changed, any(item.defname == "restart" for item in node.options or ()))


def with_options(binding: Binding, sequence: Sequence, items: Any, new: bool, identity: bool = False) -> Sequence:
    """A sequence with options applied; ``last`` is where it begins anew. Raises 22023 and 42601."""
    given: dict[str, Any] = {}
    for item in items or ():
        if item.defname in given:
            raise SqlError("42601", "conflicting or redundant options", position=binding.position(item))
        given[item.defname] = item
    sequence = _typed(binding, sequence, given, new, identity)
    sequence = _limited(sequence, given, new)
    sequence = _started(sequence, given, new)
    cache = _number(given, "cache")
    if cache is not None and cache <= 0:
        raise SqlError("22023", f"CACHE ({cache}) must be greater than zero")
    if "owned_by" in given:
        sequence = replace(sequence, owner=_owner(binding, sequence, given["owned_by"]))
    cycle = given["cycle"].arg.boolval if "cycle" in given else sequence.cycle
    return replace(sequence, cache=cache or sequence.cache, cycle=bool(cycle))


def _number(given: dict[str, Any], name: str) -> int | None:
    """An option's value; its Float is an integer of more than 31 bits."""
    node = given[name].arg if name in given else None
    if node is None:
        return None
    try:
        value = int(node.ival) if type(node).__name__ == "Integer" else int(node.fval)
    except ValueError:
        raise SqlError("22P02", f'invalid input syntax for type bigint: "{node.fval}"') from None
    if not -(1 << 63) <= value < 1 << 63:
        raise SqlError("22003", f'value "{value}" is out of range for type bigint')
    return value


def _typed(binding: Binding, sequence: Sequence, given: dict[str, Any], new: bool, identity: bool) -> Sequence:
    kind = type_of(binding, given["as"].arg) if "as" in given else sequence.type
    if kind.name not in _BITS:
        what = "identity column type" if identity else "sequence type"
        raise SqlError("22023", f"{what} must be smallint, integer, or bigint")
    increment = _number(given, "increment")
    if increment == 0:
        raise SqlError("22023", "INCREMENT must not be zero")
    old_low, old_high = _bounds(sequence.type, sequence.increment)
    changed = replace(sequence, type=kind, increment=increment or sequence.increment)
    low, high = _bounds(kind, changed.increment)
    if new or (kind != sequence.type and sequence.minimum == old_low):
        changed = replace(changed, minimum=low)
    if new or (kind != sequence.type and sequence.maximum == old_high):
        changed = replace(changed, maximum=high)
    return changed


def _limited(sequence: Sequence, given: dict[str, Any], new: bool) -> Sequence:
    low, high = _bounds(sequence.type, sequence.increment)
    minimum, maximum = _number(given, "minvalue"), _number(given, "maxvalue")
    if "minvalue" in given:
        sequence = replace(sequence, minimum=low if minimum is None else minimum)
    if "maxvalue" in given:
        sequence = replace(sequence, maximum=high if maximum is None else maximum)
    most = 1 << _BITS[sequence.type.name]
    for word, value in (("MAXVALUE", sequence.maximum), ("MINVALUE", sequence.minimum)):
        if not -most <= value < most:
            kind = display(sequence.type)
            raise SqlError("22023", f"{word} ({value}) is out of range for sequence data type {kind}")
    if sequence.minimum >= sequence.maximum:
        message = f"MINVALUE ({sequence.minimum}) must be less than MAXVALUE ({sequence.maximum})"
        raise SqlError("22023", message)
    if new:
        sequence = replace(sequence, start=sequence.minimum if sequence.increment > 0 else sequence.maximum)
    return sequence


def _started(sequence: Sequence, given: dict[str, Any], new: bool) -> Sequence:
    start = _number(given, "start")
    sequence = replace(sequence, start=sequence.start if start is None else start)
    require_within(sequence, "START", sequence.start)
    restart = _number(given, "restart")
    if new or "restart" in given:
        sequence = replace(sequence, last=sequence.start if restart is None else restart, called=False)
        require_within(sequence, "RESTART", sequence.last)
    return sequence


def require_within(sequence: Sequence, word: str, value: int) -> None:
    """Raises 22023 for a value outside of the bounds."""
    if value < sequence.minimum:
        raise SqlError("22023", f"{word} value ({value}) cannot be less than MINVALUE ({sequence.minimum})")
    if value > sequence.maximum:
        raise SqlError("22023", f"{word} value ({value}) cannot be greater than MAXVALUE ({sequence.maximum})")


def _owner(binding: Binding, sequence: Sequence, item: Any) -> tuple[int, str] | None:
    """OWNED BY table.column, or NONE."""
    catalog = binding.context.catalog
    if sequence.owner is not None and _is_identity(catalog, sequence):
        table = catalog.objects[sequence.owner[0]].name
        detail = f'Sequence "{sequence.name}" is linked to table "{table}".'
        raise SqlError("0A000", "cannot change ownership of identity sequence", detail)
    names = names_of(item.arg)
    if len(names) == 1:
        if names[0] != "none":
            hint = "Specify OWNED BY table.column or OWNED BY NONE."
            raise SqlError("42601", "invalid OWNED BY option", hint=hint)
        return None
    *schema, relation, column = names
    found = require_named(binding, relation, schema[-1] if schema else None)
    if not isinstance(found, Table):
        raise SqlError("42809", f'sequence cannot be owned by relation "{found.name}"')
    if found.schema != sequence.schema:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    if all(item.name != column for item in found.columns):
        raise SqlError("42703", f'column "{column}" of relation "{found.name}" does not exist')
    return found.oid, column


def _is_identity(catalog: Catalog, sequence: Sequence) -> bool:
    return identity_column(catalog, sequence) is not None


def identity_column(catalog: Catalog, sequence: Sequence) -> tuple[Table, ColumnDefinition] | None:
    """The identity column that a sequence belongs to."""
    table = catalog.objects.get(sequence.owner[0]) if sequence.owner is not None else None
    if not isinstance(table, Table) or sequence.owner is None:
        return None
    name = sequence.owner[1]
    column = next((item for item in table.columns if item.name == name and item.identity), None)
    return None if column is None else (table, column)


# --- columns with a sequence of their own ----------------------------------------------------------------------------


def call_of(oid: int) -> str:
    """The default of a column that takes a sequence's values, as it is stored."""
    return f"nextval({oid})"


def check_identity(kind: SqlType) -> None:
    """Raises 22023 for a type of which no identity column is."""
    if kind.name not in _BITS:
        raise SqlError("22023", "identity column type must be smallint, integer, or bigint")


def own_sequence(
    binding: Binding, table: str, schema: str, column: ColumnDefinition, taken: set[str], options: Any
) -> Sequence:
    """The sequence of a serial or identity column, named as PostgreSQL does; ``taken`` are names of this statement.

    ``options`` are as written, or another sequence that is like it.
    """
    catalog, named, kind = binding.context.catalog, None, column.type
    rest = []
    for item in () if isinstance(options, Sequence) else options or ():
        if item.defname == "sequence_name":
            named = names_of(item.arg)[-1]
        else:
            rest.append(item)
    candidates = (made_name(table, column.name, f"seq{number or ''}") for number in itertools.count())
    name = named or next(name for name in candidates if name not in taken and catalog.at(schema, name) is None)
    if isinstance(options, Sequence):
        return replace(options, name=name, schema=schema, owner=None, last=options.start, called=False, comment=None)
    base = default_sequence(name, kind if kind.name in _BITS else INT8, schema)
    check_identity(kind)
    return with_options(binding, base, rest, new=True, identity=True)


def numbered(binding: Binding, tree: Any) -> tuple[Any, tuple[int, ...]]:
    """A default's expression with its sequences by oid, so that renaming them does no harm; and which they are."""
    tree = copy.deepcopy(tree)
    found: dict[int, None] = {}
    for node in nodes(tree):
        if type(node).__name__ == "FuncCall" and names_of(node.funcname)[-1] in CALLS and node.args:
            written = written_name(node.args[0])
            if written is not None:
                oid = sequence_named(binding, written[0], binding.position(written[1])).oid
                node.args = (A_Const(isnull=False, val=Integer(oid)), *node.args[1:])
                found[oid] = None
    return tree, tuple(found)

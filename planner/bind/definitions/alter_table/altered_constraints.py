"""Actions of ALTER TABLE on constraints: ADD, ALTER, VALIDATE and DROP CONSTRAINT.

Owns: PostgreSQL's errors for these actions. A constraint that is NOT VALID applies to new rows only; VALIDATE checks
the existing ones.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from pglast.enums import ConstrType

from catalog.objects import UniqueKey
from catalog.values.errors import SqlError
from planner.bind.definitions.alter_table.alteration import Alteration, drop_views, interim, release, take_constraints
from planner.bind.definitions.named_objects import constraint_names
from planner.bind.definitions.relations.constraints import add_table_constraint


def add(change: Alteration, command: Any) -> None:
    """ADD constraint, NOT VALID or not, or a key over an index that is there."""
    node = command.def_
    if node.indexname is not None:
        _over_index(change, node)
        return
    checks, keys = len(change.parts.checks), len(change.parts.foreign)
    add_table_constraint(change.binding, change.parts, node, False)
    take_constraints(change, checks, keys)
    if node.skip_validation and not node.initially_valid:
        items: list[Any] = change.checks if node.contype == ConstrType.CONSTR_CHECK else change.foreign
        items[-1] = replace(items[-1], validated=False)


def _over_index(change: Alteration, node: Any) -> None:
    """UNIQUE or PRIMARY KEY USING INDEX: the index becomes the constraint's, and takes its name."""
    position, name = change.binding.position(node), node.indexname
    places = [place for place, key in enumerate(change.parts.keys) if key.name == name]
    if not places:
        if any(index.name == name for index in change.indexes):
            detail = "Cannot create a primary key or unique constraint using such an index."
            raise SqlError("42809", f'"{name}" is not a unique index', detail, position=position)
        raise SqlError("42704", f'index "{name}" does not exist', position=position)
    key = change.parts.keys[places[0]]
    if not key.index:
        raise SqlError("55000", f'index "{name}" is already associated with a constraint', position=position)
    primary = node.contype == ConstrType.CONSTR_PRIMARY
    if primary and any(other.primary for other in change.parts.keys):
        raise SqlError("42P16", f'multiple primary keys for table "{change.before.name}" are not allowed')
    given = node.conname or name
    if given != name:
        words = f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{name}" to "{given}"'
        change.notices.append(words)
    waits = (bool(node.deferrable), bool(node.initdeferred))
    made = UniqueKey(change.parts.name(given), key.columns, primary, False, *waits, nulls_alike=key.nulls_alike)
    change.parts.keys[places[0]] = made
    if primary:
        change.parts.columns = [
            replace(column, not_null=True) if column.name in key.columns else column for column in change.parts.columns
        ]


def validate(change: Alteration, command: Any) -> None:
    """VALIDATE CONSTRAINT: what NOT VALID put off."""
    name, table = command.name, change.before
    if _validated(change.foreign, name) or _validated(change.checks, name):
        change.new_checks.update(check.name for check in change.checks if check.name == name)
        return
    known = (*change.foreign, *change.checks)
    if any(item.name == name for item in known):
        return  # it is valid already
    words = f'constraint "{name}" of relation "{table.name}"'
    if name in constraint_names(interim(change)):
        raise SqlError("42809", f"{words} is not a foreign key or check constraint")
    raise SqlError("42704", f"{words} does not exist")


def _validated(items: list[Any], name: str) -> bool:
    """Marks the constraint of a name as one of all rows; False where none is there that is not."""
    for place, item in enumerate(items):
        if item.name == name and not item.validated:
            items[place] = replace(item, validated=True)
            return True
    return False


def alter(change: Alteration, command: Any) -> None:
    """ALTER CONSTRAINT name [[NOT] DEFERRABLE] [INITIALLY DEFERRED | IMMEDIATE]: what is not said is not so."""
    node, table = command.def_, change.before
    names = [key.name for key in change.foreign]
    if node.conname not in names:
        words = f'constraint "{node.conname}" of relation "{table.name}"'
        if node.conname in constraint_names(interim(change)):
            raise SqlError("42809", f"{words} is not a foreign key constraint")
        raise SqlError("42704", f"{words} does not exist")
    place = names.index(node.conname)
    deferrable, deferred = bool(node.deferrable), bool(node.initdeferred)
    change.foreign[place] = replace(change.foreign[place], deferrable=deferrable, deferred=deferred)


def drop(change: Alteration, command: Any) -> None:
    name, table = command.name, change.before
    if name not in constraint_names(interim(change)):
        message = f'constraint "{name}" of relation "{table.name}" does not exist'
        if not command.missing_ok:
            raise SqlError("42704", message)
        change.notices.append(f"{message}, skipping")
        return
    key = next((key for key in change.parts.keys if key.name == name), None)
    change.parts.keys = [item for item in change.parts.keys if item.name != name]
    change.foreign = [item for item in change.foreign if item.name != name]
    change.checks = [item for item in change.checks if item.name != name]
    change.parts.names.discard(name)
    if key is None:
        return
    change.lost_keys = True
    rest = change.parts.keys
    what = f"constraint {name} on table {table.name}"
    release(change, what, lambda used: all(set(used.target_columns) != set(item.columns) for item in rest))
    drop_views(change, what)

"""The privileges that a statement needs, checked once the whole statement is bound.

Owns: ``require_privileges``, and for DROP, which is bound to parts and dependents before it is a statement,
``require_droppable``. ``Binding.needs`` lists the relations that a query reads, each with the role in whose name it is
read (for what an ordinary view reads, the view's owner); all other needs follow from the statement. A superuser needs
nothing. A plan belongs to one role and one catalog, so nothing is checked when it runs.

https://www.postgresql.org/docs/15/ddl-priv.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from catalog.objects import (
    PG_TEMP,
    CatalogObject,
    FileTable,
    Schema,
    Sequence,
    Stream,
    SystemView,
    Table,
    UserType,
    column_grants,
)
from catalog.privileges import DATABASE, OF_DATABASE, OF_SEQUENCE, OF_TABLE
from catalog.roles import READ_SERVER_FILES, WRITE_SERVER_FILES
from catalog.values.errors import SqlError
from planner.algebra.nodes import Column, ColumnRef, Project, Scan
from planner.algebra.walk import used_columns, walk
from planner.bind.lookup.relations import WORDS, require_room
from planner.bind.state.bind_state import Need
from planner.bind.state.environment import Binding
from planner.bind.type_privileges import require_types
from planner.statements.definitions import (
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    CreateExtension,
    CreateSchema,
    CreateStream,
    CreateTable,
    Redefine,
    Truncate,
)
from planner.statements.statement import (
    AlterView,
    CopyIn,
    CopyOut,
    CreateTableAs,
    CreateView,
    Delete,
    Explain,
    Insert,
    Merge,
    Modifying,
    Statement,
    Update,
)
from planner.statements.walk import roots

#: Tells columns; asked where the privileges on the whole relation do not suffice.
Names = Callable[[], frozenset[str]]

#: System relations that only privileged roles can read.
_SECRET: Final = frozenset(
    ("pg_authid", "pg_shadow", "pg_hba_file_rules", "pg_ident_file_mappings", "pg_file_settings", "pg_user_mapping")
)
_ACTIONS: Final = {"insert": "a", "update": "w", "delete": "d"}


def require_privileges(binding: Binding, statement: Statement) -> None:
    """Raises 42501 where a role may not do what a statement does in its name."""
    role = binding.reader
    if role is not None:
        _require_copied_file(binding, statement, role)
        for target, letters, names in _changed(binding, statement):
            _require(binding, target, letters, role, names)
    if not isinstance(statement, CreateView) or statement.view.continuous:  # others read when they are read
        for need in binding.needs:
            item = binding.context.catalog.objects[need.oid]
            _require(binding, item, need.letters, need.role, _needed(binding, statement, need))
    if role is not None:
        _require_definition(binding, statement, role)


def _needed(binding: Binding, statement: Statement, need: Need) -> Names | None:
    """The columns on which a role needs privileges: those that are read, or changed through a view."""
    if need.columns is not None:
        return partial(_used, statement, binding.context.catalog.objects[need.oid], need.columns)
    given = None if need.whole else binding.given.get((need.oid, need.letters))
    return None if given is None else lambda: given


def _used(statement: Statement, item: CatalogObject, columns: tuple[Column, ...]) -> frozenset[str]:
    """The columns of a relation that a statement uses, all where it cannot be looked into; ``columns`` are what they
    are called in it."""
    assert not isinstance(item, Sequence)
    found = roots(statement.query if isinstance(statement, CreateView | AlterView) else statement)
    used = {node.column for root in found for node in walk(root) if isinstance(node, ColumnRef)}
    pairs = zip(item.columns, columns, strict=False)
    return frozenset(definition.name for definition, column in pairs if column in used or not found)


def _require(binding: Binding, item: CatalogObject, letters: str, role: int, names: Names | None = None) -> None:
    """Raises 42501 where a role lacks one of an object's privileges. Those on all columns that ``names`` tells do as
    well, and where these are none, on any."""
    catalog = binding.context.catalog
    if item.schema == PG_TEMP:
        return
    if isinstance(item, SystemView):
        allowed = item.name not in _SECRET
    else:
        every = OF_SEQUENCE if isinstance(item, Sequence) else OF_TABLE
        rights = catalog.rights_of(item.oid)
        allowed = rights.allows(catalog.roles, role, letters, every)
        if not allowed and names is not None and not isinstance(item, Sequence):
            wanted, missing = names(), set(letters) - rights.held(catalog.roles, role, every)
            held = [column_grants(column).held(catalog.roles, role, "") for column in item.columns
                    if not wanted or column.name in wanted]  # fmt: skip
            allowed = (all if wanted else any)(missing <= letters_held for letters_held in held)
    if not allowed:
        raise SqlError("42501", f"permission denied for {_kind(item)} {item.name}")


def _kind(item: CatalogObject) -> str:
    if isinstance(item, SystemView):
        return "view" if item.definition or item.name == "pg_hba_file_rules" else "table"
    return WORDS[type(item)]


def _require_copied_file(binding: Binding, statement: Statement, role: int) -> None:
    """A file of COPY is the server's own."""
    match statement:
        case CopyIn(path=str()):
            needed, doing = READ_SERVER_FILES, "from"
        case CopyOut(path=str()):
            needed, doing = WRITE_SERVER_FILES, "to"
        case _:
            return
    roles = binding.context.catalog.roles
    if not roles.has_role(role, needed):
        message = f"must be superuser or have privileges of the {roles.name(needed)} role to COPY {doing} a file"
        hint = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."
        raise SqlError("42501", message, hint=hint)


# --- changes of rows -------------------------------------------------------------------------------------------------


def _changed(binding: Binding, statement: Statement) -> Iterator[tuple[Table | Stream, str, Names | None]]:
    """The relations that a statement changes, each with the privileges that it needs, and the columns that need them at
    least."""
    match statement:
        case Explain(statement=inner) | CopyOut(query=inner):
            yield from _changed(binding, inner)
        case Modifying(statements=parts):
            for part in parts:
                yield from _changed(binding, part)
        # of what a view reads its owner needs privileges, and of the view it has been noted
        case Insert(row=(first, *_)) | Update(old=(first, *_)) | Delete(old=(first, *_)) if first in binding.through:
            pass
        case Insert(target=target):
            yield target, "a", partial(binding.given.__getitem__, (target.oid, "a"))
            if statement.conflict is not None and statement.conflict.update is not None:
                yield target, "w", partial(binding.given.__getitem__, (target.oid, "w"))
            looked_at = binding.given.get((target.oid, "r"), frozenset[str]())
            yield from _read(target, looked_at | _returned(statement, statement.row))
        case Update(target=target):
            yield target, "w", partial(binding.given.__getitem__, (target.oid, "w"))
            yield from _read(target, _looked_at(binding, statement) | _returned(statement, statement.new))
        case Delete(target=target):
            yield target, "d", None
            yield from _read(target, _looked_at(binding, statement) | _returned(statement, statement.old))
        case Merge(target=target, actions=actions):
            letters = dict.fromkeys(_ACTIONS[action.kind] for action in actions if action.kind in _ACTIONS)
            if not letters:
                yield target, "r", frozenset  # DO NOTHING alone: any column's
            for letter in letters:
                given = None if letter == "d" else partial(binding.given.__getitem__, (target.oid, letter))
                yield target, letter, given
            yield from _read(target, binding.given.get((target.oid, "r"), frozenset[str]()))
        case CopyIn(target=target, columns=places):
            yield target, "a", lambda: frozenset(target.columns[place].name for place in places)
        case Truncate(targets=targets):
            for table in targets:
                yield table, "D", None
        case _:
            pass


def _read(target: Table | Stream, names: frozenset[str]) -> Iterator[tuple[Table | Stream, str, Names | None]]:
    if names:
        yield target, "r", lambda: names


def _returned(statement: Insert | Update | Delete, row: tuple[Column, ...]) -> frozenset[str]:
    """The columns of the changed row that RETURNING shows."""
    returning = () if statement.returning is None else statement.returning.expressions
    used = {column for _, scalar in returning for column in used_columns(scalar)}
    pairs = zip(statement.target.columns, row, strict=False)
    return frozenset(definition.name for definition, column in pairs if column in used)


def _looked_at(binding: Binding, statement: Update | Delete) -> frozenset[str]:
    """The target's columns of which a condition or a new value is made, be it their own (SET b = b)."""
    relation, target = statement.relation, statement.target
    assert isinstance(relation, Project)
    scan = next(item for item in walk(relation) if isinstance(item, Scan) and item.oid == target.oid)
    made, outputs = set[Column](), dict(relation.outputs)
    if isinstance(statement, Update):
        # others stay as they are; what several statements in WITH assign is known of all together
        given = frozenset[str]() if binding.modifications else binding.given[target.oid, "w"]
        places = zip(target.stored, statement.old, statement.new, strict=False)
        made = {new for column, old, new in places if column.name in given or outputs[new] != outputs[old]}
    used = {item.column for item in walk(relation.input) if isinstance(item, ColumnRef)}
    used |= {column for item in (*made, *statement.beside) for column in used_columns(outputs[item])}
    named = zip(target.columns, scan.columns, strict=False)
    return frozenset(definition.name for definition, column in named if column in used)


# --- definitions -----------------------------------------------------------------------------------------------------


def _require_definition(binding: Binding, statement: Statement, role: int) -> None:
    """Raises 42501 where something is made, altered or dropped that a role may not."""
    catalog = binding.context.catalog
    require_types(binding, statement, role)
    match statement:
        case CreateSchema(owner=owner):
            if not catalog.rights_of(DATABASE).allows(catalog.roles, role, "C", OF_DATABASE):
                raise SqlError("42501", f"permission denied for database {binding.context.database}")
            if owner is not None and not catalog.roles.has_role(role, owner):
                raise SqlError("42501", f'must be member of role "{catalog.roles.name(owner)}"')
        case CreateExtension(item=item):
            if not catalog.rights_of(DATABASE).allows(catalog.roles, role, "C", OF_DATABASE):
                hint = "Must have CREATE privilege on current database to create this extension."
                raise SqlError("42501", f'permission denied to create extension "{item.name}"', hint=hint)
        case CreateTable(table=table) | CreateTableAs(table=table):
            _require_references(binding, table, None, role)
        case CreateStream(stream=stream):
            _require_files(binding, stream, None, role)
        case CreateView(view=view, replaces=replaces):
            old = catalog.at(view.schema, view.name) if replaces else None
            if old is not None:
                _require_owner(binding, old, role)
        case AlterTable(before=before, table=after):
            _require_owner(binding, before, role)
            _require_place(binding, before, after, role)
            _require_references(binding, after, before, role)
        case Redefine(before=before, item=after):
            _require_owner(binding, before, role)
            _require_place(binding, before, after, role)
            if isinstance(before, Stream | FileTable) and isinstance(after, Stream | FileTable):
                _require_files(binding, after, before, role)
        case Explain(statement=CreateView() | AlterView() as inner):
            _require_definition(binding, inner, role)
        case AlterView(before=before):
            _require_owner(binding, before, role)
        case AlterSequence(sequence=changed):
            _require_owner(binding, catalog.objects[changed.oid], role)
        case AlterSchema(before=before):
            _require_own_schema(binding, before, role)
        case AlterType(before=before) if not owns(binding, before.oid, role):
            raise SqlError("42501", f"must be owner of type {before}")
        case _:
            pass


def owns(binding: Binding, oid: int, role: int) -> bool:
    """Whether an object is a role's own, by itself or as a member of its owner."""
    catalog = binding.context.catalog
    return catalog.roles.has_role(role, catalog.rights_of(oid).owner)


def require_droppable(binding: Binding, item: CatalogObject | Schema | UserType, what: str = "") -> None:
    """DROP is for owners, also of the schema; ``what``: a part of a table. Raises 42501."""
    role = binding.reader
    if role is None:
        return
    if isinstance(item, Schema):
        _require_own_schema(binding, item, role)
    elif owns(binding, item.oid, role) or _owns_schema(binding, item.schema, role) or item.schema == PG_TEMP:
        return
    elif isinstance(item, UserType):
        raise SqlError("42501", f"must be owner of type {item}")
    else:
        raise SqlError("42501", f"must be owner of {what or f'{WORDS[type(item)]} {item.name}'}")


def _owns_schema(binding: Binding, name: str, role: int) -> bool:
    """Whether a schema is a role's own."""
    schema = binding.context.catalog.schemas.get(name)
    return schema is not None and owns(binding, schema.oid, role)


def _require_owner(binding: Binding, item: CatalogObject, role: int) -> None:
    if item.schema != PG_TEMP and not owns(binding, item.oid, role):
        raise SqlError("42501", f"must be owner of {WORDS[type(item)]} {item.name}")


def _require_own_schema(binding: Binding, schema: Schema, role: int) -> None:
    if not owns(binding, schema.oid, role):
        raise SqlError("42501", f"must be owner of schema {schema.name}")


def _require_place(binding: Binding, before: CatalogObject, after: CatalogObject, role: int) -> None:
    """A relation that is called otherwise, or goes elsewhere, needs room there."""
    if (before.schema, before.name) != (after.schema, after.name):
        require_room(binding, after.schema, role)


def _require_references(binding: Binding, after: Table, before: Table | None, role: int) -> None:
    """REFERENCES on what new foreign keys point to."""
    known = set() if before is None else {key.name for key in before.foreign_keys}
    for key in after.foreign_keys:
        target = binding.context.catalog.objects.get(key.target)
        if key.name not in known and target is not None and key.target != after.oid:
            _require(binding, target, "x", role, partial(frozenset, key.target_columns))


def _require_files(binding: Binding, after: Stream | FileTable, before: Stream | FileTable | None, role: int) -> None:
    """A path on the server needs the privilege to read or write the server's files."""
    path = after.option("path")
    is_new = bool(path) and (before is None or before.option("path") != path)
    if is_new and not binding.context.catalog.roles.has_role(role, READ_SERVER_FILES):
        message = (
            "only superuser or a role with privileges of the pg_read_server_files role may specify the path option"
            " of a foreign table"
        )
        raise SqlError("42501", message)

"""What a statement needs of who runs it, and whether that is there: PostgreSQL's privileges, checked once all is bound.

Owns: ``require_privileges``, and for DROP, which is bound to parts and dependents before it is a statement,
``require_droppable``. Relations that a query reads have been noted where their names were bound, each with the
role in whose name it is read (an ordinary view's owner for what the view reads); all else follows from the statement.
A superuser needs nothing. A plan belongs to one role and one catalog, so nothing is checked when it runs.

https://www.postgresql.org/docs/15/ddl-priv.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from catalog.errors import SqlError
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
)
from catalog.privileges import DATABASE, OF_DATABASE, OF_SEQUENCE, OF_TABLE
from catalog.roles import READ_SERVER_FILES, WRITE_SERVER_FILES
from planner.algebra import Project, Relation, Scan
from planner.bind.context import Binding
from planner.bind.relations import WORDS, require_room
from planner.definitions import (
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    AlterView,
    CreateSchema,
    CreateStream,
    CreateTable,
    CreateTableAs,
    CreateView,
    Redefine,
    Truncate,
)
from planner.expression import Column, ColumnRef
from planner.statements import CopyIn, CopyOut, Delete, Explain, Insert, Merge, Modifying, Statement, Update
from planner.walk import used_columns, walk

#: System relations that show what is nobody else's business.
_SECRET: Final = frozenset(
    ("pg_authid", "pg_shadow", "pg_hba_file_rules", "pg_ident_file_mappings", "pg_file_settings", "pg_user_mapping")
)
_ACTIONS: Final = {"insert": "a", "update": "w", "delete": "d"}


def require_privileges(binding: Binding, statement: Statement) -> None:
    """Raises 42501 where a role may not do what a statement does in its name."""
    role = binding.reader
    if role is not None:
        _require_copied_file(binding, statement, role)
        for target, letters in _changed(statement):
            _require(binding, target, letters, role)
    if not isinstance(statement, CreateView) or statement.view.continuous:  # others read when they are read
        for oid, letters, reader in binding.needs:
            _require(binding, binding.context.catalog.objects[oid], letters, reader)
    if role is not None:
        _require_definition(binding, statement, role)


def _require(binding: Binding, item: CatalogObject, letters: str, role: int) -> None:
    """Raises 42501 where a role lacks one of an object's privileges."""
    catalog = binding.context.catalog
    if item.schema == PG_TEMP:
        return
    if isinstance(item, SystemView):
        allowed = item.name not in _SECRET
    else:
        every = OF_SEQUENCE if isinstance(item, Sequence) else OF_TABLE
        allowed = catalog.rights_of(item.oid).allows(catalog.roles, role, letters, every)
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


def _changed(statement: Statement) -> Iterator[tuple[Table | Stream, str]]:
    """The relations whose rows a statement changes, each with what that needs."""
    match statement:
        case Explain(statement=inner):
            yield from _changed(inner)
        case Modifying(parts=parts, main=main):
            for _, part in parts:
                yield from _changed(part)
            yield from _changed(main)
        case Insert(target=target):
            yield target, "a"
            if statement.conflict is not None and statement.conflict.update is not None:
                yield target, "wr"
            if _returns(statement, statement.row):
                yield target, "r"
        case Update(target=target, relation=relation):
            yield target, "w"
            if _reads(target, relation) or _returns(statement, statement.new):
                yield target, "r"
        case Delete(target=target, relation=relation):
            yield target, "d"
            if _reads(target, relation) or _returns(statement, statement.old):
                yield target, "r"
        case Merge(target=target, actions=actions):
            yield target, "r" + "".join(_ACTIONS.get(action.kind, "") for action in actions)
        case CopyIn(target=target):
            yield target, "a"
        case Truncate(targets=targets):
            for table in targets:
                yield table, "D"
        case _:
            pass


def _returns(statement: Insert | Update | Delete, row: tuple[Column, ...]) -> bool:
    """Whether RETURNING shows columns of the changed row."""
    returning = statement.returning
    return returning is not None and any(used_columns(scalar) & set(row) for _, scalar in returning.expressions)


def _reads(target: Table, relation: Relation) -> bool:
    """Whether a condition or a new value is made of the target's columns."""
    assert isinstance(relation, Project)
    scan = next(item for item in walk(relation) if isinstance(item, Scan) and item.oid == target.oid)
    own = set(scan.columns[: len(target.columns)])
    used = {item.column for item in walk(relation.input) if isinstance(item, ColumnRef)}
    for _, scalar in relation.outputs:
        if not isinstance(scalar, ColumnRef):  # else it stays as it is
            used |= set(used_columns(scalar))
    return bool(used & own)


# --- definitions -----------------------------------------------------------------------------------------------------


def _require_definition(binding: Binding, statement: Statement, role: int) -> None:
    """Raises 42501 where something is made, altered or dropped that a role may not."""
    catalog = binding.context.catalog
    match statement:
        case CreateSchema(owner=owner):
            if not catalog.rights_of(DATABASE).allows(catalog.roles, role, "C", OF_DATABASE):
                raise SqlError("42501", f"permission denied for database {binding.context.database}")
            if owner is not None and not catalog.roles.has_role(role, owner):
                raise SqlError("42501", f'must be member of role "{catalog.roles.name(owner)}"')
        case CreateTable(table=table) | CreateTableAs(table=table):
            _require_references(binding, table, None, role)
        case CreateStream(stream=stream):
            _require_files(binding, stream, None, role)
        case CreateView(view=view, replaces=replaces):
            old = catalog.find(view.name, view.schema) if replaces else None
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
        case AlterView(view=changed):
            _require_owner(binding, catalog.objects[changed.oid], role)
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
            _require(binding, target, "x", role)


def _require_files(binding: Binding, after: Stream | FileTable, before: Stream | FileTable | None, role: int) -> None:
    """A path on the server is for those who may read its files."""
    path = after.option("path")
    is_new = bool(path) and (before is None or before.option("path") != path)
    if is_new and not binding.context.catalog.roles.has_role(role, READ_SERVER_FILES):
        message = (
            "only superuser or a role with privileges of the pg_read_server_files role may specify the path option"
            " of a foreign table"
        )
        raise SqlError("42501", message)

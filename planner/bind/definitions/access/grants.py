"""GRANT and REVOKE of privileges.

Owns: the objects and privileges that are meant, the grantor, and what REVOKE takes from grantees further down, with
PostgreSQL's errors and warnings (aclchk.c). ``planner.bind.privileges`` checks what a statement needs.

https://www.postgresql.org/docs/15/sql-grant.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pglast.enums import DropBehavior, GrantTargetType, ObjectType, RoleSpecType

from catalog.objects import (
    PG_TEMP,
    SYSTEM_SCHEMAS,
    CatalogObject,
    ColumnDefinition,
    FileTable,
    Schema,
    Sequence,
    Stream,
    SystemView,
    Table,
    View,
    column_grants,
)
from catalog.privileges import (
    DATABASE,
    LETTERS,
    OF_COLUMN,
    OF_DATABASE,
    OF_FUNCTION,
    OF_SCHEMA,
    OF_SEQUENCE,
    OF_TABLE,
    OF_TYPE,
    Grant,
    Rights,
)
from catalog.roles import EVERYBODY
from catalog.routines import Function, every
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import is_the_database
from planner.bind.definitions.access.roles import refuse_grantor
from planner.bind.definitions.named_objects import TYPES, find_schema
from planner.bind.definitions.redefinition import redefined
from planner.bind.definitions.types.user_types import named_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.functions import find_function
from planner.bind.lookup.relations import require_object
from planner.bind.lookup.roles import current_role, role_of
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterTable, ChangeRights, Redefine
from planner.statements.statement import Statement

#: Objects of GRANT that nothing else is known of, by what the refusal says.
_REFUSED: Final = "GRANT and REVOKE on {}"
_RELATIONS: Final = (Table, Stream, FileTable, View)
_ALL: Final[dict[Any, tuple[type, ...]]] = {
    ObjectType.OBJECT_TABLE: _RELATIONS,
    ObjectType.OBJECT_SEQUENCE: (Sequence,),
}
_ROUTINES: Final = (ObjectType.OBJECT_FUNCTION, ObjectType.OBJECT_PROCEDURE, ObjectType.OBJECT_ROUTINE)


class Target(Struct, frozen=True):
    """An object of GRANT: ``word`` is its kind, and ``every`` all privileges of that."""

    oid: int
    name: str
    word: str
    every: str


def bind_grant(binding: Binding, node: Any) -> ChangeRights:
    """GRANT and REVOKE [GRANT OPTION FOR] privileges ON objects."""
    refuse_grantor(binding, node)
    targets = list(_targets(binding, node))
    grantees = grantees_of(binding, node)
    changes = []
    notices: list[SqlError] = []
    whole = node.privileges is None or any(not item.cols for item in node.privileges)
    for target in targets if whole else ():
        before = binding.context.catalog.rights_of(target.oid)
        after = _changed(binding, node, target, grantees, before, notices)
        if after != before:
            changes.append((target.oid, before, after))
    columns = [item for target in targets for item in _changed_columns(binding, node, target, grantees, notices)]
    return ChangeRights("GRANT" if node.is_grant else "REVOKE", tuple(changes), tuple(notices), tuple(columns))


def grantees_of(binding: Binding, node: Any) -> list[int]:
    """The roles that GRANT or REVOKE names. Raises 42704 and 0LP01."""
    return [_grantee(binding, node, item) for item in node.grantees]


def _grantee(binding: Binding, node: Any, item: Any) -> int:
    if item.roletype != RoleSpecType.ROLESPEC_PUBLIC:
        return role_of(binding, item).oid
    if node.is_grant and node.grant_option:
        raise SqlError("0LP01", "grant options can only be granted to roles")
    return EVERYBODY


def _changed(
    binding: Binding, node: Any, target: Target, grantees: list[int], before: Rights, notices: list[SqlError]
) -> Rights:
    """An object's rights after the statement."""
    letters = letters_of(node, target)
    grantor, may = _grantor(binding, before, target)
    given = letters if may is None else "".join(letter for letter in letters if letter in may)
    if given != letters and (node.privileges is not None or not given):
        words = f"{'not all' if given else 'no'} privileges {'were granted' if node.is_grant else 'could be revoked'}"
        notices.append(SqlError("01007", f'{words} for "{target.name}"'))
    return changed_rights(node, before, target.every, grantees, grantor, given)


def changed_rights(node: Any, before: Rights, every: str, grantees: list[int], grantor: int, letters: str) -> Rights:
    """Rights after one role has given or taken privileges. Raises 2BP01."""
    rights = before
    for grantee in grantees:
        if node.is_grant:
            options = letters if node.grant_option and grantee != before.owner else ""
            rights = rights.grant(every, Grant(grantee, grantor, letters, options)) if letters else rights
        else:
            taken = Grant(grantee, grantor, letters)
            cascade = node.behavior == DropBehavior.DROP_CASCADE
            rights = _taken(rights, every, taken, bool(node.grant_option), cascade)
    return rights


def _taken(rights: Rights, every: str, taken: Grant, option_only: bool, cascade: bool) -> Rights:
    """Rights without a grant, and without what its holder has given on. Raises 2BP01."""
    rights = rights.revoke(every, taken, option_only)
    held = {letter for item in rights.grants or () if item.grantee == taken.grantee for letter in item.options}
    lost = set(taken.letters) - held
    if taken.grantee in (rights.owner, EVERYBODY):
        return rights
    for item in rights.grants or ():
        depends = "".join(letter for letter in item.letters if letter in lost)
        if item.grantor == taken.grantee and depends:
            if not cascade:
                raise SqlError("2BP01", "dependent privileges exist", hint="Use CASCADE to revoke them too.")
            rights = _taken(rights, every, Grant(item.grantee, item.grantor, depends), False, True)
    return rights


def _grantor(binding: Binding, rights: Rights, target: Target) -> tuple[int, set[str] | None]:
    """The role in whose name the current role grants, and the privileges that it may grant (None: all). Raises
    42501."""
    role, roles = current_role(binding), binding.context.catalog.roles
    may = rights.may_give(roles, role.oid)
    if may is None:
        return rights.owner, None
    if not may and not rights.held(roles, role.oid, target.every):
        raise SqlError("42501", f"permission denied for {target.word} {target.name}")
    who = roles.groups(role.oid, inherited=True)
    givers = [item.grantee for item in rights.grants or () if item.grantee in who and item.options]
    return (role.oid if role.oid in givers or not givers else givers[0]), may


def letters_of(node: Any, target: Target) -> str:
    """The privileges that are named, of those that such an object has. Raises 0LP01 and 42601."""
    if node.privileges is None:
        return target.every
    kind = {"view": "table", "foreign table": "table"}.get(target.word, target.word)
    relation = kind if node.objtype != ObjectType.OBJECT_TABLE else "relation" if kind == "table" else kind
    letters = {_letter_of(item.priv_name, target.every, relation) for item in node.privileges if not item.cols}
    return "".join(letter for letter in target.every if letter in letters)


def _letter_of(name: str, every: str, kind: str) -> str:
    """A privilege that is named, of those that a kind of object has. Raises 0LP01 and 42601."""
    word = name.upper()
    word = "TEMPORARY" if word == "TEMP" else word
    if word not in LETTERS:
        raise SqlError("42601", f'unrecognized privilege type "{name}"')
    if LETTERS[word] not in every:
        raise SqlError("0LP01", f"invalid privilege type {word} for {kind}")
    return LETTERS[word]


# --- columns ---------------------------------------------------------------------------------------------------------


def _changed_columns(
    binding: Binding, node: Any, target: Target, grantees: list[int], notices: list[SqlError]
) -> Iterator[AlterTable | Redefine]:
    """A relation whose columns have other grants. What is revoked of the whole is revoked of each. Raises 42703."""
    item = binding.context.catalog.objects.get(target.oid)
    if item is None or isinstance(item, Sequence | SystemView):
        if any(each.cols for each in node.privileges or ()):
            raise SqlError("0LP01", "column privileges are only valid for relations")
        return
    letters = _column_letters(node, target, item)
    columns = []
    for column in item.columns:
        before = column_grants(column, binding.context.catalog.rights_of(target.oid).owner)
        after = before
        if column.name in letters:
            after = _of_column(binding, node, target, column, letters[column.name], grantees, notices)
        columns.append(replace(column, grants=after.grants or ()))
    if tuple(columns) != item.columns:
        yield redefined("GRANT", item, replace(item, columns=tuple(columns)), renames=True)


def _column_letters(node: Any, target: Target, item: Table | Stream | FileTable | View) -> dict[str, str]:
    """What is given or taken, by column."""
    known = [column.name for column in item.columns]
    found = dict.fromkeys(known, "")
    if not node.is_grant and (node.privileges is None or any(not each.cols for each in node.privileges)):
        taken = "".join(letter for letter in letters_of(node, target) if letter in OF_COLUMN)
        found = {column.name: taken for column in item.columns if column.grants}
    for each in node.privileges or ():
        given = OF_COLUMN
        if each.priv_name is not None:
            given = _letter_of(each.priv_name, OF_COLUMN, "column") if each.cols else ""
        for name in names_of(each.cols):
            if name not in known:
                raise SqlError("42703", f'column "{name}" of relation "{item.name}" does not exist')
            found[name] = found.get(name, "") + given
    return {name: letters for name, letters in found.items() if letters}


def _of_column(
    binding: Binding,
    node: Any,
    target: Target,
    column: ColumnDefinition,
    letters: str,
    grantees: list[int],
    notices: list[SqlError],
) -> Rights:
    """A column's rights after the statement. A role that may grant on the relation may grant on its columns."""
    whole = binding.context.catalog.rights_of(target.oid)
    both = replace(whole, grants=(*whole.listed(target.every), *column.grants))
    grantor, may = _grantor(binding, both, target)
    letters = "".join(letter for letter in OF_COLUMN if letter in letters)
    given = letters if may is None else "".join(letter for letter in letters if letter in may)
    if given != letters:
        words = f"{'not all' if given else 'no'} privileges {'were granted' if node.is_grant else 'could be revoked'}"
        notices.append(SqlError("01007", f'{words} for column "{column.name}" of relation "{target.name}"'))
    return changed_rights(node, column_grants(column, whole.owner), "", grantees, grantor, given)


# --- what is meant ---------------------------------------------------------------------------------------------------


def _targets(binding: Binding, node: Any) -> Iterator[Target]:
    """The objects. Raises 3F000, 42P01, 42809 and 0A000."""
    words = ObjectType(node.objtype).name.removeprefix("OBJECT_").replace("_", " ")
    if node.targtype == GrantTargetType.ACL_TARGET_ALL_IN_SCHEMA:
        if node.objtype in _ROUTINES:
            yield from _own_functions(binding, node)
            return
        if node.objtype not in _ALL:
            raise unsupported(_REFUSED.format(f"ALL {words}S IN SCHEMA"))
        for name in node.objects:
            schema = find_schema(binding.context.catalog, name.sval)
            contents = sorted(binding.context.catalog.contents(schema.name), key=lambda item: item.oid)
            yield from (target_of(item) for item in contents if isinstance(item, _ALL[node.objtype]))
    elif node.objtype == ObjectType.OBJECT_SCHEMA:
        for name in node.objects:
            yield target_of(find_schema(binding.context.catalog, name.sval))
    elif node.objtype == ObjectType.OBJECT_DATABASE:
        for name in node.objects:
            if not is_the_database(binding.context.database, name.sval):
                raise SqlError("3D000", f'database "{name.sval}" does not exist')
            yield Target(DATABASE, binding.context.database, "database", OF_DATABASE)
    elif node.objtype in _ROUTINES:
        for item in node.objects:
            yield of_function(find_function(binding, item))
    elif node.objtype in TYPES:
        for item in node.objects:
            yield _of_type(binding, item, node.objtype)
    elif node.objtype in _ALL:
        for name in node.objects:
            yield _relation(binding, name, node.objtype)
    else:
        instead = "Grant on relations, sequences, functions, types, schemas and the database."
        raise unsupported(_REFUSED.format(words), instead)


def _own_functions(binding: Binding, node: Any) -> Iterator[Target]:
    """ALL FUNCTIONS IN SCHEMA: users'."""
    for name in node.objects:
        schema = find_schema(binding.context.catalog, name.sval).name
        if schema in SYSTEM_SCHEMAS:
            raise unsupported(_REFUSED.format("functions of PostgreSQL"), "All roles may call them.")
        for item in every(binding.context.catalog.functions):
            if item.schema == schema:
                yield of_function(item)


def of_function(item: Function) -> Target:
    """A user's function."""
    return Target(item.oid, item.name, "function", OF_FUNCTION)


def _of_type(binding: Binding, node: Any, kind: Any) -> Target:
    """A user's type."""
    found = named_type(binding, names_of(node), kind)
    return Target(found.oid, found.name, "domain" if kind == ObjectType.OBJECT_DOMAIN else "type", OF_TYPE)


def _relation(binding: Binding, node: Any, kind: Any) -> Target:
    found = require_object(binding, node)
    if isinstance(found, SystemView):
        raise unsupported(_REFUSED.format("system relations"))
    if found.schema == PG_TEMP:
        raise unsupported(_REFUSED.format("temporary relations"), "Other sessions cannot see them.")
    if kind == ObjectType.OBJECT_SEQUENCE and not isinstance(found, Sequence):
        raise SqlError("42809", f'"{found.name}" is not a sequence')
    return target_of(found)


def target_of(item: CatalogObject | Schema) -> Target:
    """An object with the privileges that there are of its kind."""
    match item:
        case Schema():
            return Target(item.oid, item.name, "schema", OF_SCHEMA)
        case Sequence():
            return Target(item.oid, item.name, "sequence", OF_SEQUENCE)
        case View() | SystemView():
            return Target(item.oid, item.name, "view", OF_TABLE)
        case Stream() | FileTable():
            return Target(item.oid, item.name, "foreign table", OF_TABLE)
        case Table():
            return Target(item.oid, item.name, "table", OF_TABLE)


def _refuse(construct: str, instead: str) -> Callable[[Binding, Any], Statement]:
    def refuse(binding: Binding, node: Any) -> Statement:
        raise unsupported(construct, instead)

    return refuse


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "GrantStmt": bind_grant,
    "ReassignOwnedStmt": _refuse("REASSIGN OWNED", "Use ALTER ... OWNER TO for each object."),
    "DropOwnedStmt": _refuse("DROP OWNED", "Drop the objects, and revoke what was granted."),
}

"""ALTER DEFAULT PRIVILEGES: grants on objects that are created later.

Owns: which creators, schemas and kinds of objects are meant. ``grants`` has the grants.

https://www.postgresql.org/docs/15/sql-alterdefaultprivileges.html
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ObjectType

from catalog.default_privileges import KINDS, DefaultRights, beginning
from catalog.values.errors import SqlError
from planner.bind.definitions.access.grants import Target, changed_rights, grantees_of, letters_of
from planner.bind.definitions.named_objects import find_schema
from planner.bind.lookup.roles import current_role, role_of
from planner.bind.state.environment import Binding
from planner.statements.definitions import ChangeDefaults

_KINDS: Final[dict[Any, tuple[str, str]]] = {
    ObjectType.OBJECT_TABLE: ("r", "relation"),
    ObjectType.OBJECT_SEQUENCE: ("S", "sequence"),
    ObjectType.OBJECT_FUNCTION: ("f", "function"),
    ObjectType.OBJECT_SCHEMA: ("n", "schema"),
    ObjectType.OBJECT_TYPE: ("T", "type"),
}


def bind_default_privileges(binding: Binding, node: Any) -> ChangeDefaults:
    """ALTER DEFAULT PRIVILEGES [FOR ROLE roles] [IN SCHEMA schemas] GRANT or REVOKE."""
    given = {item.defname: item.arg for item in node.options or ()}
    catalog, action = binding.context.catalog, node.action
    owners = [role_of(binding, item) for item in given["roles"]] if "roles" in given else [current_role(binding)]
    schemas = [find_schema(catalog, item.sval).oid for item in given.get("schemas", ())] or [0]
    kind, word = _KINDS[action.objtype]
    if any(item.cols for item in action.privileges or ()):
        raise SqlError("0LP01", "default privileges cannot be set for columns")
    if kind == "n" and schemas != [0]:
        raise SqlError("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
    for owner in owners:
        if binding.reader is not None and not catalog.roles.has_role(binding.reader, owner.oid, inherited=False):
            raise SqlError("42501", f'must be member of role "{owner.name}"')
    letters = letters_of(action, Target(0, "", word, KINDS[kind]))
    grantees = grantees_of(binding, action)
    known = {item.place: item for item in catalog.defaults}
    next_oid = catalog.next_oid
    for owner in owners:
        for schema in schemas:
            place = (owner.oid, schema, kind)
            before = known.pop(place, None) or DefaultRights(next_oid, schema, kind, beginning(owner.oid, schema))
            next_oid += 1
            rights = changed_rights(action, before.rights, KINDS[kind], grantees, owner.oid, letters)
            after = replace(before, rights=rights).sorted()
            if not after.is_needless:
                known[place] = after
    return ChangeDefaults(catalog.defaults, tuple(known.values()))

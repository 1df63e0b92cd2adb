"""The objects of a whole server: its roles, database, schemas, tablespaces and foreign servers.

Owns: pg_namespace, pg_database, pg_authid, pg_auth_members, pg_init_privs, pg_tablespace, pg_extension and other lists
of extensions, pg_foreign_server and pg_foreign_data_wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.catalog import Catalog
from catalog.extensions import available
from catalog.objects import FIRST_OID, PG_TEMP, initial_rights
from catalog.privileges import DATABASE, DATABASE_RIGHTS
from catalog.system.own_objects import (
    DATABASE_NAME,
    EXTENSION_COMMENTS,
    EXTENSION_VERSION,
    EXTENSIONS,
    PG_CLASS,
    PG_NAMESPACE,
    PG_PROC,
    ROLE,
    TABLESPACE,
    TEMPORARY,
    acl_of,
    rights_of,
    schema_oid,
)
from catalog.system.rows import Row
from catalog.system.stored import by_oid, pc, texts
from catalog.values.oids import part_oid


def pg_namespace(catalog: Catalog) -> Iterator[Row]:
    """Schemas."""
    for schema in catalog.schemas.values():
        owner, acl = rights_of(catalog, schema.oid)
        yield {"oid": schema.oid, "nspname": schema.name, "nspowner": owner, "nspacl": acl}
    if catalog.temporary:
        yield {"oid": TEMPORARY, "nspname": PG_TEMP, "nspowner": ROLE}


def pg_default_acl(catalog: Catalog) -> Iterator[Row]:
    """ALTER DEFAULT PRIVILEGES."""
    for item in catalog.defaults:
        owner, schema, kind = item.place
        about = {"oid": item.oid, "defaclrole": owner, "defaclnamespace": schema, "defaclobjtype": kind}
        yield {**about, "defaclacl": acl_of(catalog, item.rights)}


def pg_init_privs(catalog: Catalog) -> Iterator[Row]:
    """Initial privileges, which no user has changed: of PostgreSQL's own functions and relations, and of schemas."""
    for classoid, relation, column in ((PG_PROC, "pg_proc", "proacl"), (PG_CLASS, "pg_class", "relacl")):
        for oid, text in by_oid(relation, column).items():
            yield _initial(classoid, oid, text.strip("{}").split(","))
    for column in texts("pg_attribute").filter(pc.field("attacl").is_valid()).to_pylist():
        rights = column["attacl"].strip("{}").split(",")
        yield _initial(PG_CLASS, int(column["attrelid"]), rights, int(column["attnum"]))
    for schema in catalog.schemas.values():
        if schema.oid < FIRST_OID:
            yield _initial(PG_NAMESPACE, schema.oid, acl_of(catalog, initial_rights(schema.name)) or [])


def _initial(classoid: int, oid: int, rights: list[str], place: int = 0) -> Row:
    return {"objoid": oid, "classoid": classoid, "objsubid": place, "privtype": "i", "initprivs": rights}


def pg_database(catalog: Catalog) -> Iterator[Row]:
    """The database."""
    rights = catalog.rights_of(DATABASE)
    yield {
        "oid": DATABASE,
        "datname": DATABASE_NAME,
        "datdba": rights.owner,
        "datacl": None if rights == DATABASE_RIGHTS else acl_of(catalog, rights),
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": TABLESPACE,
        "datcollate": "C",
        "datctype": "C.UTF-8",
    }


def pg_authid(catalog: Catalog) -> Iterator[Row]:
    """Roles."""
    for role in catalog.roles.items:
        yield {
            "oid": role.oid,
            "rolname": role.name,
            "rolsuper": role.superuser,
            "rolinherit": role.inherit,
            "rolcreaterole": role.create_role,
            "rolcreatedb": role.create_db,
            "rolcanlogin": role.login,
            "rolreplication": role.replication,
            "rolbypassrls": role.bypass_rls,
            "rolconnlimit": role.connection_limit,
            "rolpassword": role.password,
            "rolvaliduntil": role.valid_until,
        }


def pg_auth_members(catalog: Catalog) -> Iterator[Row]:
    """The memberships of roles."""
    for item in catalog.roles.members:
        yield {
            "roleid": item.role,
            "member": item.member,
            "grantor": item.grantor,
            "admin_option": item.admin,
        }


def pg_db_role_setting(catalog: Catalog) -> Iterator[Row]:
    """Initial settings of sessions."""
    found: dict[tuple[int, int], list[str]] = {}
    for item in catalog.roles.settings:
        found.setdefault((item.database, item.role), []).append(f"{item.name}={item.value}")
    for (database, role), kept in found.items():
        yield {"setdatabase": database, "setrole": role, "setconfig": kept}


def pg_tablespace(catalog: Catalog) -> Iterator[Row]:
    """PostgreSQL's two tablespaces, which have no effect."""
    for oid, name in ((TABLESPACE, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": ROLE}


def pg_extension(catalog: Catalog) -> Iterator[Row]:
    """Built-in extensions, whose members are not dumped, and created ones."""
    for name, (oid, schema) in EXTENSIONS.items():
        namespace = catalog.schemas[schema].oid
        about = {"oid": oid, "extname": name, "extowner": ROLE, "extnamespace": namespace}
        yield {**about, "extversion": EXTENSION_VERSION}
    for item in catalog.extensions.values():
        owner, _ = rights_of(catalog, item.oid)
        about = {"oid": item.oid, "extname": item.name, "extowner": owner, "extversion": item.version}
        yield {**about, "extnamespace": schema_oid(catalog, item.schema), "extrelocatable": True}


def pg_available_extensions(catalog: Catalog) -> Iterator[Row]:
    """The extensions that CREATE EXTENSION knows."""
    for name, comment in EXTENSION_COMMENTS.items():
        version = {"default_version": EXTENSION_VERSION, "installed_version": EXTENSION_VERSION}
        yield {"name": name, **version, "comment": comment}
    for about in available().values():
        installed = catalog.extensions.get(about.name)
        what = {"name": about.name, "default_version": about.version, "comment": about.comment}
        yield {**what, "installed_version": None if installed is None else installed.version}


def pg_available_extension_versions(catalog: Catalog) -> Iterator[Row]:
    """Available extensions by version; each has one version."""
    kind = {"superuser": False, "trusted": True, "relocatable": False}
    for name, comment in EXTENSION_COMMENTS.items():
        about = {"installed": True, "schema": EXTENSIONS[name][1], "comment": comment}
        yield {"name": name, "version": EXTENSION_VERSION, **kind, **about}
    for item in available().values():
        what = {"name": item.name, "version": item.version, "comment": item.comment}
        free = {"superuser": True, "trusted": True, "relocatable": True}
        yield {**what, **free, "installed": item.name in catalog.extensions}


#: Servers of CREATE FOREIGN TABLE.
SERVERS = ("stream", "files")


def pg_foreign_data_wrapper(catalog: Catalog) -> Iterator[Row]:
    """The foreign-data wrappers of foreign tables."""
    for name in SERVERS:
        yield {"oid": part_oid(0, "wrapper", name), "fdwname": name, "fdwowner": ROLE}


def pg_foreign_server(catalog: Catalog) -> Iterator[Row]:
    """The servers of foreign tables."""
    for name in SERVERS:
        wrapper = part_oid(0, "wrapper", name)
        yield {"oid": part_oid(0, "server", name), "srvname": name, "srvowner": ROLE, "srvfdw": wrapper}

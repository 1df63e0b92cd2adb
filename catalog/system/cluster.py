"""What a server has one of: its role, database, schemas, tablespaces and foreign servers.

Owns: pg_namespace, pg_database, pg_authid, pg_tablespace, pg_foreign_server and pg_foreign_data_wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP
from catalog.system.naming import (
    DATABASE,
    DATABASE_NAME,
    ROLE,
    ROLE_NAME,
    TABLESPACE,
    TEMPORARY,
    part_oid,
)
from catalog.system.rows import Row


def pg_namespace(catalog: Catalog) -> Iterator[Row]:
    """Schemas."""
    usage = f"{{{ROLE_NAME}=UC/{ROLE_NAME},=U/{ROLE_NAME}}}"
    for schema in catalog.schemas.values():
        yield {"oid": schema.oid, "nspname": schema.name, "nspowner": ROLE, "nspacl": usage[1:-1].split(",")}
    if any(True for _ in catalog.contents(PG_TEMP)):
        yield {"oid": TEMPORARY, "nspname": PG_TEMP, "nspowner": ROLE}


def pg_database(catalog: Catalog) -> Iterator[Row]:
    """The database."""
    yield {
        "oid": DATABASE,
        "datname": DATABASE_NAME,
        "datdba": ROLE,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": TABLESPACE,
        "datcollate": "C",
        "datctype": "C.UTF-8",
    }


def pg_authid(catalog: Catalog) -> Iterator[Row]:
    """The role."""
    may = ("rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication", "rolbypassrls")
    yield {"oid": ROLE, "rolname": ROLE_NAME, "rolconnlimit": -1, **dict.fromkeys(may, True)}


def pg_tablespace(catalog: Catalog) -> Iterator[Row]:
    """PostgreSQL's two, which mean nothing here."""
    for oid, name in ((TABLESPACE, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": ROLE}


#: Servers of CREATE FOREIGN TABLE.
SERVERS = ("stream", "files")


def pg_foreign_data_wrapper(catalog: Catalog) -> Iterator[Row]:
    """What feeds foreign tables."""
    for name in SERVERS:
        yield {"oid": part_oid(0, "wrapper", name), "fdwname": name, "fdwowner": ROLE}


def pg_foreign_server(catalog: Catalog) -> Iterator[Row]:
    """The servers of foreign tables."""
    for name in SERVERS:
        wrapper = part_oid(0, "wrapper", name)
        yield {"oid": part_oid(0, "server", name), "srvname": name, "srvowner": ROLE, "srvfdw": wrapper}

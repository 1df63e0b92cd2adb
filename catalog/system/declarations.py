"""The system relations: PostgreSQL's, with its own oids, columns and definitions.

Owns: the declarations. ``pg_class`` and ``pg_attribute`` of a real server list the relations of pg_catalog and
information_schema. Their views are expanded like any others, except that views over functions of PostgreSQL's server
process are relations here. The rest of this folder knows the rows of relations that are not views.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import Final

from catalog.objects import ColumnDefinition, SystemView
from catalog.postgres import rows
from catalog.system.stored import by_oid
from catalog.values.types import TEXT, SqlType, is_known
from catalog.values.types import by_oid as type_by_oid

#: A FROM clause with a function of the server process.
_OF_PROCESS: Final = re.compile(r"(?:FROM \(*|LATERAL )pg_\w+\(")
#: Views that have rows of their own: the values that they compute from each relation's counters are available here as a
#: whole.
_FILLED: Final = frozenset(
    (
        *("pg_stat_all_tables", "pg_stat_xact_all_tables", "pg_statio_all_tables", "pg_stat_bgwriter"),
        "pg_stat_database",
        *("pg_stat_subscription", "pg_stats_ext_exprs", "pg_stat_xact_user_functions"),
    )
)


@cache
def system_relations() -> tuple[SystemView, ...]:
    """All system relations, in the order of their oids."""
    columns = _columns()
    definitions = by_oid("views", "definition")
    found = []
    for row in rows("pg_class"):
        if row["relkind"] == "i":
            continue
        oid, name = int(str(row["oid"])), str(row["relname"])
        definition = definitions.get(oid, "")
        if _OF_PROCESS.search(definition) or name in _FILLED:
            definition = ""
        schema = "pg_catalog" if row["relnamespace"] == "11" else "information_schema"
        found.append(SystemView(oid, schema, name, columns[oid], definition))
    return tuple(found)


def _columns() -> dict[int, tuple[ColumnDefinition, ...]]:
    found: dict[int, list[ColumnDefinition]] = defaultdict(list)
    for row in rows("pg_attribute"):
        if int(str(row["attnum"])) > 0:
            kind = _type(int(str(row["atttypid"])))
            item = ColumnDefinition(str(row["attname"]), kind, row["attnotnull"] == "t")
            found[int(str(row["attrelid"]))].append(item)
    return {oid: tuple(items) for oid, items in found.items()}


def _type(oid: int) -> SqlType:
    """A column's type; arrays of system rows are represented by their text."""
    return type_by_oid(oid) if is_known(oid) else TEXT


@cache
def named(name: str) -> SystemView:
    """A relation of pg_catalog by name. Raises KeyError."""
    return _by_name()[name]


@cache
def _by_name() -> dict[str, SystemView]:
    return {item.name: item for item in system_relations() if item.schema == "pg_catalog"}

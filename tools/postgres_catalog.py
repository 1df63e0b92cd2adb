"""``python tools/postgres_catalog.py``: PostgreSQL's own system catalogs, written as data.

Starts a PostgreSQL (15 or newer, from the system's packages) in a temporary folder and writes the rows that initdb
makes of its system catalogs to ``catalog/postgres/*.tsv``: text COPY format with a header line, ordered by key. What
extensions add to them goes to ``catalog/postgres/extensions`` (``tools/postgres_extensions``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Catalog -> the order of its rows. Rows made by initdb have oids below 16384.
CATALOGS: Final = {
    "pg_type": "oid",
    "pg_cast": "castsource, casttarget",
    "pg_operator": "oid",
    "pg_proc": "oid",
    "pg_aggregate": "aggfnoid::oid",
    "pg_class": "oid",
    "pg_attribute": "attrelid, attnum",
    "pg_index": "indexrelid",
    "pg_constraint": "oid",
    "pg_am": "oid",
    "pg_amop": "oid",
    "pg_amproc": "oid",
    "pg_opclass": "oid",
    "pg_opfamily": "oid",
    "pg_collation": "oid",
    "pg_conversion": "oid",
    "pg_language": "oid",
    "pg_range": "rngtypid",
    "pg_ts_config": "oid",
    "pg_ts_config_map": "mapcfg, maptokentype, mapseqno",
    "pg_ts_dict": "oid",
    "pg_ts_parser": "oid",
    "pg_ts_template": "oid",
    "pg_description": "classoid, objoid, objsubid",
    "pg_settings": "name",
}
_NAMESPACES: Final = "('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
_RELATIONS: Final = f"(SELECT oid FROM pg_class WHERE relnamespace IN {_NAMESPACES} AND relkind IN ('r', 'v', 'i'))"
#: Types and functions of information_schema are left out, and so are toast tables.
_ONLY: Final = {
    "pg_type": "WHERE typnamespace = 'pg_catalog'::regnamespace",
    "pg_proc": "WHERE pronamespace = 'pg_catalog'::regnamespace",
    "pg_class": f"WHERE oid IN {_RELATIONS}",
    "pg_attribute": f"WHERE attrelid IN {_RELATIONS}",
    "pg_index": f"WHERE indexrelid IN {_RELATIONS}",
    "pg_constraint": f"WHERE conrelid IN {_RELATIONS}",
    "pg_collation": "WHERE collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_description": "WHERE classoid <> 'pg_extension'::regclass",
}
#: What PostgreSQL computes from its catalogs and shows as text.
COMPUTED: Final = {
    "views": "SELECT oid, pg_get_viewdef(oid) AS definition FROM pg_class "
    f"WHERE relkind = 'v' AND relnamespace IN {_NAMESPACES} ORDER BY oid",
    "signatures": "SELECT oid, pg_get_function_arguments(oid) AS arguments, "
    "pg_get_function_identity_arguments(oid) AS identity, pg_get_function_result(oid) AS result "
    "FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace ORDER BY oid",
    "index_definitions": f"SELECT indexrelid AS oid, pg_get_indexdef(indexrelid) AS definition FROM pg_index "
    f"WHERE indexrelid IN {_RELATIONS} ORDER BY 1",
    "keywords": "SELECT * FROM pg_get_keywords() ORDER BY 1",
    # An abbreviation's seconds east of Greenwich, or the zone that says what it meant when.
    "timezone_abbreviations": "SELECT item[1] AS abbrev, item[2] AS meaning, item[3] IS NOT NULL AS is_dst "
    "FROM pg_config, regexp_split_to_table(pg_read_file(setting || '/timezonesets/Default'), E'\\n') AS line, "
    "regexp_matches(line, '^([A-Z]+)\\s+(\\S+)(?:\\s+(D)\\M)?') AS item WHERE name = 'SHAREDIR' ORDER BY 1",
    "token_types": "SELECT * FROM ts_token_type('default') ORDER BY tokid",
    "encodings": "SELECT n AS encoding, pg_encoding_to_char(n) AS name FROM generate_series(0, 99) n "
    "WHERE pg_encoding_to_char(n) <> '' ORDER BY n",
}
#: reg* columns are written as numbers, so that a reader needs no catalog to read a catalog.
_NUMBERS: Final = ("regproc", "regprocedure", "regoper", "regoperator", "regtype", "regclass")
#: Planner trees are left out, and privileges name the server's one role.
_WRITTEN: Final = {"pg_node_tree": "NULL::text", "aclitem[]": "replace({0}::text, 'postgres', 'millstream')"}
#: What depends on the machine is not data; domains are shown as their base types, as the protocol does.
_INSTEAD: Final = {
    ("pg_settings", "setting"): "boot_val",
    ("pg_settings", "reset_val"): "boot_val",
    ("pg_settings", "source"): "'default'",
    ("pg_settings", "sourcefile"): "NULL",
    ("pg_settings", "sourceline"): "NULL",
    (
        "pg_attribute",
        "atttypid",
    ): "coalesce((SELECT nullif(typbasetype, 0) FROM pg_type WHERE oid = atttypid), atttypid)",
}


#: Rows as values, which Millstream has none of, in the definitions of views: what is written instead.
_APART: Final = (
    (
        r"information_schema\._pg_truetypid\(a\.\*, t\.\*\)",
        "CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END",
    ),
    (
        r"information_schema\._pg_truetypmod\(a\.\*, t\.\*\)",
        "CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END",
    ),
    (
        r"(information_schema\._pg_expandarray\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)) AS (\w+)",
        r"(\1).x AS \2_x, (\1).n AS \2_n",
    ),
    (r"\((ss)\.x\)\.(\w)", r"\1.x_\2"),
    (r"\(ta0\.tgat\)\.(\w)", r"ta0.tgat_\1"),
)


#: Columns of ours behind PostgreSQL's own: the progress of a query that runs pipeline by pipeline (millstream.queries).
_ADDED: Final = {
    "pg_stat_activity": {
        "query_pipelines": "int8",
        "query_finished": "int8",
        "query_progress": "float8",
        "query_rows": "int8",
        "query_bytes": "int8",
        "query_seconds_left": "float8",
    }
}


def add_columns(connection: Any) -> None:
    """System views of a server get columns of ours, so that all its catalogs know them."""
    connection.execute("SET allow_system_table_mods = on")
    for view, columns in _ADDED.items():
        ((definition,),) = connection.execute("SELECT pg_get_viewdef(%s::regclass)", [view]).fetchall()
        head, found, rest = definition.partition("\n   FROM ")
        more = "".join(f",\n    NULL::{kind} AS {name}" for name, kind in columns.items())
        connection.execute(f"CREATE OR REPLACE VIEW pg_catalog.{view} AS {head}{more}{found}{rest}")


def apart(definition: str) -> str:
    """A definition without rows as values."""
    for pattern, instead in _APART:
        definition = re.sub(pattern, instead, definition)
    return definition


def query_of(connection: Any, name: str, order: str) -> str:
    """The SELECT of a catalog's rows, in its columns' order."""
    columns = connection.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [f"pg_catalog.{name}"],
    ).fetchall()
    wanted = ", ".join(f"{_INSTEAD.get((name, item)) or _written(item, kind)} AS {item}" for item, kind in columns)
    return f"SELECT {wanted} FROM {name} {_ONLY.get(name, '')} ORDER BY {order}"


def _written(column: str, kind: str) -> str:
    return f"{column}::oid" if kind in _NUMBERS else _WRITTEN.get(kind, "{0}").format(column)


def conditions(connection: Any) -> Iterator[str]:
    """The names that errors have in PL/pgSQL with their SQLSTATEs, as generate-plerrcodes.pl takes them."""
    ((folder,),) = connection.execute("SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'").fetchall()
    yield "name\tstate\n"
    for line in (Path(folder) / "errcodes.txt").read_text().splitlines():
        state, kind, _, name = (*line.split(), "", "", "", "")[:4]
        if kind == "E" and name and not line.startswith(("#", "Section")):
            yield f"{name}\t{state}\n"


def main() -> int:
    """Writes the files; what has changed is for review."""
    sys.path.insert(0, str(ROOT))
    from tests.rig.postgres import Postgres
    from tools.postgres_extensions import write_extensions

    server = Postgres()
    try:
        with server.connect() as connection:
            add_columns(connection)
            queries = {name: query_of(connection, name, order) for name, order in CATALOGS.items()} | COMPUTED
            for name, query in queries.items():
                path = ROOT / "catalog" / "postgres" / f"{name}.tsv"
                with (
                    path.open("wb") as file,
                    connection.cursor().copy(f"COPY ({query}) TO STDOUT (HEADER)".encode()) as rows,
                ):
                    for piece in rows:
                        file.write(apart(bytes(piece).decode()).encode())
            (ROOT / "catalog" / "postgres" / "conditions.tsv").write_text("".join(conditions(connection)))
            write_extensions(connection, ROOT / "catalog" / "postgres" / "extensions")
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

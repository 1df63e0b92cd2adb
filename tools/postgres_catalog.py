"""``python tools/postgres_catalog.py``: PostgreSQL's own types, casts, operators and functions, written as data.

Starts a PostgreSQL (15 or newer, from the system's packages) in a temporary folder and writes the rows that initdb
makes of its system catalogs to ``catalog/postgres/*.tsv``: text COPY format with a header line, ordered by oid.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Catalog -> the order of its rows. Rows made by initdb have oids below 16384.
CATALOGS: Final = {
    "pg_type": "oid",
    "pg_cast": "castsource, casttarget",
    "pg_operator": "oid",
    "pg_proc": "oid",
    "pg_aggregate": "aggfnoid::oid",
}
#: information_schema's own types and functions are its private matter.
_ONLY: Final = {
    "pg_type": "WHERE typnamespace = 'pg_catalog'::regnamespace",
    "pg_proc": "WHERE pronamespace = 'pg_catalog'::regnamespace",
}
#: reg* columns are written as numbers, so that a reader needs no catalog to read a catalog.
_NUMBERS: Final = ("regproc", "regprocedure", "regoper", "regoperator", "regtype", "regclass")


def main() -> int:
    """Writes the files; what has changed is for review."""
    sys.path.insert(0, str(ROOT))
    from tests.rig.postgres import Postgres

    server = Postgres()
    try:
        with server.connect() as connection:
            for name, order in CATALOGS.items():
                columns = connection.execute(
                    "SELECT attname, atttypid::regtype::text FROM pg_attribute "
                    "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
                    [f"pg_catalog.{name}"],
                ).fetchall()
                wanted = ", ".join(f"{item}::oid" if kind in _NUMBERS else item for item, kind in columns)
                query = f"COPY (SELECT {wanted} FROM {name} {_ONLY.get(name, '')} ORDER BY {order}) TO STDOUT (HEADER)"
                path = ROOT / "catalog" / "postgres" / f"{name}.tsv"
                with path.open("wb") as file, connection.cursor().copy(query.encode()) as rows:
                    for piece in rows:
                        file.write(piece)
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The catalog in the tables' file: a complete document and changes after it equal the definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from executor.database.database import Database
from executor.definitions.stored_catalog import dump_catalog
from executor.tables.definitions import catalog_documents
from tests.executor.client import Client, open_database

DEFINITIONS = """
    CREATE SCHEMA s;
    CREATE TYPE mood AS ENUM ('low', 'high');
    CREATE DOMAIN positive AS int CHECK (value > 0);
    CREATE TYPE pair AS (a int, b text);
    CREATE TABLE t (id serial PRIMARY KEY, m mood DEFAULT 'low', p positive);
    CREATE TABLE s.u (id int REFERENCES t, x numeric UNIQUE);
    CREATE FOREIGN TABLE clicks (page text, n int) SERVER stream;
    CREATE VIEW counts AS SELECT page, sum(n) AS n FROM clicks GROUP BY page;
    CREATE VIEW plain AS SELECT id, m FROM t;
    CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1';
    CREATE ROLE reader;
    GRANT SELECT ON t TO reader;
    ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader;
    ALTER TABLE t ADD COLUMN more text DEFAULT 'x';
    ALTER TABLE t RENAME COLUMN more TO less;
    ALTER VIEW counts RENAME TO totals;
    CREATE INDEX by_less ON t (less);
    COMMENT ON TABLE t IS 'what it''s for';
    ALTER SCHEMA s RENAME TO r;
    DROP VIEW plain;
    ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high';
    CREATE SEQUENCE q;
    DROP SEQUENCE q;
    BEGIN;
    CREATE VIEW late AS SELECT page, count(*) FROM clicks GROUP BY page;
    ALTER VIEW late RENAME TO later;
    COMMIT;
"""


def _stored(database: Database) -> Any:
    """The catalog as a document, in which order and versions do not count."""
    document = json.loads(dump_catalog(database.core.catalog))
    del document["version"]
    return {name: sorted(map(json.dumps, items)) if isinstance(items, list) else items
            for name, items in document.items()}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 2000, 1 << 20])
def test_what_was_defined_is_there_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """The complete document is written at each long definition, sometimes, or never after the first."""
    monkeypatch.setattr(catalog_documents, "_FEW", few)
    database = open_database(tmp_path)
    client = Client(database)
    for text in DEFINITIONS.split(";\n"):
        client.run(text)
    before, kept = _stored(database), database.core.tables.catalog
    assert (len(kept.changes) > 20) == (few > 2000)
    database.close()
    database = open_database(tmp_path)
    assert _stored(database) == before
    assert database.core.tables.catalog == kept
    client = Client(database)
    client.run("INSERT INTO clicks VALUES ('a', 2), ('a', 3); INSERT INTO t (p) VALUES (5)")
    assert client.run("SELECT * FROM totals") == [("a", 5)]
    assert client.run("SELECT id, m::text, less, f(p) FROM t") == [(1, "low", "x", 6)]
    database.close()

"""Extensions and values of their types over restarts, from the log and from the stored catalog."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow

MEMBERS = (
    "SELECT t.oid, p.oid, extversion, obj_description(e.oid, 'pg_extension') FROM pg_type t, pg_proc p, pg_extension e"
    " WHERE typname = 'hstore' AND proname = 'akeys' AND extname = 'hstore'"
)


def test_extensions_outlive_restarts() -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as connection:
            connection.execute("CREATE EXTENSION hstore; COMMENT ON EXTENSION hstore IS 'pairs'")
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, h hstore DEFAULT 'a=>1', CHECK (NOT h ? 'no'))")
            connection.execute("CREATE VIEW v AS SELECT akeys(h) FROM t; INSERT INTO t VALUES (1)")
            first = connection.execute(MEMBERS).fetchall()
        server.kill9()
        server.start()
        with server.connect() as connection:
            assert connection.execute(MEMBERS).fetchall() == first
            connection.execute("INSERT INTO t VALUES (2)")
        server.restart()
        with server.connect() as connection:
            assert connection.execute(MEMBERS).fetchall() == first
            assert connection.execute("SELECT * FROM v").fetchall() == [(["a"],), (["a"],)]
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("INSERT INTO t VALUES (3, 'no=>1')")
            connection.execute("DROP EXTENSION hstore CASCADE")
        server.restart()
        with server.connect() as connection:
            assert connection.execute(MEMBERS).fetchall() == []
            assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1,), (2,)]
            with pytest.raises(psycopg.errors.UndefinedObject):
                connection.execute("SELECT 'a=>1'::hstore")

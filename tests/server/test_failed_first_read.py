"""After an error in the first read of a continuous view beside a table, later reads find the view's rows as usual."""

from __future__ import annotations

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow


def test_a_view_is_readable_after_its_first_read_failed() -> None:
    with Millstream(settings={"spark_enabled": False}) as server, server.connect() as client:
        client.execute("CREATE FOREIGN TABLE s (k int) SERVER stream")
        client.execute("CREATE TABLE t (a int)")
        groups = "(SELECT k, count(*) AS c FROM s GROUP BY k) AS g"
        client.execute(f"CREATE VIEW v AS SELECT sum(c / (SELECT count(*) FROM t)) AS share FROM {groups}".encode())
        client.execute("INSERT INTO s VALUES (1), (1)")
        for _ in range(2):
            with pytest.raises(psycopg.Error) as caught:
                client.execute("SELECT * FROM v")
            assert caught.value.sqlstate == "22012"
        client.execute("INSERT INTO t VALUES (1)")
        assert client.execute("SELECT share FROM v").fetchone() == (2,)

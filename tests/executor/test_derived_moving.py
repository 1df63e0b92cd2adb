"""Views that read no stream, beside views that move between servers: they stay, and read the others there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers
from tests.executor.moving import a as a
from tests.executor.moving import patient as patient
from tests.executor.moving import servers as servers

pytestmark = pytest.mark.slow

MADE = (
    "CREATE TABLE t (k int, name text); INSERT INTO t VALUES (0, 'zero'), (1, 'one');"
    "CREATE MATERIALIZED VIEW m AS SELECT k, name FROM t;"
    "CREATE MATERIALIZED VIEW over AS SELECT name, c FROM v JOIN m USING (k)"
)


def view_of(client: Client, name: str) -> View:
    """A view as it is defined now."""
    found = client.session.catalog.at("public", name)
    assert isinstance(found, View)
    return found


def test_they_stay(servers: Servers, a: Client) -> None:
    a.run(MADE)
    _ = servers["b"]
    migration = servers["a"].view_migration
    asked: tuple[Callable[[View], object], ...] = (
        lambda view: servers.migrate("a", "b", view.name),
        migration.suspend,
        migration.checkpoint,
    )
    for name in ("m", "over"):
        for ask in asked:
            with pytest.raises(SqlError) as raised:
                ask(view_of(a, name))
            assert raised.value.sqlstate == "0A000"
            assert "reads no stream" in raised.value.message
        assert migration.forget(view_of(a, name)) is False
    assert {runtime.view.name for runtime in migration.leaving()} == {"v"}
    assert len(a.run("SELECT * FROM m")) == 2


def test_they_read_views_that_are_elsewhere(servers: Servers, a: Client) -> None:
    a.run(MADE)
    a.run(
        "CREATE VIEW joined AS SELECT x.k, x.c, m.name FROM (SELECT k, count(*) AS c FROM s GROUP BY k) x"
        " JOIN m USING (k)"
    )
    rows = Rows()
    rows.insert(a, 5)
    wanted = "SELECT * FROM over ORDER BY name"
    assert a.run(wanted) == [("one", 2), ("zero", 2)]
    servers.migrate("a", "b")
    servers.migrate("a", "b", "joined")
    rows.insert(a, 3)
    a.run("UPDATE t SET name = 'null' WHERE k = 0")
    assert a.run(READ) == rows.wanted()
    assert a.run(wanted) == [("null", 3), ("one", 3)]
    assert a.run("SELECT c, name FROM joined ORDER BY name") == [(3, "null"), (3, "one")]
    servers.migrate("b", "a", "joined")
    servers.migrate("b", "a")
    rows.insert(a, 1)
    assert a.run(wanted) == [("null", 3), ("one", 3)]
    assert a.run("SELECT c, name FROM joined ORDER BY name") == [(3, "null"), (3, "one")]
    servers.stop("a")
    a = servers.client("a")
    assert a.run(wanted) == [("null", 3), ("one", 3)]
    a.run("DROP TABLE t CASCADE")

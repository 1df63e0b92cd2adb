"""Continuous views that read tables whenever they are read, between servers: the tables stay at home."""

from __future__ import annotations

import pytest

from catalog.errors import SqlError
from catalog.objects import View
from tests.executor.client import Client
from tests.executor.moving import Servers

pytestmark = pytest.mark.slow

SETUP = """
    CREATE FOREIGN TABLE posts (uid int, n int) SERVER stream;
    CREATE TABLE users (id int PRIMARY KEY, name text, note text);
    INSERT INTO users VALUES (1, 'Ada', 'x'), (2, 'Bob', 'x');
    CREATE VIEW w AS SELECT u.name, g.c FROM users u
        JOIN (SELECT uid, count(*) AS c FROM posts GROUP BY uid) g ON g.uid = u.id;
"""
READ = "SELECT * FROM w ORDER BY name"


@pytest.fixture
def home(servers: Servers) -> Client:
    client = servers.client("a")
    client.run(SETUP)
    client.run("INSERT INTO posts VALUES (1, 1), (2, 1), (2, 1), (3, 1)")
    return client


def test_it_rests_at_home(servers: Servers, home: Client) -> None:
    for end in ("", "restart"):
        view = servers["a"].catalog.require("w")
        assert isinstance(view, View)
        servers["a"].view_moving.suspend(view)
        if end:
            servers.stop("a")
        home = servers.client("a")
        with pytest.raises(SqlError, match='55000: view "w" is suspended'):
            home.run(READ)
        with pytest.raises(SqlError, match='55000: relation "users" is in use by a suspended view'):
            home.run("ALTER TABLE users ADD COLUMN more int")
        home.run("UPDATE users SET name = name || '!' WHERE id = 1; INSERT INTO posts VALUES (1, 1)")
        (owned,) = servers["a"].view_moving.suspended()
        servers["a"].view_moving.resume(owned, lambda: False)
    assert home.run(READ) == [("Ada!!", 3), ("Bob", 2)]
    home.run("ALTER TABLE users RENAME name TO called")
    assert home.run(READ) == [("Ada!!", 3), ("Bob", 2)]

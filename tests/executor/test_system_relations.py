"""System relations read from a database in this process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.executor.client import Client, open_database


@pytest.mark.slow
def test_oids_stay_over_a_restart(tmp_path: Path) -> None:
    query = "SELECT oid, relname FROM pg_class WHERE oid >= 16384 ORDER BY oid"
    found = []
    for made in ("CREATE TABLE kept (id int PRIMARY KEY, v text UNIQUE)", "SELECT 1"):
        with contextlib.closing(open_database(tmp_path)) as database:
            client = Client(database)
            client.run(made)
            found.append(client.run(query))
    assert found[0] == found[1]
    assert sorted(row[1] for row in found[0]) == ["kept", "kept_pkey", "kept_v_key"]


def test_a_transaction_sees_its_own_relations(tmp_path: Path) -> None:
    with contextlib.closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run("BEGIN; CREATE TABLE mine (id int)")
        query = "SELECT relname FROM pg_class WHERE relname = 'mine'"
        assert client.run(query) == [("mine",)]
        assert other.run(query) == []
        client.run("ROLLBACK")
        assert client.run(query) == []

"""The catalog changes of two transactions, merged."""

from __future__ import annotations

import pytest

from catalog.catalog import Catalog
from catalog.merge import merged
from catalog.objects import Schema, Table
from catalog.values.errors import SqlError


def table(oid: int, name: str) -> Table:
    return Table(oid, name, ())


def test_changes_of_different_objects_are_both_there() -> None:
    base = Catalog().add(table(20000, "a")).add(table(20001, "b"))
    mine = base.add(table(20002, "c")).drop(20000)
    theirs = base.add(table(20005, "d")).change(table(20001, "e")).add(Schema(20006, "s"))
    for found in (merged(base, mine, theirs), merged(base, theirs, mine)):
        assert {item.name for item in found.objects.values()} == {"c", "d", "e"}
        assert found.at("public", "e") == table(20001, "e") and found.at("public", "b") is None
        assert "s" in found.schemas and found.next_oid == 20007
        assert found.version > max(mine.version, theirs.version)
    assert merged(base, mine, base) is mine and merged(base, base, theirs) is theirs


def test_changes_of_one_object_and_one_name_are_refused() -> None:
    base = Catalog().add(table(20000, "a"))
    for mine, theirs in (
        (base.change(table(20000, "b")), base.change(table(20000, "c"))),
        (base.drop(20000), base.change(table(20000, "c"))),
        (base.add(table(20001, "n")), base.add(table(20002, "n"))),
    ):
        with pytest.raises(SqlError) as caught:
            merged(base, mine, theirs)
        assert caught.value.sqlstate == "40001"

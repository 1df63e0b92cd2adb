"""Forged documents, as an attacker who can compute checksums could write them: of the right form, with one wrong
part."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from catalog.values.errors import SqlError
from executor.moving import guests
from executor.moving import view_artifact as of_views
from executor.traces.artifact_manifest import digest
from tests.executor.client import Client
from tests.executor.moving import Servers

#: Values to put in place of others.
_STRANGE: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 1 << 31, 1 << 63, 10**30, 0.5, float("nan"), float("inf"), 1e308),
    *("", "x", "0", "../../x", "/etc/passwd", "a\0b", "\ud800", "'; DROP TABLE t; --", '") AS x; --', "x" * 100_000),
    *([], {}, [[]], [None], {"n": 0}, {"n": -1}, {"c": 0}, {"f": "nan"}, {"p": ["Path", 1, []]}, {"$": "SqlType"}),
    {"$": "decimal", "v": "1e999999"},
    {"$": "datetime", "v": "0001-01-01T00:00:00+14:00"},
    {"$": "bytes", "v": "00"},
)
_CALLS: Final = ("pg_read_file", "nextval", "pg_notify", "current_setting", "read_text", "lo_export", "add", "row")
Place = tuple[Any, Any]


def places(value: Any) -> Iterator[Place]:
    """All objects and lists of a document, each with its keys or indexes."""
    stack = [value]
    while stack:
        item = stack.pop()
        found = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        for key, below in found:
            yield item, key
            stack.append(below)


def forged(document: Any, chance: random.Random) -> Any:
    """A copy with one or a few changes."""
    found = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        known = list(places(found))
        _change(*chance.choice(known), known, chance)
    return found


def _change(item: Any, key: Any, known: list[Place], chance: random.Random) -> None:
    match chance.randrange(6):
        case 0:
            del item[key]
        case 1:  # another part of the same document
            other, place = chance.choice(known)
            item[key] = copy.deepcopy(other[place])
        case 2 if isinstance(item[key], int):
            item[key] += chance.choice((-1, 1, 1 << 40))
        case 3 if isinstance(item[key], str):
            item[key] = chance.choice((*_CALLS, item[key] + "x", item[key].upper()))
        case 4 if isinstance(item, list):
            item.insert(key, copy.deepcopy(item[key]))
        case _:
            item[key] = copy.deepcopy(chance.choice(_STRANGE))


class Given:
    """A view on its way to a server, which looks at it when the test lets it."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        for name in "ab":
            servers[name].view_migration.close()
        self.database = servers["b"]
        (runtime,) = servers["a"].core.runtimes()
        given = servers["a"].view_migration._export.hand_over(runtime, "b")
        self._name = given.name
        self.path = folder / "storage/views" / given.name / given.handover / "manifest.json"
        self.view = json.loads(self.path.read_bytes())["view"]

    def outcome(self, view: Any) -> str:
        """The SQLSTATE of continuing the view, '' if it has rows."""
        self.path.write_bytes(json.dumps({"format": 1, "sha256": digest(view), "view": view}).encode())
        owned = self.database.view_migration.ownership.get(self._name)
        assert owned is not None
        try:
            guests.create_guest(
                self.database.view_migration._services, owned, of_views.read(self.database.core.shared.folder, owned)
            )
        except SqlError as error:
            return error.sqlstate
        (runtime,) = self.database.core.runtimes()
        try:
            Client(self.database).run(f'SELECT * FROM "{runtime.view.name}"')
        finally:
            guests.drop_guest(self.database.view_migration._services, runtime)
        return ""

"""Queries over user-defined types leave, and continue where these types are the same, different, or missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.queries.client import Client as Asker
from planner.statements.statement import Query
from protocol.values.registry import encode_binary, encode_text
from tests.executor.client import Client, open_database
from tests.executor.separating import Asked, Leaving, leave, separable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("everywhere"), pytest.mark.sample(9)]

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');"
    "CREATE TYPE spot AS (city text, mood mood, since interval, x numeric(10,2))"
)
TABLE = (
    "CREATE TABLE f (id int PRIMARY KEY, k int, m mood, p spot, ms mood[], ps spot[], h hstore);"
    "INSERT INTO f SELECT g, g % 50, (ARRAY['sad', 'ok', 'happy', NULL]::mood[])[1 + g % 4],"
    " CASE WHEN g % 5 > 0 THEN ROW('c' || g % 7, (ARRAY['happy', 'sad']::mood[])[1 + g % 2], make_interval(mins => g),"
    " g / 4.0)::spot END, CASE WHEN g % 3 > 0 THEN ARRAY['happy', NULL, 'ok']::mood[] END,"
    " ARRAY[ROW('x,y', 'sad', NULL, g % 3)::spot, NULL], hstore('g', (g % 3)::text) FROM generate_series(1, 400) g"
)
#: Queries with the types of their columns, and with their types on a server without these user-defined types.
QUERIES = {
    "in an enum's order": (
        "SELECT m, n FROM (SELECT m, count(*) AS n FROM f GROUP BY m) g ORDER BY m DESC, n",
        ("mood", "bigint"),
        ("text", "bigint"),
    ),
    "the least and the greatest": (
        "SELECT k, a, b FROM (SELECT k, min(m) AS a, max(m) AS b FROM f GROUP BY k) g ORDER BY a, b, k LIMIT 9",
        ("integer", "mood", "mood"),
        ("integer", "text", "text"),
    ),
    "an enum's text": (
        "SELECT m::text, n FROM (SELECT m, count(*) AS n FROM f GROUP BY m) g WHERE m > 'sad' ORDER BY m",
        ("text", "bigint"),
        ("text", "bigint"),
    ),
    "an enum from a text": (
        "SELECT (CASE WHEN n > 7 THEN 'ok' ELSE 'sad' END)::mood, count(*) FROM "
        "(SELECT k % 7, count(*) AS n FROM f GROUP BY 1) g GROUP BY 1 ORDER BY 1",
        ("mood", "bigint"),
        ("text", "bigint"),
    ),
    "all labels": (
        "SELECT k, enum_range(NULL::mood) FROM (SELECT k FROM f GROUP BY k) g ORDER BY k LIMIT 2",
        ("integer", "mood[]"),
        ("integer", "text[]"),
    ),
    "rows of a type": (
        "SELECT k, p, n FROM (SELECT k, p, count(*) AS n FROM f GROUP BY k, p) g ORDER BY k, p LIMIT 20",
        ("integer", "spot", "bigint"),
        ("integer", "text", "bigint"),
    ),
    "fields": (
        "SELECT (p).mood, n, (p).x FROM (SELECT p, count(*) AS n FROM f GROUP BY p) g ORDER BY 1, 2, 3 LIMIT 20",
        ("mood", "bigint", "numeric(10,2)"),
        ("text", "bigint", "numeric(10,2)"),
    ),
    "arrays": (
        "SELECT ms, ps, n FROM (SELECT ms, ps, count(*) AS n FROM f GROUP BY ms, ps) g ORDER BY ms, ps, n",
        ("mood[]", "spot[]", "bigint"),
        ("text[]", "text[]", "bigint"),
    ),
    "arrays of groups": (
        "SELECT k, array_agg(m ORDER BY m DESC), array_agg(p ORDER BY id) FROM f GROUP BY k ORDER BY k",
        ("integer", "mood[]", "spot[]"),
        ("integer", "text[]", "text[]"),
    ),
    "rows of a table": (
        "SELECT k, f FROM (SELECT k, f, max(id) OVER (PARTITION BY k) AS last FROM f) d WHERE (f).id = last ORDER BY k",
        ("integer", "f"),
        ("integer", "text"),
    ),
    "rows of no type": (
        "SELECT ROW(m, p, n, ms) FROM (SELECT m, p, ms, count(*) AS n FROM f GROUP BY m, p, ms) g ORDER BY n, m, p",
        ("record",),
        ("text",),
    ),
    "documents": (
        "SELECT row_to_json(g) FROM (SELECT m, p, count(*) AS n FROM f GROUP BY m, p) g ORDER BY n, m, p LIMIT 5",
        ("json",),
        ("json",),
    ),
    "of an extension": (
        "SELECT h, n FROM (SELECT h, count(*) AS n FROM f GROUP BY h) g ORDER BY h::text",
        ("hstore", "bigint"),
        ("text", "bigint"),
    ),
}
BY_MOOD, MOODS = QUERIES["in an enum's order"][0], [(None, "100"), ("happy", "100"), ("ok", "100"), ("sad", "100")]
BY_SPOT = QUERIES["rows of a type"][0]
#: With three pipelines.
THREE = (
    "SELECT a.m, a.n, b.p FROM (SELECT m, count(*) AS n FROM f GROUP BY m) a JOIN "
    "(SELECT (p).mood AS m, (array_agg(p ORDER BY p, id))[1] AS p FROM f GROUP BY 1) b ON a.m = b.m ORDER BY a.m DESC"
)
Shown = tuple[tuple[str, ...], list[tuple[str | None, ...]]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    """The server that queries leave; one with the same types with other oids and places; and one without them."""
    found = {name: open_database(tmp_path_factory.mktemp(name)) for name in ("first", "same", "bare")}
    Client(found["first"]).run(f"CREATE EXTENSION hstore; {TYPES}; {TABLE}")
    Client(found["same"]).run(
        "CREATE TYPE taken AS ENUM (); CREATE TYPE mood AS ENUM ('happy'); ALTER TYPE mood ADD VALUE 'sad' BEFORE "
        "'happy'; ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'; ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy';"
        "CREATE TYPE spot AS (city text, mood mood, since interval, x numeric(10,2)); CREATE EXTENSION hstore;"
        "CREATE TABLE f (id int PRIMARY KEY, k int, m mood, p spot, ms mood[], ps spot[], h hstore)"
    )
    yield found
    for database in found.values():
        database.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path / "one")
    Client(database).run(f"CREATE EXTENSION hstore; {TYPES}; {TABLE}")
    yield database
    database.close()


def shown(client: Client, query: str) -> Shown:
    """The types and texts that a client sees, which also asks for binary values; the types must be in pg_type."""
    statement = client.bind(query)
    assert isinstance(statement, Query)
    kinds = [item.type for item in statement.outputs]
    rows: list[tuple[str | None, ...]] = []
    for batch in client.session.execute(statement).batches or ():
        columns = list(zip(batch.columns, kinds, strict=True))
        assert [len(encode_binary(*item)) for item in columns] == [batch.num_rows] * len(columns)
        rows += zip(*(encode_text(*item).to_pylist() for item in columns), strict=True)
    for kind in kinds:
        assert client.run(f"SELECT count(*) FROM pg_type WHERE oid = {kind.oid}") == [(1,)], kind
    return tuple(map(str, kinds)), rows


def left(database: Database, query: str, monkeypatch: pytest.MonkeyPatch, after: int = 1) -> str:
    with monkeypatch.context() as patch:
        Asked(patch, after)
        found = leave(separable(database), query)
    assert found is not None
    return found


def rest(query_id: str) -> str:
    return f"SELECT * FROM millstream.resume('{query_id}')"


def carry(query_id: str, source: Database, target: Database) -> None:
    folders = [database.core.options.shared_directory / "queries" / query_id for database in (source, target)]
    shutil.copytree(*folders)


@pytest.mark.parametrize("name", QUERIES)
def test_values_of_users_types(name: str, servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch) -> None:
    query, kinds, texts = QUERIES[name]
    client = separable(servers["first"])
    wanted = shown(client, query)
    assert wanted[0] == kinds
    query_id = left(servers["first"], query, monkeypatch)
    assert shown(client, rest(query_id)) == wanted
    for other in ("same", "bare"):
        carry(query_id, servers["first"], servers[other])
        found = shown(Client(servers[other]), rest(query_id))
        assert found == (kinds if other == "same" else texts, wanted[1]), other


def test_numbers_of_relations_are_named_by_their_own_server_only(
    servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT t, n FROM (SELECT tableoid::regclass AS t, count(*) AS n FROM f GROUP BY 1) g ORDER BY n"
    wanted = shown(separable(servers["first"]), query)
    query_id = left(servers["first"], query, monkeypatch)
    carry(query_id, servers["first"], servers["same"])
    assert shown(Client(servers["first"]), rest(query_id)) == wanted
    (number,) = Client(servers["first"]).run("SELECT 'f'::regclass::oid::text")[0]
    assert shown(Client(servers["same"]), rest(query_id)) == (("oid", "bigint"), [(number, wanted[1][0][1])])


def test_a_role_on_another_server_is_known_by_name(
    servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers of two storages may have the same name, but a role's number is different there."""
    for name, roles in (("first", ("one", "two")), ("same", ("two", "one"))):
        for role in roles:
            Client(servers[name]).run(f"CREATE ROLE {role}; GRANT SELECT ON f TO {role}")
    asking = separable(servers["first"])
    asking.session.reader.client = lambda: Asker(7, "one", BY_MOOD)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(asking, BY_MOOD)
    assert query_id is not None
    carry(query_id, servers["first"], servers["same"])
    for name in ("first", "same"):
        for role, may in (("one", True), ("two", False)):
            client = Client(servers[name])
            client.session.reader.client = partial(Asker, 7, role)
            if may:
                assert shown(client, rest(query_id))[1] == MOODS
            else:
                with pytest.raises(SqlError, match="must be owner"):
                    client.run(rest(query_id))


def test_a_query_leaves_at_each_stop(servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch) -> None:
    """The query keeps the types with which it began, wherever it continues."""
    wanted = shown(separable(servers["first"]), THREE)
    assert [row[0] for row in wanted[1]] == ["happy", "sad"]
    query_id = left(servers["first"], THREE, monkeypatch)
    carry(query_id, servers["first"], servers["same"])
    stops = 0
    while True:
        with monkeypatch.context() as patch:
            Leaving(patch, 1)
            if leave(Client(servers["same"]), rest(query_id)) is None:
                break
        stops += 1
        servers["same"].separation.stored.paths(servers["same"].separation.stored.get(query_id))
    assert stops
    assert shown(Client(servers["same"]), rest(query_id)) == wanted


CHANGED = {
    "a label at the end": ("ALTER TYPE mood ADD VALUE 'elated'", "mood"),
    "a label in between": ("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'", "mood"),
    "a comment": ("COMMENT ON TYPE mood IS 'of people'", "mood"),
    "another name of a label": ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "text"),
    "its name for another label": (
        "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'; ALTER TYPE mood ADD VALUE 'ok' BEFORE 'fine'",
        "mood",
    ),
    "another order": ("ALTER TYPE mood RENAME VALUE 'sad' TO 'x'; ALTER TYPE mood ADD VALUE 'sad'", "text"),
    "another name": ("ALTER TYPE mood RENAME TO temper", "text"),
    "another schema": ("CREATE SCHEMA s; ALTER TYPE mood SET SCHEMA s", "text"),
    "no type": ("DROP TABLE f; DROP TYPE spot; DROP TYPE mood", "text"),
    "a type anew": (
        "DROP TABLE f; DROP TYPE spot; DROP TYPE mood; CREATE TYPE mood AS ENUM ('x', 'sad', 'ok', 'happy')",
        "mood",
    ),
    "a type anew in another order": (
        "DROP TABLE f; DROP TYPE spot; DROP TYPE mood; CREATE TYPE mood AS ENUM ('happy', 'ok', 'sad')",
        "text",
    ),
    "a domain of its name": ("DROP TABLE f; DROP TYPE spot; DROP TYPE mood; CREATE DOMAIN mood AS text", "text"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_enum_changes_meanwhile(name: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    change, kind = CHANGED[name]
    query_id = left(database, BY_MOOD, monkeypatch)
    Client(database).run(change)
    assert shown(Client(database), rest(query_id)) == ((kind, "bigint"), MOODS)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'", "spot"),
        ("COMMENT ON COLUMN spot.x IS 'of the x axis'", "spot"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "text"),
        ("ALTER TYPE spot RENAME ATTRIBUTE x TO y", "text"),
        ("DROP TABLE f; ALTER TYPE spot ADD ATTRIBUTE y int", "text"),
        ("DROP TABLE f; ALTER TYPE spot ALTER ATTRIBUTE x TYPE numeric(12,2)", "text"),
        ("DROP TABLE f; DROP TYPE spot", "text"),
    ],
)
def test_a_composite_type_changes_meanwhile(
    change: str, kind: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = shown(Client(database), BY_SPOT)[1]
    query_id = left(database, BY_SPOT, monkeypatch)
    Client(database).run(change)
    assert shown(Client(database), rest(query_id)) == (("integer", kind, "bigint"), wanted)


def test_a_query_over_what_is_left(servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch) -> None:
    """The query has the types of the server that is asked, matched by labels and not by their places."""
    query_id = left(servers["first"], BY_MOOD, monkeypatch)
    carry(query_id, servers["first"], servers["same"])
    client = Client(servers["same"])
    found = shown(client, f"SELECT m, n FROM ({rest(query_id)}) r WHERE m IN ('sad', 'happy', 'fine') ORDER BY m")
    assert found[1] == [("sad", "100"), ("happy", "100")]
    client.run(f"CREATE TABLE moods AS {rest(query_id)}")
    assert shown(client, "SELECT m FROM moods WHERE m < 'fine' ORDER BY m") == (("mood",), [("sad",), ("ok",)])
    client.run("DROP TABLE moods")


def test_what_a_column_comes_from_is_of_another_catalog(
    servers: dict[str, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT m FROM (SELECT DISTINCT m FROM f) g ORDER BY m"
    query_id = left(servers["first"], query, monkeypatch)
    for text, is_of_table in ((query, True), (rest(query_id), False)):
        statement = Client(servers["first"]).bind(text)
        assert isinstance(statement, Query)
        assert [(item.table > 0, item.attribute > 0) for item in statement.outputs] == [(is_of_table, is_of_table)]

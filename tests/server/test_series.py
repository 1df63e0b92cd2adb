"""Pipelined reads: byte for byte the answers of the ordinary path, wherever the bytes are cut and whatever has changed.

One client's statements are answered by their bytes where possible; the other client's ``Series`` does nothing, so that
each of its messages is handled.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.messages import Execute
from server.fastpath import pipelined_reads as series
from server.fastpath.pipelined_reads import Series
from server.messages import handlers as answers
from server.operations.config import Address, Config
from server.plans.answer_cache import Answered
from server.session.portals import Portal
from server.session.session import Session
from tests.rig.sampling import examples
from tests.server.in_process import House, Peer, opened, request
from tests.server.wire import FLUSH, SYNC, Message, bind, close, describe, execute, parse

POINT = "SELECT k, n, s FROM groups WHERE k = $1"
BY_TWO = "SELECT v, at FROM pairs WHERE a = $1 AND b = $2"
SMALL = "SELECT * FROM sums WHERE n > $1"
WHOLE = "SELECT * FROM sums"
ROW = "INSERT INTO taken VALUES ($1)"
PREPARED = {"point": POINT, "pair": BY_TWO, "small": SMALL, "whole": WHOLE, "row": ROW}
#: The end of the answer to a script.
END = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("data")
    config = replace(Config(), data=folder, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with opened(config, PREPARED) as made:
        made.owner.query("CREATE FOREIGN TABLE feed (k integer, t text) SERVER stream")
        made.owner.query("CREATE FOREIGN TABLE taken (a integer) SERVER stream")
        made.owner.query("CREATE VIEW groups AS SELECT k, count(*) AS n, max(t) AS s FROM feed GROUP BY k")
        made.owner.query("CREATE VIEW sums AS SELECT count(*) AS n, max(t) AS latest FROM feed")
        made.owner.query("CREATE TABLE pairs (a integer, b text, v numeric(8, 2), at timestamptz, PRIMARY KEY (a, b))")
        made.owner.query(
            "INSERT INTO pairs SELECT i, 'b' || i % 5, i * 1.5, now() FROM generate_series(1, 300) AS g (i)"
        )
        made.owner.query("INSERT INTO feed SELECT i % 20, 'text ' || i FROM generate_series(1, 200) AS g (i)")
        yield made


@pytest.fixture(autouse=True)
def no_one_stays(house: House) -> Iterator[None]:
    """Closes other clients, so that the server has room for every test's clients."""
    yield
    house.leave()


class Silent(Series):
    """Answers nothing."""

    def follow(self, portal: Portal, known: Answered) -> None:
        pass

    def answer(self, request: bytes) -> bytes | None:
        return None


def session_of(peer: Peer) -> Session:
    return cast(Session, peer.connection.handler)


def ordinary_peer(house: House) -> Peer:
    """A client whose messages are all handled."""
    peer = house.peer()
    peer.express.series = Silent(session_of(peer))
    return peer


def script(peer: Peer, *pieces: bytes) -> bytes:
    """The output for all pieces."""
    answer = peer.feed(*pieces, request(("Q", b"ROLLBACK\0")), request(("Q", b"SELECT 'the end'\0")))
    while not (answer.endswith(END) and b"the end" in answer[-64:]):
        answer += peer.feed()
    return answer


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[Execute]:
    """The Executes that were handled."""
    found: list[Execute] = []
    original = answers.HANDLERS[Execute]

    def handle(session: Session, message: Execute) -> object:
        found.append(message)
        return original(session, message)

    monkeypatch.setitem(answers.HANDLERS, Execute, handle)
    return found


def point(key: bytes | None, described: bool = True, name: str = "point") -> list[Message]:
    return [bind([key], name), *([describe("P")] if described else []), execute()]


def of_two(key: int, results: Sequence[int] = (1,)) -> list[Message]:
    values = [struct.pack(">i", key), b"b%d" % (key % 5)]
    return [bind(values, "pair", formats=[1, 0], results=results), describe("P"), execute()]


def parsed(key: bytes, text: str = POINT, oids: Sequence[int] = (23,)) -> list[Message]:
    return [parse(text, oids=oids), bind([key]), describe("P"), execute()]


def whole() -> list[Message]:
    return [bind((), "whole"), describe("P"), execute()]


N = 12
PIPELINES: dict[str, list[list[Message]]] = {
    "prepared": [point(b"%d" % key) for key in range(N)],
    "not described": [point(b"%d" % key, False) for key in range(N)],
    "described or not": [point(b"%d" % key, key % 3 > 0) for key in range(N)],
    "two values, binary": [of_two(key * 20) for key in range(N)],
    "other formats": [of_two(key, (1, key % 2)) for key in range(N)],
    "parsed once": [[parse(POINT)], *([bind([b"%d" % key]), execute()] for key in range(N))],
    "parsed each time": [parsed(b"%d" % key) for key in range(N)],
    "other types": [parsed(b"%d" % key, oids=(21 + key % 2 * 2,)) for key in range(N)],
    "other texts": [parsed(b"%d" % key, POINT if key % 2 else SMALL) for key in range(N)],
    "kept answers": [point(b"%d" % (key % 3), name="small") for key in range(N)],
    "no values": [whole() for _ in range(N)],
    "many statements": [part for key in range(4) for part in (point(b"%d" % key), of_two(key), whole())],
    "a batch each": [[*point(b"%d" % key), SYNC] for key in range(N)],
    "batches of some": [[*point(b"%d" % key), *([SYNC] if key % 3 == 2 else [])] for key in range(N)],
    "parsed batches": [[*parsed(b"%d" % key), SYNC] for key in range(N)],
}


def joined(parts: Sequence[Sequence[Message]]) -> bytes:
    """One piece of bytes that ends with Sync."""
    messages = [message for part in parts for message in part]
    return request(*messages, *([] if messages[-1:] == [SYNC] else [SYNC]))


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_is_learned_and_its_answers_stay_the_same(house: House, name: str, handled: list[Execute]) -> None:
    peer, ordinary = house.peer(), ordinary_peer(house)
    data = joined(PIPELINES[name])
    for part in PIPELINES[name]:  # alone, if answers are kept
        assert script(peer, joined([part])) == script(ordinary, joined([part]))
    for _ in range(3):
        assert script(peer, data) == script(ordinary, data)
    handled.clear()
    assert script(peer, data) == script(ordinary, data)
    assert len(handled) == (2 * N if name == "other formats" else N)  # the other client's
    assert script(peer, data[:-3], data[-3:]) == script(ordinary, data)


@pytest.mark.parametrize("name", PIPELINES)
def test_it_comes_in_several_pieces(house: House, name: str) -> None:
    peer, ordinary = house.peer(), ordinary_peer(house)
    data = joined(PIPELINES[name])
    expected = script(ordinary, data)
    for place in range(1, len(data), 7):
        assert script(peer, data[:place], data[place : place + 90], data[place + 90 :]) == expected


WRONG: dict[str, list[Message]] = {
    "no value": point(b"x"),
    "NULL": point(None),
    "too many values": [bind([b"1", b"2"], "point"), execute()],
    "no such statement": [bind([b"1"], "none"), execute()],
    "no such portal": [execute("none")],
    "what is not a statement": [parse("SELEC 1"), bind(), execute()],
    "an error of the row": [parse("SELECT 1 / $1", oids=(23,)), bind([b"0"]), execute()],
    "a message that is cut": [("B", b"\0point\0\0\0\0\1\0\0\0\2")],
    "a length that is too long": [("B", b"\0point\0\0\0\0\1\0\0\0\x7f1\0\0"), execute()],
    "closed": [close("S", "point"), *point(b"1")],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("ends", [True, False])
def test_an_error_ends_the_batch(house: House, wrong: str, ends: bool) -> None:
    peer, ordinary = house.peer(), ordinary_peer(house)
    after = [SYNC] if ends else []
    parts = [point(b"1"), point(b"2"), WRONG[wrong], point(b"3"), [*point(b"4"), *after], point(b"5"), point(b"6")]
    for _ in range(3):
        assert script(peer, joined(parts)) == script(ordinary, joined(parts))


BETWEEN: dict[str, list[Message]] = {
    "a flush": [FLUSH],
    "a block": [parse("BEGIN"), bind(), execute()],
    "the block's end": [parse("ROLLBACK"), bind(), execute()],
    "a setting": [parse("SET TimeZone = 'Asia/Tokyo'"), bind(), execute()],
    "a query": [SYNC, ("Q", b"SET TimeZone = 'Asia/Tokyo'\0")],
    "a schema": [parse("SET search_path = pg_catalog"), bind(), execute()],
    "a temporary table": [parse("CREATE TEMP TABLE sums AS SELECT 1 AS n"), bind(), execute()],
    "a change": [parse("UPDATE pairs SET v = v + 0 WHERE a = 20 RETURNING v"), bind(), execute()],
    "a change in a block": [
        *(parse("BEGIN"), bind(), execute()),
        *(parse("UPDATE pairs SET v = -v WHERE a = 20"), bind(), execute()),
    ],
    "a row": [bind([b"1"], "row"), execute()],
    "another statement of this name": [close("S", "point"), parse("SELECT n FROM groups WHERE k = $1", "point")],
    "the same statement again": [close("S", "point"), parse(POINT, "point")],
    "the portal again": [describe("P"), execute()],
    "the portal's end": [close("P"), describe("P")],
    "a named portal": [bind([b"3"], "point", "named"), execute("named")],
    "some rows": [bind((), "whole"), execute("", 1), execute("", 1)],
    "an empty statement": [parse(""), bind(), describe("P"), execute()],
}


@pytest.mark.parametrize("between", BETWEEN)
def test_what_comes_between(house: House, between: str) -> None:
    peer, ordinary = house.peer(), ordinary_peer(house)
    for syncs in ([], [SYNC]):
        for parts in (
            [point(b"1"), of_two(20), point(b"2"), [*BETWEEN[between], *syncs], point(b"3"), of_two(20), point(b"4")],
            [whole(), whole(), [*whole(), *syncs], BETWEEN[between], [*whole(), *syncs], whole(), whole()],
            [point(b"1"), point(b"2"), [*BETWEEN[between], SYNC], [*point(b"5"), *syncs], point(b"5"), point(b"6")],
        ):
            assert script(peer, joined(parts)) == script(ordinary, joined(parts))
            for each in (peer, ordinary):
                each.query("RESET ALL")
                each.query("DROP TABLE IF EXISTS pg_temp.sums")


def test_what_others_change_in_the_middle(house: House) -> None:
    peer, ordinary, owner = house.peer(), ordinary_peer(house), house.owner
    text = "SELECT * FROM changing WHERE id = $1"
    changes = (
        "INSERT INTO changing VALUES (77, 'new')",
        "UPDATE changing SET t = 'changed'",
        "ALTER TABLE changing ALTER t SET DEFAULT 'x'",
        "ALTER TABLE changing ADD more integer DEFAULT 7",
        "DROP TABLE changing",
        "CREATE TABLE changing (id bigint PRIMARY KEY, t text, u text)",
    )
    owner.query("CREATE TABLE changing (id integer PRIMARY KEY, t text)")
    owner.query("INSERT INTO changing SELECT i, 'row ' || i FROM generate_series(1, 50) AS g (i)")
    for each in (peer, ordinary):
        each.ask(parse(text, "changing"), SYNC)
    parts = [[*point(b"%d" % key, name="changing"), *([SYNC] if key % 4 == 3 else [])] for key in range(70, 82)]
    data = joined(parts)
    half = len(request(*(message for part in parts[:6] for message in part)))
    for change in changes:
        for _ in range(3):
            assert script(peer, data) == script(ordinary, data)
        heads = [each.feed(data[:half], answers=1) for each in (peer, ordinary)]
        owner.query(change)
        tails = [script(each, data[half:]) for each in (peer, ordinary)]
        assert heads[0] + tails[0] == heads[1] + tails[1]
    owner.query("DROP TABLE changing")


def test_a_client_that_does_not_read_waits(house: House) -> None:
    peer = house.peer()
    script(peer, joined([point(b"0", name="small")]))
    data = joined([[bind([b"0"], "small"), execute()] for _ in range(400)])
    answer = [script(peer, data) for _ in range(3)][-1]
    peer.connection.pause_writing()
    assert peer.feed(data, answers=0) == b""
    assert peer.feed(answers=0) == b""
    peer.connection.resume_writing()
    assert script(peer) == answer


def test_memory_is_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "_MEMORY", 8 << 10)
    peer, sizes = house.peer(), []
    for number in range(10):
        text = f"SELECT n AS c{number} FROM groups WHERE k = $1"
        for _ in range(2):
            script(peer, joined([parsed(b"1", text)] * 3))
        sizes.append(peer.express.series.size)
    assert 8 << 10 < max(sizes) < 16 << 10
    assert sizes[-1] < max(sizes)


KEYS = st.sampled_from([b"1", b"2", b"3", b"12", b"+1", b" 2", b"x", b"", b"99999999999", None])
PARTS = st.one_of(
    st.builds(point, KEYS, st.booleans(), st.sampled_from(["point", "small"])),
    st.builds(of_two, st.sampled_from([0, 20, 21, 299]), st.sampled_from([(), (1,), (0, 1), (1, 0, 1)])),
    st.builds(parsed, KEYS.filter(bool), st.sampled_from([POINT, SMALL]), st.sampled_from([(), (23,), (20,), (25,)])),
    st.just(whole()),
)
ODD = st.sampled_from([*WRONG.values(), *BETWEEN.values(), [SYNC], [SYNC]])
RUNS = st.builds(
    lambda part, count, syncs: [*part, *([SYNC] if syncs else [])] * count, PARTS, st.integers(1, 5), st.booleans()
)


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(RUNS, RUNS, PARTS, ODD), min_size=1, max_size=16), st.lists(st.integers(0, 2000), max_size=4))
def test_any_pipeline_gets_the_same_answers(house: House, parts: list[list[Message]], places: list[int]) -> None:
    house.leave()
    peer, ordinary = house.peer(), ordinary_peer(house)
    data = joined(parts)
    cuts = [0, *sorted(place % len(data) for place in places), len(data)]
    pieces = [data[start:end] for start, end in pairwise(cuts) if end > start]
    assert script(peer, *pieces) == script(ordinary, data)
    for text in ("RESET ALL", "DISCARD TEMP"):
        assert peer.query(text) == ordinary.query(text)
    assert script(peer, data) == script(ordinary, data)


def test_what_is_parsed_within_a_request_is_not_what_it_began_with(house: House) -> None:
    """A request of which only the beginning is known is handled from its beginning."""
    peer, ordinary = house.peer(), ordinary_peer(house)
    other = "SELECT n FROM groups WHERE k = $1"
    unnamed = [bind([b"3"]), describe("P"), execute()]
    for each in (peer, ordinary):
        script(each, joined([parsed(b"1", other)] * 3))
        script(each, joined([[parse(POINT)], unnamed, unnamed, unnamed]))
    data = joined([unnamed, parsed(b"1", other), parsed(b"x", other)])
    for _ in range(2):
        for each in (peer, ordinary):
            script(each, joined([[parse(POINT)], unnamed]))
        assert script(peer, data) == script(ordinary, data)


def test_what_was_bound_before_a_setting(house: House) -> None:
    peer, ordinary, owner = house.peer(), ordinary_peer(house), house.owner
    owner.query("CREATE SCHEMA other")
    for schema, value in (("public", 1), ("other", 2)):
        owner.query(f"CREATE TABLE {schema}.twice (k integer PRIMARY KEY, v integer)")
        owner.query(f"INSERT INTO {schema}.twice VALUES (1, {value})")
    text = "SELECT v FROM twice WHERE k = $1"
    once = [bind([b"1"], "twice"), execute()]
    setting = [bind((), "setting", "set"), bind([b"1"], "twice"), execute("set"), execute()]
    for each in (peer, ordinary):
        each.ask(parse(text, "twice", (23,)), parse("SET search_path = other", "setting"), SYNC)
        each.ask(*once, *once, SYNC)
    data = joined([once, once, setting, once, once])
    for _ in range(3):
        assert script(peer, data) == script(ordinary, data)
        for each in (peer, ordinary):
            each.query("RESET search_path")
    owner.query("DROP SCHEMA other CASCADE")
    owner.query("DROP TABLE twice")

"""Express answers: byte for byte the answers of the ordinary path, whatever has changed in between.

One client's requests arrive in one piece; the other's in several pieces, so that they take the ordinary path.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.commit.files import Files
from protocol.decoder import Decoder
from protocol.messages import Malformed
from server.fastpath.recognised_requests import PointRead, RowChange
from server.operations.config import Address, Config
from server.plans.answer_cache import Answered
from tests.rig.sampling import examples
from tests.server.in_process import House, Peer, opened, request
from tests.server.wire import SYNC, bind, close, describe, execute, parse


def read(
    key: bytes | None, name: str = "point", describes: bool = True, binary: bool = False, results: tuple[int, ...] = ()
) -> bytes:
    """A read of one group by a prepared statement, as drivers send it."""
    data = key if key is None or not binary else struct.pack(">i", int(key))
    described = [describe("P")] if describes else []
    return request(bind([data], name, formats=[1] if binary else [], results=results), *described, execute(), SYNC)


def whole(name: str = "whole", describes: bool = True) -> bytes:
    """A read of all groups by a prepared statement."""
    return request(bind((), name), *([describe("P")] if describes else []), execute(), SYNC)


def row(key: bytes | None, text: bytes | None, describes: bool = True, binary: bool = False) -> bytes:
    """An INSERT of one row by a prepared statement, as drivers send it."""
    data = key if key is None or not binary else struct.pack(">i", int(key))
    described = [describe("P")] if describes else []
    return request(bind([data, text], "row", formats=[1, 0] if binary else []), *described, execute(), SYNC)


POINT = "SELECT k, n, s FROM groups WHERE k = $1"
WHOLE = "SELECT * FROM sums"
SMALL = "SELECT * FROM sums WHERE n > $1"
ROW_OF = "INSERT INTO taken VALUES ($1, $2, 'constant')"
TAKEN = "CREATE FOREIGN TABLE taken (k integer NOT NULL, t varchar(5), c text) SERVER stream"
VIEWS = (
    "CREATE VIEW counts AS SELECT k, t, c, count(*) FROM taken GROUP BY k, t, c",
    "CREATE VIEW groups AS SELECT k, count(*) AS n, max(t) AS s FROM feed GROUP BY k",
    "CREATE VIEW sums AS SELECT count(*) AS n, max(at) AS latest FROM feed",
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    config = replace(
        Config(), data=tmp_path_factory.mktemp("data"), listen=Address("127.0.0.1", 0), spark_enabled=False
    )
    with opened(config, {"point": POINT, "whole": WHOLE, "small": SMALL, "row": ROW_OF}) as made:
        made.owner.query("CREATE FOREIGN TABLE feed (k integer, t text, at timestamptz) SERVER stream")
        made.owner.query(TAKEN)
        for view in VIEWS:
            made.owner.query(view)
        made.owner.query("INSERT INTO feed VALUES (1, 'one', now()), (2, 'two', now()), (NULL, 'none', now())")
        yield made


@pytest.fixture(autouse=True)
def no_one_stays(house: House) -> Iterator[None]:
    """Closes other clients, so that the server has room for every test's clients."""
    yield
    house.leave()


def learned(peer: Peer, data: bytes) -> bytes:
    """The answer to a request, once it comes by the express path."""
    answer = b""
    for _ in range(3):
        answer = peer.feed(data)
    assert peer.is_express(data)
    assert peer.feed(data) == answer
    return answer


REQUESTS: dict[str, bytes] = {
    "query": request(("Q", b"SELECT * FROM sums\0")),
    "whole": whole(),
    "whole, not described": whole(describes=False),
    "point": read(b"1"),
    "point, not described": read(b"1", describes=False),
    "point, binary": read(b"1", binary=True, results=(1,)),
    "no such group": read(b"5"),
    "cached by value": read(b"0", "small"),
    "parsed": request(parse(WHOLE), bind(), describe("P"), execute(), SYNC),
    "parsed point": request(parse(POINT), bind([b"2"]), describe("P"), execute(), SYNC),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_learned_and_its_answer_stays_the_same(house: House, name: str) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = REQUESTS[name]
    assert learned(peer, data) == ordinary.feed(data[:7], data[7:])
    for _ in range(3):
        assert peer.feed(data) == ordinary.feed(data[:9], data[9:])
        assert not ordinary.is_express(data)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_row_that_has_arrived_is_in_the_next_answer(house: House, name: str) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = REQUESTS[name]
    for _ in range(3):
        before = learned(peer, data)
        house.owner.query("INSERT INTO feed VALUES (1, 'one', now()), (2, 'two', now())")
        after = peer.feed(data)
        assert after == ordinary.feed(data[:7], data[7:])
        assert after != before or name == "no such group"


def test_rows_of_other_streams_change_nothing(house: House) -> None:
    peer = house.peer()
    house.owner.query("CREATE FOREIGN TABLE other (a integer) SERVER stream")
    for data in (whole(), read(b"1")):
        answer = learned(peer, data)
        house.owner.query("INSERT INTO other VALUES (1)")
        assert peer.is_express(data)
        assert peer.feed(data) == answer
    house.owner.query("DROP FOREIGN TABLE other")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_view_that_is_dropped_and_made_again(house: House, name: str) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = REQUESTS[name]
    learned(peer, data)
    house.owner.query("DROP VIEW groups, sums, counts")
    assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    for view in VIEWS:
        house.owner.query(view.replace("max", "min"))
    house.owner.query("INSERT INTO feed VALUES (1, 'again', now())")
    assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    house.owner.query("DROP VIEW groups, sums, counts")
    for view in VIEWS:
        house.owner.query(view)
    house.owner.query("INSERT INTO feed VALUES (1, 'one', now()), (2, 'two', now()), (NULL, 'none', now())")


CHANGES: dict[str, tuple[bytes, ...]] = {
    "SET": (request(("Q", b"SET TimeZone = 'Asia/Tokyo'\0")),),
    "BEGIN": (request(("Q", b"BEGIN\0")),),
    "BEGIN and an error": (request(("Q", b"BEGIN\0")), request(("Q", b"SELECT 1/0\0"))),
    "DEALLOCATE": (request(("Q", b"DEALLOCATE ALL\0")),),
    "DISCARD": (request(("Q", b"DISCARD ALL\0")),),
    "closed and prepared again": (
        request(close("S", "point"), close("S", "whole"), close("S", "small"), SYNC),
        request(parse("SELECT n FROM groups WHERE k = $1", "point"), parse("SELECT latest FROM sums", "whole"), SYNC),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", REQUESTS)
def test_what_changes_a_requests_meaning(house: House, name: str, change: str) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = REQUESTS[name]
    learned(peer, data)
    for each in CHANGES[change]:
        assert peer.feed(each) == ordinary.feed(each[:3], each[3:])
    for _ in range(4):
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])


def test_a_parsed_request_makes_the_unnamed_statement(house: House) -> None:
    peer = house.peer()
    data = REQUESTS["parsed"]
    answer = learned(peer, data)
    peer.ask(parse("SELECT 1"), SYNC)
    assert peer.is_express(data)
    assert peer.feed(data) == answer
    assert peer.ask(bind(), describe("P"), execute(), SYNC) == answer[5:]


def test_an_open_portal_is_no_rest(house: House) -> None:
    peer = house.peer()
    learned(peer, REQUESTS["query"])
    peer.feed(request(parse("SELECT 1", "one"), bind(statement="one", portal="p"), ("H", b"")), answers=0)
    assert not peer.connection.at_rest
    peer.feed(REQUESTS["query"])
    assert not peer.connection.at_rest
    peer.ask(SYNC)
    assert peer.connection.at_rest


@pytest.mark.parametrize("key", [b"+1", b" 1 ", b"-1", b"1_0", b"x", b"", b"0001", b"9999999999", "١".encode(), None])
def test_unusual_values_are_read_as_ever(house: House, key: bytes | None) -> None:
    peer, ordinary = house.peer(), house.peer()
    for usual in (b"1", b"12", b"123", b"12345678", b"1234567890"):
        learned(peer, read(usual))
    data = read(key)
    for _ in range(3):
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])


def test_nothing_is_answered_while_the_client_does_not_read(house: House) -> None:
    peer = house.peer()
    data = read(b"1")
    answer = learned(peer, data)
    peer.connection.pause_writing()
    peer.feed(data, data, data, answers=0)
    assert peer.feed(answers=0) == b""
    peer.connection.resume_writing()
    assert peer.feed(answers=3) == answer * 3
    assert peer.is_express(data)


def test_an_unexpected_error_sends_the_request_the_ordinary_way(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(point: PointRead, fields: tuple[bytes, ...]) -> None:
        raise RuntimeError("on purpose")

    peer = house.peer()
    data = read(b"1")
    answer = learned(peer, data)
    with monkeypatch.context() as changed:
        changed.setattr(PointRead, "answer", broken)
        assert peer.feed(data) == answer
    assert learned(peer, data) == answer


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bytes | None]:
    """The result of inserts by the express path: empty if they were taken, None if not."""
    found: list[bytes | None] = []
    original = RowChange.answer

    def answer(insert: RowChange, fields: tuple[bytes, ...]) -> bytes | None:
        found.append(original(insert, fields))
        return found[-1]

    monkeypatch.setattr(RowChange, "answer", answer)
    return found


ODD = "SELECT count(*) FROM counts WHERE count % 2 = 1"


def counts(house: House) -> bytes:
    """The number of inserted rows."""
    return house.owner.query("SELECT k, t, c, count FROM counts ORDER BY k, t")


@pytest.mark.parametrize("describes", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_rows_are_taken(house: House, taken: list[bytes | None], describes: bool, binary: bool) -> None:
    peer, ordinary = house.peer(), house.peer()
    for number in range(4):
        data = row(b"%d" % (70 + number), b"%d" % number, describes, binary)
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    assert taken == [b""] * 3
    found = counts(house)
    for number in range(4):
        assert b"%d" % (70 + number) in found
    data = row(b"75", b"x", describes, binary)
    answer = peer.feed(data)
    assert peer.feed(data, data, data, answers=3) == answer * 3  # the first is being processed when the others arrive
    assert peer.feed(data) == answer
    assert taken == [b""] * 6


def test_a_tables_row_is_changed(house: House, taken: list[bytes | None]) -> None:
    peer, ordinary, owner = house.peer(), house.peer(), house.owner
    owner.query("CREATE TABLE changed (k int PRIMARY KEY, n int)")
    owner.query("INSERT INTO changed VALUES (1, 0), (2, 0)")
    update = "UPDATE changed SET n = n + 1 WHERE k = $1"
    for each in (peer, ordinary):
        each.feed(request(parse(update, "update"), SYNC))

    def change(key: bytes) -> bytes:
        return request(bind([key], "update"), describe("P"), execute(), SYNC)

    for _ in range(6):  # until the rows are in memory
        assert peer.feed(change(b"1")) == ordinary.feed(change(b"2")[:7], change(b"2")[7:])
    assert b"" in taken
    for key in (b"7", b"x", b"", b"1"):
        data = change(key)
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    owner.query("UPDATE changed SET n = 2147483647")
    assert peer.feed(change(b"1")) == ordinary.feed(change(b"1")[:7], change(b"1")[7:])
    owner.query("DROP TABLE changed")
    assert peer.feed(change(b"1")) == ordinary.feed(change(b"1")[:7], change(b"1")[7:])


@pytest.mark.parametrize("key", [b"1", b"+1", b"x", b"", b"9999999999", None])
@pytest.mark.parametrize("text", [b"", b"abc  ", b"abc    ", b"abcdef", b"\xff", b"'\\", None])
def test_rows_of_unusual_values(house: House, key: bytes | None, text: bytes | None) -> None:
    peer, ordinary = house.peer(), house.peer()
    before = house.owner.query(ODD)
    usual = row(key or b"8", b"a" * len(text or b""))
    for data in (usual, usual, row(key, text), usual, row(key, text)):
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:-5], data[-5:])  # Sync after Execute's answer
    assert house.owner.query(ODD) == before  # both peers behave alike, so the number is even


@pytest.mark.parametrize("change", [*CHANGES, "read only"])
def test_what_changes_an_inserts_meaning(house: House, change: str) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = row(b"5", b"x")
    for each in (peer, ordinary):
        each.feed(data)
        each.feed(data)
    before = counts(house)
    read_only = (request(("Q", b"SET default_transaction_read_only = on\0")),)
    for each in CHANGES.get(change, read_only):
        assert peer.feed(each) == ordinary.feed(each[:3], each[3:])
    for _ in range(3):
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    house.leave()  # including open transactions
    assert (counts(house) == before) == (change not in ("SET", "closed and prepared again"))


def test_a_stream_that_is_dropped_and_made_again_takes_rows(house: House, taken: list[bytes | None]) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = row(b"6", b"x")
    for _ in range(3):
        peer.feed(data)
    house.owner.query("DROP VIEW counts")
    house.owner.query("DROP FOREIGN TABLE taken")
    assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    house.owner.query(TAKEN.replace("5", "6"))
    house.owner.query(VIEWS[0])
    for _ in range(3):
        assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    assert b"\x00\x00\x00\x016" in counts(house)
    assert None not in taken


def test_a_client_that_leaves_does_not_take_its_row_along(house: House) -> None:
    peer = house.peer()
    data = row(b"91", b"x")
    for _ in range(3):
        peer.feed(data)
    peer.feed(data, request(("X", b"")), answers=0)
    while not peer.pipe.closed:
        peer.feed(answers=0)
    assert b"\x00\x00\x00\x014" in counts(house)


class Full(Files):
    """A disk without space."""

    def write(self, descriptor: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        raise OSError(errno.ENOSPC, "on purpose")


def test_a_full_disk_refuses_the_row_and_nothing_else(
    house: House, taken: list[bytes | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, ordinary = house.peer(), house.peer()
    data = row(b"92", b"x")
    for each in (peer, ordinary):
        each.feed(data)
        each.feed(data)
    before = counts(house)
    log = peer.session.db.database.core.log
    with monkeypatch.context() as changed:
        changed.setattr(log, "_files", Full())
        changed.setattr(log, "_erase", lambda target: None)  # this disk could not even store zeros
        refused = peer.feed(data)
        assert b"53100" in refused
        assert refused == ordinary.feed(data[:7], data[7:])
    assert counts(house) == before
    assert peer.feed(data) == ordinary.feed(data[:7], data[7:])
    assert taken == [b""] * 4


@pytest.mark.slow
def test_memory_is_bounded(house: House) -> None:
    peer = house.peer()
    sizes = []
    for number in range(500):
        data = request(("Q", b"SELECT * FROM sums WHERE n > %d\0" % -number))
        peer.feed(data)
        peer.feed(data)
        sizes.append(peer.express.size)
    assert max(sizes) < 300_000
    assert sizes[-1] < max(sizes)
    assert learned(peer, REQUESTS["query"])


KEYS = st.sampled_from([b"1", b"2", b"3", b"12", b"+1", b" 2", b"x", b"", b"99999999999", None])
READS = st.one_of(
    st.sampled_from(list(REQUESTS.values())),
    st.builds(read, KEYS, st.sampled_from(["point", "small"]), st.booleans()),
)
ROWS = st.builds(row, KEYS, st.sampled_from([b"", b"a", b"abcdef", None]))
BYTES = st.one_of(st.sampled_from(list(b"\x00\x01\x05123PSxE")), st.integers(0, 255))


def mutated(requests: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Requests with one byte changed."""
    return st.builds(
        lambda data, place, byte: data[: place % len(data)] + bytes([byte]) + data[place % len(data) + 1 :],
        requests,
        st.integers(5, 200),
        BYTES,
    )


SESSION = st.sampled_from(
    [
        request(("Q", text + b"\0"))
        for text in (
            b"BEGIN",
            b"COMMIT",
            b"SET TimeZone = 'Asia/Tokyo'",
            b"RESET ALL",
            b"DEALLOCATE point",
            b"SELECT 1",
        )
    ]
    + [request(close("S", "point"), parse(POINT, "point"), SYNC), request(SYNC)]
)
ROW = "INSERT INTO feed VALUES (%d, 'row', now())"


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_script_gets_the_same_answers_whole_and_in_pieces(house: House, data: st.DataObject) -> None:
    house.leave()
    odd = house.owner.query(ODD)
    peer, ordinary = house.peer(), house.peer()
    for each in REQUESTS.values():
        assert learned(peer, each) == ordinary.feed(each)  # the unnamed statement is now the same for both
    for data_of_row in (row(b"1", b"a"), row(b"12", b"")):
        assert peer.feed(data_of_row) == ordinary.feed(data_of_row)
    # The row of a request without Sync may be answered before its frame is known to be broken, or not: both are right.
    rows = mutated(ROWS).filter(lambda data: ends_ready(data) and is_framed(data))
    one = st.one_of(READS, ROWS, mutated(READS).filter(ends_ready), rows, SESSION)
    for each in data.draw(st.lists(st.one_of(one, one, st.tuples(one, one), st.integers(1, 3)), max_size=40)):
        if isinstance(each, int):
            house.owner.query(ROW % each)
            continue
        joined, answers = (each, 1) if isinstance(each, bytes) else (b"".join(each), len(each))
        place = data.draw(st.integers(1, len(joined) - 1))
        assert peer.feed(joined, answers=answers) == ordinary.feed(joined[:place], joined[place:], answers=answers)
        if peer.pipe.closed:
            break
    house.leave()
    assert house.owner.query(ODD) == odd  # rows that both sent


def ends_ready(data: bytes) -> bool:
    """Whether an answer ends with one ReadyForQuery, or with the connection."""
    decoder = Decoder(startup=False)
    decoder.feed(data)
    try:
        kinds = [type(message.kind if isinstance(message, Malformed) else message).__name__ for message in decoder]
    except SqlError:
        return True
    return (
        not decoder.buffered and "FunctionCall" not in kinds and sum(kind in ("Sync", "Query") for kind in kinds) == 1
    )


def is_framed(data: bytes) -> bool:
    """Whether a request consists of whole messages."""
    decoder = Decoder(startup=False)
    decoder.feed(data)
    try:
        return bool(list(decoder)) and not decoder.buffered
    except SqlError:
        return False


def test_a_client_that_never_pauses_is_not_remembered(house: House) -> None:
    peer = house.peer()
    for _ in range(5):
        peer.express.note(Answered(None, b"", None))
    assert len(peer.express._answered) == 2

"""The extended query protocol, message by message."""

from __future__ import annotations

import struct

import pytest

from tests.rig.server import Millstream
from tests.server.wire import (
    FLUSH,
    SYNC,
    Wire,
    bind,
    close,
    describe,
    error_fields,
    execute,
    letters,
    parse,
    rows,
    tags,
)


def run(wire: Wire, *messages: tuple[str, bytes]) -> list[tuple[str, bytes]]:
    """Sends messages, then Sync; returns all answers."""
    wire.send(*messages, SYNC)
    return wire.until_ready()


def test_the_whole_cycle(wire: Wire) -> None:
    messages = run(wire, parse("SELECT $1::int4 + 1"), describe("S"), bind([b"41"]), describe("P"), execute())
    assert letters(messages) == "1tT2TDCZ"
    assert dict(messages)["t"] == struct.pack(">hI", 1, 23)
    assert rows(messages) == [(b"42",)]


def test_binary_parameters_and_results(wire: Wire) -> None:
    messages = run(
        wire, parse("SELECT $1::int8 * 2, 'x'"), bind([struct.pack(">q", 21)], formats=[1], results=[1, 0]), execute()
    )
    assert rows(messages) == [(struct.pack(">q", 42), b"x")]


def test_describe_of_statements_without_rows(wire: Wire) -> None:
    assert letters(run(wire, parse("SET jit = on"), describe("S"), bind(), describe("P"), execute())) == "1tn2nCZ"
    assert letters(run(wire, parse(""), describe("S"), bind(), describe("P"), execute())) == "1tn2nIZ"
    assert letters(run(wire, parse("SHOW jit"), describe("S"), bind(), execute())) == "1tT2DCZ"


def test_an_error_skips_to_sync(wire: Wire) -> None:
    messages = run(wire, parse("SELECT nothing"), bind(), execute(), parse("SELECT 1", "a"), describe("S", "a"))
    assert letters(messages) == "EZ"
    assert error_fields(messages)["C"] == "42703"
    assert error_fields(run(wire, describe("S", "a")))["C"] == "26000"


@pytest.mark.parametrize(
    ("messages", "sqlstate"),
    [
        ([bind(statement="none")], "26000"),
        ([execute("none")], "34000"),
        ([describe("P", "none")], "34000"),
        ([parse("SELECT 1; SELECT 2")], "42601"),
        ([parse("SELECT $1::int4"), bind()], "08P01"),
        ([parse("SELECT $1::int4"), bind([b"x"])], "22P02"),
        ([parse("SELECT $1::int4"), bind([b"\0\0"], formats=[1])], "22P03"),
        ([parse("SELECT 1"), bind(results=[0, 0])], "08P01"),
        ([parse("SELECT 1"), bind(results=[2])], "22023"),
        ([parse("SELECT $1::int4"), ("B", b"\0\0\0\0\0\1" + struct.pack(">i", -2) + b"\0\0")], "08P01"),
        ([parse("SELECT 1", oids=[999999])], "42704"),
        ([parse("SELECT 1", "same"), parse("SELECT 1", "same")], "42P05"),
        ([parse("SELECT 1"), bind(portal="same"), bind(portal="same")], "42P03"),
        ([parse("SELECT 1/$1::int4"), bind([b"0"]), execute()], "22012"),
    ],
)
def test_errors(wire: Wire, messages: list[tuple[str, bytes]], sqlstate: str) -> None:
    answers = run(wire, *messages)
    assert error_fields(answers)["C"] == sqlstate
    assert answers[-1] == ("Z", b"I")
    assert rows(wire.query("SELECT 1")) == [(b"1",)]


def test_row_limits_suspend_the_portal(wire: Wire) -> None:
    wire.query("CREATE TABLE five (a integer); INSERT INTO five VALUES (1), (2), (3), (4), (5)")
    run(wire, parse("SELECT a FROM five ORDER BY a", "s"))
    wire.send(bind(statement="s", portal="p"), execute("p", 2), FLUSH)
    assert rows(first := wire.until("s")) == [(b"1",), (b"2",)]
    assert letters(first) == "2DDs"
    wire.send(execute("p", 2), FLUSH)
    assert rows(wire.until("s")) == [(b"3",), (b"4",)]
    messages = run(wire, execute("p", 2))
    assert rows(messages) == [(b"5",)]
    assert tags(messages) == ["SELECT 1"]
    assert error_fields(run(wire, execute("p", 2)))["C"] == "34000"


def test_a_limit_below_zero_is_none(wire: Wire) -> None:
    assert letters(run(wire, parse("VALUES (1), (2)"), bind(), execute(limit=-1))) == "12DDCZ"


def test_a_portal_goes_with_the_savepoint_that_it_was_made_in(wire: Wire) -> None:
    wire.query("BEGIN")
    run(wire, parse("VALUES (1), (2), (3)", "three"), bind(statement="three", portal="before"), execute("before", 1))
    wire.query("SAVEPOINT a")
    run(wire, bind(statement="three", portal="within"), execute("within", 1), execute("before", 1))
    wire.query("SAVEPOINT b; RELEASE b")
    wire.query("ROLLBACK TO a")
    assert rows(run(wire, execute("before", 1))) == [(b"3",)]
    assert error_fields(run(wire, execute("within", 1)))["C"] == "34000"
    wire.query("ROLLBACK")


def test_in_a_failed_transaction_rows_are_not_described(wire: Wire) -> None:
    wire.query("BEGIN")
    run(wire, parse("SELECT 1", "one"), parse("ROLLBACK", "end"), bind(statement="one", portal="one"))
    wire.query("SELECT 1/0")
    for message in (describe("S", "one"), describe("P", "one")):
        assert error_fields(run(wire, message))["C"] == "25P02"
    assert letters(run(wire, describe("S", "end"))) == "tnZ"
    assert letters(run(wire, bind(statement="end"), execute())) == "2CZ"


def test_a_portal_lives_as_long_as_its_transaction(wire: Wire) -> None:
    wire.query("BEGIN")
    assert (
        letters(run(wire, parse("VALUES (1), (2), (3)", "v"), bind(statement="v", portal="p"), execute("p", 1)))
        == "12DsZ"
    )
    messages = run(wire, execute("p"))
    assert rows(messages) == [(b"2",), (b"3",)]
    assert tags(run(wire, execute("p"))) == ["SELECT 0"]
    wire.query("COMMIT")
    assert error_fields(run(wire, execute("p")))["C"] == "34000"
    assert rows(run(wire, bind(statement="v"), execute())) == [(b"1",), (b"2",), (b"3",)]


def test_the_unnamed_portal_ends_with_the_next_query(wire: Wire) -> None:
    wire.query("BEGIN")
    assert letters(run(wire, parse("VALUES (1), (2)"), bind(), execute("", 1))) == "12DsZ"
    wire.query("SELECT 3")
    assert error_fields(run(wire, execute("", 1)))["C"] == "34000"
    wire.query("ROLLBACK")


def test_a_portal_runs_once(wire: Wire) -> None:
    wire.query("CREATE TABLE once (k integer PRIMARY KEY, v integer)")
    wire.query("INSERT INTO once VALUES (1, 10)")
    wire.query("CREATE FOREIGN TABLE once_taken (k integer) SERVER stream")
    run(wire, parse("SELECT v FROM once WHERE k = $1", "point"), parse("SELECT sum(v) FROM once", "whole"))
    for name, values in (("point", [b"1"]), ("whole", [])):
        for _ in range(3):
            messages = run(wire, bind(values, name), execute(), execute())
            assert (letters(messages), tags(messages)) == ("2DCCZ", ["SELECT 1", "SELECT 0"])
            assert rows(run(wire, bind(values, name), execute())) == [(b"10",)]  # a kept answer
    for _ in range(3):
        wire.query("BEGIN")
        assert tags(run(wire, bind([b"1"], "point"), execute())) == ["SELECT 1"]
        assert tags(run(wire, execute())) == ["SELECT 0"]
        wire.query("ROLLBACK")
    for text in ("INSERT INTO once_taken VALUES ($1)", "INSERT INTO once VALUES ($1, 20)"):
        messages = run(wire, parse(text), bind([b"7"]), execute(), execute())
        assert error_fields(messages)["C"] == "55000"
    wire.query("SET stream_timeout = '50ms'")
    assert rows(wire.query("SELECT (SELECT count(*) FROM once), (SELECT count(*) FROM once_taken)")) == [(b"1", b"0")]


def test_close(wire: Wire) -> None:
    messages = run(wire, parse("SELECT 1", "c"), close("S", "c"), close("S", "c"), close("P", "never"))
    assert letters(messages) == "1333Z"
    assert error_fields(run(wire, bind(statement="c")))["C"] == "26000"


def test_a_batch_is_one_transaction(wire: Wire) -> None:
    wire.query("CREATE TABLE batch (a integer PRIMARY KEY)")
    messages = run(
        wire,
        parse("INSERT INTO batch VALUES ($1)", "i"),
        bind([b"1"], "i"),
        execute(),
        bind([b"2"], "i"),
        execute(),
        bind([b"1"], "i"),
        execute(),
    )
    assert letters(messages) == "12C2C2EZ"
    assert error_fields(messages)["C"] == "23505"
    assert rows(wire.query("SELECT count(*) FROM batch")) == [(b"0",)]
    run(wire, bind([b"1"], "i"), execute(), bind([b"2"], "i"), execute())
    assert rows(wire.query("SELECT count(*) FROM batch")) == [(b"2",)]


def test_stream_rows_of_a_batch_arrive_together(wire: Wire) -> None:
    wire.query("CREATE FOREIGN TABLE gathered (a integer, b text) SERVER stream")
    wire.query("CREATE VIEW gathered_count AS SELECT count(*), sum(a) FROM gathered")
    run(wire, parse("INSERT INTO gathered VALUES ($1, $2)", "g"))
    steps = [step for number in range(100) for step in (bind([b"%d" % number, b"x"], "g"), execute())]
    messages = run(wire, *steps)
    assert letters(messages) == "2C" * 100 + "Z"
    assert rows(wire.query("SELECT * FROM gathered_count")) == [(b"100", b"4950")]
    # a later error in the batch rolls them back
    messages = run(wire, bind([b"1", None], "g"), execute(), parse("SELECT nothing"), bind(), execute())
    assert letters(messages) == "2CEZ"
    # and a read in the batch sees them, in the same transaction
    messages = run(wire, bind([b"1", None], "g"), execute(), parse("SELECT 1/0"), bind(), execute())
    assert letters(messages)[-2:] == "EZ"
    assert rows(wire.query("SELECT * FROM gathered_count")) == [(b"100", b"4950")]


def test_single_stream_rows(wire: Wire) -> None:
    wire.query("CREATE FOREIGN TABLE singles (a smallint NOT NULL, b numeric(4,1)) SERVER stream")
    wire.query("CREATE VIEW singles_sum AS SELECT count(*), sum(a), sum(b) AS sum_b FROM singles")
    run(wire, parse("INSERT INTO singles VALUES ($1, $2)", "s"))
    for number in range(10):
        messages = run(wire, bind([b"%d" % number, b"1.26"], "s"), execute())
        assert letters(messages) == "2CZ"
        assert tags(messages) == ["INSERT 0 1"]
    messages = run(wire, bind([None, b"1"], "s"), execute())
    assert letters(messages) == "2EZ"
    assert error_fields(messages)["C"] == "23502"
    assert error_fields(run(wire, bind([b"1", b"12345"], "s"), execute()))["C"] == "22003"
    assert rows(wire.query("SELECT * FROM singles_sum")) == [(b"10", b"45", b"13.0")]


def test_begin_and_commit_in_batches(wire: Wire) -> None:
    wire.query("CREATE TABLE blocks (a integer)")
    assert run(wire, parse("BEGIN"), bind(), execute())[-1] == ("Z", b"T")
    assert run(wire, parse("INSERT INTO blocks VALUES (1)"), bind(), execute())[-1] == ("Z", b"T")
    assert run(wire, parse("SELECT nothing"))[-1] == ("Z", b"E")
    assert error_fields(run(wire, parse("SELECT 1")))["C"] == "25P02"
    messages = run(wire, parse("COMMIT"), bind(), execute())
    assert tags(messages) == ["ROLLBACK"]
    messages = run(wire, parse("BEGIN"), bind(), execute(), parse("INSERT INTO blocks VALUES (1)"), bind(), execute())
    assert messages[-1] == ("Z", b"T")
    assert run(wire, parse("COMMIT"), bind(), execute())[-1] == ("Z", b"I")
    assert rows(wire.query("SELECT count(*) FROM blocks")) == [(b"1",)]


def test_prepared_statements_survive_ddl(wire: Wire) -> None:
    wire.query("CREATE TABLE grows (a integer); INSERT INTO grows VALUES (1)")
    run(wire, parse("SELECT * FROM grows", "g"))
    wire.query("CREATE TABLE unrelated (a integer)")
    assert rows(run(wire, bind(statement="g"), execute())) == [(b"1",)]
    wire.query("DROP TABLE grows; CREATE TABLE grows (a text)")
    fields = error_fields(run(wire, bind(statement="g"), execute()))
    assert fields["M"] == "cached plan must not change result type"
    assert fields["R"] == "RevalidateCachedQuery"  # so that drivers know that they may prepare it again


@pytest.mark.slow
def test_pipelined_messages_are_answered_in_order(wire: Wire) -> None:
    steps = []
    for number in range(200):
        steps += [parse(f"SELECT {number}, $1::text"), bind([b"v%d" % number]), execute(), SYNC]
    wire.send(*steps)
    for number in range(200):
        messages = wire.until_ready()
        assert letters(messages) == "12DCZ"
        assert rows(messages) == [(b"%d" % number, b"v%d" % number)]


def test_unnamed_statement_and_portal_are_replaced(wire: Wire) -> None:
    messages = run(wire, parse("SELECT 1"), bind(), execute(), parse("SELECT 2"), bind(), execute())
    assert rows(messages) == [(b"1",), (b"2",)]
    wire.query("SELECT 3")
    assert rows(run(wire, bind(), execute())) == [(b"2",)]


def test_point_reads_of_a_view(wire: Wire) -> None:
    wire.query("CREATE FOREIGN TABLE hits (page integer, ms integer) SERVER stream")
    wire.query("CREATE VIEW pages AS SELECT page, count(*) AS n, sum(ms) AS total FROM hits GROUP BY page")
    run(wire, parse("INSERT INTO hits VALUES ($1, $2)", "i"), parse("SELECT n, total FROM pages WHERE page = $1", "r"))
    total = dict.fromkeys(range(600), 0)
    for step in range(5):
        run(
            wire, *[m for page in range(0, 600, step + 1) for m in (bind([b"%d" % page, b"%d" % step], "i"), execute())]
        )
        for page in range(0, 600, step + 1):
            total[page] += step
        for page in (0, 1, 7, 299, 599):
            for _ in range(2):
                found = rows(run(wire, bind([b"%d" % page], "r"), execute()))
                assert [row[1] for row in found] == [b"%d" % total[page]]
        assert rows(run(wire, bind([b"1000"], "r"), execute())) == []
        assert rows(run(wire, bind([None], "r"), execute())) == []
    binary = rows(run(wire, bind([b"0"], "r", results=[1]), execute()))
    assert binary == [(struct.pack(">q", 5), struct.pack(">q", total[0]))]


def test_a_portal_bound_before_its_table_changed_is_planned_again(wire: Wire, running: Millstream) -> None:
    with Wire(running.port) as other:
        other.start()
        other.query("CREATE TABLE altered (a int)")
        wire.send(parse("INSERT INTO altered VALUES ($1)"), bind([b"1"]), FLUSH)
        assert letters([message for message in (wire.message(), wire.message()) if message]) == "12"
        other.query("ALTER TABLE altered ADD COLUMN b int DEFAULT 2")
        assert tags(run(wire, execute())) == ["INSERT 0 1"]
        wire.send(parse("SELECT * FROM altered"), bind(), FLUSH)
        assert letters([message for message in (wire.message(), wire.message()) if message]) == "12"
        other.query("ALTER TABLE altered DROP COLUMN a")
        assert error_fields(run(wire, execute()))["M"] == "cached plan must not change result type"
        assert rows(run(wire, parse("SELECT * FROM altered"), bind(), execute())) == [(b"2",)]
        other.query("DROP TABLE altered")

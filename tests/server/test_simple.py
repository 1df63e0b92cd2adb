"""The simple query protocol, message by message."""

from __future__ import annotations

from tests.rig.server import Millstream
from tests.server.wire import Wire, error_fields, letters, parse, rows, tags


def test_one_statement(wire: Wire) -> None:
    messages = wire.query("SELECT 1 AS a, 'x' AS b")
    assert letters(messages) == "TDCZ"
    assert rows(messages) == [(b"1", b"x")]
    assert tags(messages) == ["SELECT 1"]


def test_empty_query(wire: Wire) -> None:
    assert letters(wire.query("")) == "IZ"
    assert letters(wire.query(" ; ; -- nothing")) == "IZ"


def test_several_statements_in_one_text(wire: Wire) -> None:
    messages = wire.query("SELECT 1; SELECT 2 WHERE false; SHOW jit; SET jit = on; SHOW jit")
    assert letters(messages) == "TDCTCTDCCTDCZ"
    assert tags(messages) == ["SELECT 1", "SELECT 0", "SHOW", "SET", "SHOW"]
    assert rows(messages) == [(b"1",), (b"off",), (b"on",)]


def test_several_statements_are_one_transaction(wire: Wire) -> None:
    wire.query("CREATE TABLE several (a integer PRIMARY KEY)")
    messages = wire.query("SET jit = on; INSERT INTO several VALUES (1); INSERT INTO several VALUES (1); SELECT 1")
    assert tags(messages) == ["SET", "INSERT 0 1"]
    assert error_fields(messages)["C"] == "23505"
    assert messages[-1] == ("Z", b"I")
    assert rows(wire.query("SELECT count(*) FROM several")) == [(b"0",)]
    assert rows(wire.query("SHOW jit")) == [(b"off",)]


def test_commit_inside_a_text_keeps_what_came_before(wire: Wire) -> None:
    wire.query("CREATE TABLE halves (a integer PRIMARY KEY)")
    messages = wire.query("BEGIN; INSERT INTO halves VALUES (1); COMMIT; INSERT INTO halves VALUES (2); SELECT 1/0")
    assert tags(messages) == ["BEGIN", "INSERT 0 1", "COMMIT", "INSERT 0 1"]
    assert error_fields(messages)["C"] == "22012"
    assert rows(wire.query("SELECT a FROM halves")) == [(b"1",)]


def test_a_text_may_end_inside_a_block(wire: Wire) -> None:
    wire.query("CREATE TABLE inside (a integer PRIMARY KEY)")
    assert wire.query("INSERT INTO inside VALUES (1); BEGIN; INSERT INTO inside VALUES (2)")[-1] == ("Z", b"T")
    assert wire.query("ROLLBACK")[-1] == ("Z", b"I")
    assert rows(wire.query("SELECT count(*) FROM inside")) == [(b"0",)]


def test_failed_transaction(wire: Wire) -> None:
    assert wire.query("BEGIN")[-1] == ("Z", b"T")
    assert wire.query("SELECT nothing")[-1] == ("Z", b"E")
    for text in ("SELECT 1", "SHOW jit", "SELECT nothing", "BEGIN"):
        messages = wire.query(text)
        assert error_fields(messages)["C"] == "25P02", text
        assert messages[-1] == ("Z", b"E")
    messages = wire.query("COMMIT")
    assert tags(messages) == ["ROLLBACK"]
    assert messages[-1] == ("Z", b"I")


def test_savepoint_rescues_a_failed_transaction(wire: Wire) -> None:
    wire.query("CREATE TABLE rescued (a integer PRIMARY KEY)")
    wire.query("BEGIN; INSERT INTO rescued VALUES (1); SAVEPOINT s; SET jit = on")
    assert wire.query("INSERT INTO rescued VALUES (1)")[-1] == ("Z", b"E")
    messages = wire.query("ROLLBACK TO s")
    assert tags(messages) == ["ROLLBACK"]
    assert messages[-1] == ("Z", b"T")
    assert rows(wire.query("SHOW jit")) == [(b"off",)]
    assert tags(wire.query("COMMIT")) == ["COMMIT"]
    assert rows(wire.query("SELECT a FROM rescued")) == [(b"1",)]


def test_warnings_outside_and_inside_a_block(wire: Wire) -> None:
    assert error_fields(wire.query("COMMIT"))["C"] == "25P01"
    assert error_fields(wire.query("SET LOCAL jit = on"))["M"] == "SET LOCAL can only be used in transaction blocks"
    wire.query("BEGIN")
    fields = error_fields(wire.query("BEGIN"))
    assert (fields["S"], fields["C"]) == ("WARNING", "25001")
    wire.query("SET client_min_messages = error")
    assert letters(wire.query("BEGIN")) == "CZ"
    wire.query("ROLLBACK")


def test_syntax_error_has_a_position(wire: Wire) -> None:
    fields = error_fields(wire.query("SELECT 1 FORM x"))
    assert (fields["C"], fields["P"]) == ("42601", "15")
    fields = error_fields(wire.query("SELECT 'ä', nothing"))
    assert (fields["C"], fields["P"]) == ("42703", "13")


def test_changed_settings_are_reported_once(wire: Wire) -> None:
    messages = wire.query("SET TimeZone = 'Europe/Paris'")
    assert [body for letter, body in messages if letter == "S"] == [b"TimeZone\0Europe/Paris\0"]
    assert letters(wire.query("SET TimeZone = 'Europe/Paris'")) == "CZ"
    wire.query("BEGIN; SET TimeZone = 'UTC'")
    messages = wire.query("ROLLBACK")
    assert [body for letter, body in messages if letter == "S"] == [b"TimeZone\0Europe/Paris\0"]


def test_session_functions(wire: Wire) -> None:
    messages = wire.query(
        "SELECT version(), current_user, current_database(), current_schema(), pg_backend_pid(),"
        " current_setting('jit'), set_config('jit', 'on', false), current_setting('no.such', true)"
    )
    version, user, database, schema, pid, before, after, missing = rows(messages)[0]
    assert version is not None
    assert version.startswith(b"PostgreSQL 15.")
    assert (user, database, schema) == (b"millstream", b"millstream", b"public")
    assert int(pid or 0) == wire.backend[0]
    assert (before, after, missing) == (b"off", b"on", None)
    assert rows(wire.query("SHOW jit")) == [(b"on",)]


def test_now_is_the_start_of_the_transaction(wire: Wire) -> None:
    wire.query("BEGIN")
    first = rows(wire.query("SELECT now()"))
    assert rows(wire.query("SELECT now()")) == first
    wire.query("COMMIT")
    assert rows(wire.query("SELECT now()")) > first


def test_read_only_transactions(wire: Wire) -> None:
    wire.query("CREATE TABLE readable (a integer)")
    wire.query("BEGIN READ ONLY")
    fields = error_fields(wire.query("INSERT INTO readable VALUES (1)"))
    assert (fields["C"], fields["M"]) == ("25006", "cannot execute INSERT in a read-only transaction")
    wire.query("ROLLBACK")
    assert rows(wire.query("SHOW transaction_read_only")) == [(b"off",)]
    wire.query("SET default_transaction_read_only = on")
    assert error_fields(wire.query("CREATE TABLE other (a integer)"))["C"] == "25006"


def test_prepare_and_execute_as_statements(wire: Wire) -> None:
    assert tags(wire.query("PREPARE p (integer, text) AS SELECT $1 + 1, $2")) == ["PREPARE"]
    assert rows(wire.query("EXECUTE p (41, 'x')")) == [(b"42", b"x")]
    assert error_fields(wire.query("EXECUTE p (1)"))["C"] == "42601"
    assert error_fields(wire.query("PREPARE p AS SELECT 1"))["C"] == "42P05"
    assert tags(wire.query("DEALLOCATE p")) == ["DEALLOCATE"]
    assert error_fields(wire.query("EXECUTE p (1, 'x')"))["C"] == "26000"


def test_what_a_pool_sends_on_reset(wire: Wire) -> None:
    wire.query("SET jit = on")
    assert tags(wire.query("CLOSE ALL; UNLISTEN *; RESET ALL"))[-1] == "RESET"
    assert rows(wire.query("SHOW jit")) == [(b"off",)]
    assert tags(wire.query("DISCARD ALL")) == ["DISCARD ALL"]
    assert error_fields(wire.query("BEGIN; DISCARD ALL"))["C"] == "25001"


def test_a_large_result_arrives_whole(wire: Wire) -> None:
    wire.query("CREATE TABLE many (a integer, b text)")
    values = ",".join(f"({number}, '{'x' * 200}')" for number in range(100))
    wire.query(f"INSERT INTO many VALUES {values}")
    for _ in range(8):
        wire.query("INSERT INTO many SELECT a, b FROM many")
    messages = wire.query("SELECT a, b FROM many")
    assert tags(messages) == ["SELECT 25600"]
    assert sum(int(a or 0) for a, _ in rows(messages)) == 256 * 4950


def test_repeated_reads_see_every_change(running: Millstream) -> None:
    """The same text repeatedly, whose answer is kept, with a concurrent writer."""
    with Wire(running.port) as reader, Wire(running.port) as writer:
        reader.start()
        writer.start()
        writer.query("CREATE TABLE repeated (a integer); CREATE FOREIGN TABLE arriving (a integer) SERVER stream")
        writer.query("CREATE VIEW arrived AS SELECT count(*), sum(a) FROM arriving")
        for number in range(1, 20):
            writer.query(f"INSERT INTO repeated VALUES ({number})")
            writer.query(f"INSERT INTO arriving VALUES ({number})")
            total = str(number * (number + 1) // 2).encode()
            for _ in range(3):
                assert rows(reader.query("SELECT sum(a) FROM repeated")) == [(total,)]
                assert rows(reader.query("SELECT * FROM arrived")) == [(str(number).encode(), total)]
        writer.query("BEGIN; DELETE FROM repeated")
        assert rows(writer.query("SELECT sum(a) FROM repeated")) == [(None,)]
        assert rows(reader.query("SELECT sum(a) FROM repeated")) == [(b"190",)]
        writer.query("COMMIT")
        assert rows(reader.query("SELECT sum(a) FROM repeated")) == [(None,)]
        writer.query("DROP TABLE repeated")
        assert error_fields(reader.query("SELECT sum(a) FROM repeated"))["C"] == "42P01"


def test_read_answer_depends_on_settings(wire: Wire) -> None:
    text = "SELECT '2024-01-01 12:00+00'::timestamptz"
    assert rows(wire.query(text)) == [(b"2024-01-01 12:00:00+00",)]
    wire.query("SET TimeZone = 'Asia/Tokyo'")
    assert rows(wire.query(text)) == [(b"2024-01-01 21:00:00+09",)]


def test_point_reads_by_literal(wire: Wire) -> None:
    """The same statement with different keys: from the index, from a patch, without a row, and within a transaction."""
    wire.query("CREATE FOREIGN TABLE visits (page bigint, kind varchar(9), ms integer) SERVER stream")
    wire.query(
        "CREATE VIEW kinds AS SELECT page, kind, count(*) AS n, sum(ms) FROM visits GROUP BY page, kind "
        "HAVING count(*) < 3"
    )
    for page in range(4):
        for n in range(1, 5):
            wire.query(f"INSERT INTO visits VALUES ({page}, 'it''s', {page})")
            expected = [] if n > 2 else [(str(page).encode(), b"it's", str(n).encode(), str(n * page).encode())]
            for _ in range(2):
                messages = wire.query(f"SELECT * FROM kinds WHERE page = {page} AND kind = 'it''s'")
                assert letters(messages) == ("TDCZ" if expected else "TCZ")
                assert rows(messages) == expected
                assert tags(messages) == [f"SELECT {len(expected)}"]
    assert rows(wire.query("SELECT n FROM kinds WHERE page = 99999999999 AND kind = ''")) == []
    assert rows(wire.query("SELECT n FROM kinds WHERE page = 5 AND kind = NULL")) == []
    wire.query("BEGIN")
    assert rows(wire.query("SELECT n FROM kinds WHERE page = 5 AND kind = 'x'")) == []
    wire.query("INSERT INTO visits VALUES (5, 'x', 0)")
    wire.query("COMMIT")
    assert rows(wire.query("SELECT n FROM kinds WHERE page = 5 AND kind = 'x'")) == [(b"1",)]
    wire.query("DROP VIEW kinds")
    assert error_fields(wire.query("SELECT n FROM kinds WHERE page = 6 AND kind = 'x'"))["C"] == "42P01"


def test_an_error_of_a_shared_plan_has_its_position(wire: Wire) -> None:
    wire.query("CREATE FOREIGN TABLE dated (d date, c char(3)) SERVER stream")
    wire.query("CREATE VIEW days AS SELECT d, count(*) AS n FROM dated GROUP BY d")
    for text in ("SELECT n FROM days WHERE d = '2024-01-01'", "INSERT INTO dated VALUES ('2024-01-01', 'a')"):
        for _ in range(2):
            assert "E" not in letters(wire.query(text))
    fields = error_fields(wire.query("SELECT n FROM days WHERE d = 'never'"))
    assert (fields["C"], fields["P"]) == ("22007", "30")
    fields = error_fields(wire.query("INSERT INTO dated VALUES ('2024-01-02', 'abcd')"))
    assert (fields["C"], fields["M"]) == ("22001", "value too long for type character(3)")
    wire.query("INSERT INTO dated VALUES ('2024-01-03', 'ab  ')")
    assert rows(wire.query("SELECT n FROM days WHERE d = '2024-01-03'")) == [(b"1",)]


def test_query_without_columns_has_rows(wire: Wire) -> None:
    assert rows(wire.query("SELECT")) == [()]
    assert tags(wire.query("SELECT FROM (VALUES (1), (2)) AS v")) == ["SELECT 2"]
    assert rows(wire.query("SELECT count(*) FROM (VALUES (1), (2)) AS v")) == [(b"2",)]


def test_query_message_has_no_parameters(wire: Wire) -> None:
    wire.send(parse("SELECT $1::integer"), ("S", b""))  # leaves a plan of the same text
    wire.until_ready()
    for text in ("SELECT $1::integer", "SELECT 1; SELECT 2, $1"):
        fields = error_fields(wire.query(text))
        assert (fields["C"], fields["M"]) == ("42P02", "there is no parameter $1")
        assert text[int(fields["P"]) - 1 :].startswith("$1")


def test_raised_notices_have_fields_as_errors_do(wire: Wire) -> None:
    raised = "RAISE {} 'caught %', 1 USING ERRCODE = '{}', HINT = 'a hint', DETAIL = 'more', TABLE = 't'"
    for level, severity, state in (
        ("NOTICE", "NOTICE", "42P05"),
        ("INFO", "INFO", "00000"),
        ("WARNING", "WARNING", "99999"),
    ):
        wire.query("SET client_min_messages = warning" if level != "NOTICE" else "SET client_min_messages = notice")
        messages = wire.query(f"DO $$\nBEGIN {raised.format(level, state)}; END $$")
        assert letters(messages) == "NCZ"
        fields = error_fields(messages)
        assert fields.items() >= {"S": severity, "V": severity, "C": state, "M": "caught 1", "D": "more"}.items()
        assert fields.items() >= {"H": "a hint", "t": "t", "R": "exec_stmt_raise"}.items()
        assert fields["W"] == "PL/pgSQL function inline_code_block line 2 at RAISE"
    for level in ("NOTICE", "LOG", "DEBUG"):
        assert letters(wire.query(f"DO $$ BEGIN {raised.format(level, '00000')}; END $$")) == "CZ"
    assert error_fields(wire.query(f"DO $$ BEGIN {raised.format('EXCEPTION', '22018')}; END $$"))["C"] == "22018"


def test_what_a_block_says_comes_before_its_error(wire: Wire) -> None:
    messages = wire.query("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; PERFORM 1 / 0; END $$")
    assert letters(messages) == "NNEZ"
    assert [error_fields([each])["M"] for each in messages[:3]] == ["one", "two", "division by zero"]

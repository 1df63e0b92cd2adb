"""Which message is legal when: the ways through the state machine."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from protocol import messages as m
from protocol.machine import IGNORED, MOVES, Machine, Phase

PARSE = m.Parse("", "select 1", ())
EXECUTE = m.Execute("", 0)


def ready() -> Machine:
    machine = Machine()
    assert machine.accept(m.StartupMessage({"user": "a"}))
    machine.authenticated()
    return machine


def test_from_tls_request_to_ready() -> None:
    machine = Machine()
    assert machine.accept(m.SSLRequest())
    assert machine.phase is Phase.STARTUP
    assert machine.accept(m.StartupMessage({}))
    assert machine.accept(m.PasswordMessage(b"secret\0"))
    machine.authenticated()
    assert machine.phase is Phase.READY
    assert machine.transaction == "I"


def test_another_server_proves_itself_first() -> None:
    machine = Machine()
    assert machine.accept(m.PeerRequest(b""))
    with pytest.raises(SqlError, match="unexpected message FunctionCall"):
        machine.accept(m.FunctionCall(b""))


def test_statements_before_authentication_are_illegal() -> None:
    machine = Machine()
    with pytest.raises(SqlError, match="unexpected message Query"):
        machine.accept(m.Query("select 1"))


def test_a_cancel_request_ends_its_connection() -> None:
    machine = Machine()
    assert machine.accept(m.CancelRequest(1, b"2"))
    with pytest.raises(SqlError):
        machine.accept(m.Sync())


def test_error_of_a_simple_query_is_followed_by_ready() -> None:
    machine = ready()
    assert machine.accept(m.Query("select 1/0"))
    assert machine.fail()


def test_error_in_a_batch_skips_until_sync() -> None:
    machine = ready()
    assert machine.accept(PARSE)
    assert not machine.fail()
    assert [machine.accept(message) for message in (EXECUTE, m.Query("x"), m.Flush(), m.CopyDone())] == [False] * 4
    assert machine.accept(m.Sync())
    assert machine.phase is Phase.READY
    assert machine.accept(EXECUTE)


def test_error_of_sync_is_followed_by_ready() -> None:
    machine = ready()
    assert machine.accept(PARSE)
    assert machine.accept(m.Sync())
    assert machine.fail()


def test_malformed_messages_move_as_what_they_were_meant_to_be() -> None:
    machine = ready()
    error = SqlError("08P01", "invalid message format")
    assert machine.accept(m.Malformed(m.Bind, error))
    assert not machine.fail()
    assert not machine.accept(m.Malformed(m.Execute, error))
    assert machine.accept(m.Sync())
    assert machine.accept(m.Malformed(m.Query, error))
    assert machine.fail()


def test_copy_in_of_a_simple_query() -> None:
    machine = ready()
    assert machine.accept(m.Query("copy t from stdin"))
    machine.begin_copy_in()
    assert machine.accept(m.CopyData(b"1\n"))
    assert not machine.accept(m.Flush())
    assert not machine.accept(m.Sync())
    assert machine.accept(m.CopyDone())
    assert machine.phase is Phase.READY


def test_copy_in_of_a_batch_returns_to_the_batch() -> None:
    machine = ready()
    assert machine.accept(EXECUTE)
    machine.begin_copy_in()
    assert machine.accept(m.CopyFail("no"))
    assert not machine.fail()
    assert machine.phase is Phase.SKIPPING


def test_data_of_a_failed_copy_is_dropped() -> None:
    machine = ready()
    assert machine.accept(m.Query("copy t from stdin"))
    machine.begin_copy_in()
    assert machine.accept(m.CopyData(b"x\n"))
    assert machine.fail()
    assert not machine.accept(m.CopyData(b"y\n"))
    assert not machine.accept(m.CopyDone())
    assert machine.accept(m.Query("select 1"))


@pytest.mark.parametrize("message", [m.Query("select 1"), PARSE, EXECUTE])
def test_statements_during_copy_in_are_illegal(message: m.FrontendMessage) -> None:
    machine = ready()
    machine.accept(m.Query("copy t from stdin"))
    machine.begin_copy_in()
    with pytest.raises(SqlError, match="during COPY from stdin"):
        machine.accept(message)
    assert machine.fail()


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in (Phase.STARTUP, Phase.CLOSED)])
def test_a_client_may_leave_at_any_time(phase: Phase) -> None:
    assert MOVES[phase][m.Terminate] is Phase.CLOSED


def test_no_message_is_both_acted_on_and_ignored() -> None:
    assert MOVES.keys() == IGNORED.keys() == set(Phase)
    assert all(not MOVES[phase].keys() & IGNORED[phase] for phase in Phase)


def test_closed_accepts_nothing() -> None:
    machine = ready()
    machine.close()
    with pytest.raises(SqlError):
        machine.accept(m.Terminate())

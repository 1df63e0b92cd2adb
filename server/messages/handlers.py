"""Which message of a session is answered where.

Owns: the table, and the messages that need no more than a line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from catalog.values.errors import unsupported
from protocol import messages as m
from server.messages import extended, simple
from server.query.copy import copying

if TYPE_CHECKING:
    from server.session.session import Session


def _flush(session: Session, message: m.FrontendMessage) -> None:
    session.connection.flush()


def _terminate(session: Session, message: m.FrontendMessage) -> None:
    session.connection.end()


def _function_call(session: Session, message: m.FrontendMessage) -> None:
    raise unsupported("the function call message", "Call the function in a SELECT.")


HANDLERS: Final[dict[type, Callable[[Session, Any], Awaitable[None] | None]]] = {
    m.Query: simple.query,
    m.Parse: extended.parse,
    m.Bind: extended.bind,
    m.Describe: extended.describe,
    m.Execute: extended.execute,
    m.Close: extended.close,
    m.Sync: extended.sync,
    m.Flush: _flush,
    m.CopyData: copying.data,
    m.CopyDone: copying.done,
    m.CopyFail: copying.fail,
    m.FunctionCall: _function_call,
    m.Terminate: _terminate,
}

"""Several statements that are one to the client, and one transaction: all of them are done, or none.

Owns: which transaction that is. Knows nothing of the statements (``server.query.do_blocks``,
``server.query.create_schema``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.statements.statement import TransactionControl

if TYPE_CHECKING:
    from server.session.session import Session


@contextmanager
def as_one_transaction(session: Session) -> Iterator[None]:
    """Within, what runs belongs to the open transaction, which takes savepoints, else to one that ends with it."""
    if session.db.status != "I":
        yield
    elif session.implicit:
        with session.db.taking_savepoints():
            yield
    else:
        session.control(TransactionControl("begin"))
        try:
            yield
        except BaseException:
            session.control(TransactionControl("rollback"))
            raise
        session.control(TransactionControl("commit"))

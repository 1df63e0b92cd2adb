"""Reads views of this server that other servers maintain.

Owns: the question (the columns that a query reads, and the filter above its only scan), the server that is asked, and
for how long. An answer has the LSN of this server, the home, of its rows: at least that of every row acknowledged
before the question, since the other server reads this server's log first. A statement that must read everything at one
LSN compares that with its own. Knows nothing of connections: ``ask`` is given (``server/login/peers``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from catalog.objects import Table
from catalog.values.errors import SqlError, unsupported
from executor.cluster.view_ownership import read_owned
from executor.core.core import Core
from executor.core.plans import Plan, joined_scans
from executor.remote_reads.messages import (
    NOT_HERE,
    Answer,
    Asking,
    Question,
    Unwanted,
    decode_answer,
    encode_error,
    encode_question,
)
from executor.transactions.transaction import Transaction
from executor.views.location import Away
from executor.views.runtime import ViewRuntime
from planner.algebra.allow_list import check_call
from planner.algebra.construction import SUBQUERIES, conjunction, conjuncts, volatility
from planner.algebra.nodes import Column, Filter, Parameter, Relation, Scan, Value
from planner.algebra.walk import Node, children, replace_parameters, used_columns, walk

#: Sends a question to the server at an address, and waits for the answer until the last argument returns true. Raises
#: OSError where the server cannot be reached, and Unwanted.
Ask = Callable[[str, bytes, Callable[[], bool]], bytes]

#: Seconds for which a view that moves is looked for, and between two tries.
_PATIENCE: Final = 5.0
_WAIT: Final = 0.02


def _nobody(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
    raise OSError("this server has no connections to others")


class Elsewhere:
    """Reads the views of this server that other servers maintain. Safe for many threads."""

    def __init__(self, core: Core, refresh_entry: Callable[[ViewRuntime], None]) -> None:
        """``refresh_entry`` finds out on the storage where a view is now."""
        self._core, self._refresh_entry = core, refresh_entry
        self.ask: Ask = _nobody

    def read(
        self, plan: Plan, parameters: tuple[Value, ...], reader: Asking, transaction: Transaction
    ) -> dict[int, Answer]:
        """The answers that a query needs, by the oids of such views. Raises 08001 where a server cannot be reached,
        57014, the error that is the view's value, and 0A000 where the transaction has changed a table that one of them
        reads."""
        found: dict[int, Answer] = {}
        below = self._core.views_read(plan.views)
        for oid in below:
            runtime = self._core.view(oid)
            if runtime.away is not None:
                self._require_unchanged(runtime, transaction)
                is_alone = oid in plan.views and not self._is_read_by(oid, below)
                relation = wanted(plan.relation if is_alone else None, runtime, parameters)
                answer = self._answer(runtime, Question(runtime.shared, relation, reader.time_zone), reader)
                if answer is not None:
                    found[oid] = answer
        return found

    def _require_unchanged(self, runtime: ViewRuntime, transaction: Transaction) -> None:
        """Raises 0A000 where the transaction has changed a table that a view reads: the other server reads committed
        rows."""
        for oid in self._core.tables_of_view(runtime.view.oid):
            table = (transaction.catalog or self._core.catalog).objects.get(oid)
            if transaction.write is not None and isinstance(table, Table) and transaction.write.has_changed(table):
                what = f'reading view "{runtime.view.name}" of another server after changes of table "{table.name}"'
                raise unsupported(f"{what} in the same transaction", "COMMIT first.")

    def whole(self, oids: Iterable[int], reader: Asking) -> dict[int, Answer]:
        """All rows of those of these views that other servers maintain, by oid. Raises as ``read``."""
        found = {}
        for oid in oids:
            runtime = self._core.view(oid)
            if runtime.away is not None:
                question = Question(runtime.shared, wanted(None, runtime, ()), reader.time_zone)
                answer = self._answer(runtime, question, reader)
                if answer is not None:
                    found[oid] = answer
        return found

    def _is_read_by(self, oid: int, views: Iterable[int]) -> bool:
        """Whether one of these views reads a view."""
        core = self._core
        return any(oid in core.plans.get(core.view(each).program.final).views for each in views)

    def _answer(self, runtime: ViewRuntime, question: Question, reader: Asking) -> Answer | None:
        """The answer to a question; None where the view has come back to this server. Raises the error of the view's
        streams, which the other server raises as well once it has seen it."""
        runtime.check_inputs()
        least = max(self._core.streams[oid].last_lsn for oid in runtime.program.inputs)
        least = max(least, self._core.version_of((runtime.view.oid,)))  # tables, too, where it reads some
        data, deadline = encode_question(question), time.monotonic() + _PATIENCE
        while (away := runtime.away) is not None:
            is_late = time.monotonic() > deadline
            if not away.server:
                if not self._moved(runtime, away):
                    raise away.raised(runtime.view)
                continue
            try:
                found = decode_answer(self._asked(runtime, away, data, reader))
                if found.at >= least:
                    return found
                if is_late:
                    raise SqlError(
                        "55000", f'server "{away.server}" does not have all rows of view "{runtime.view.name}"'
                    )
            except SqlError as error:
                if error.sqlstate != NOT_HERE:
                    raise
                if is_late:
                    raise self._damage(runtime, away) or away.raised(runtime.view) from error
            except OSError as error:
                if not self._moved(runtime, away):
                    raise self._damage(runtime, away) or _unreachable(runtime, away, error) from error
                continue
            if not self._moved(runtime, away):
                time.sleep(_WAIT)
        return None

    def _asked(self, runtime: ViewRuntime, away: Away, data: bytes, reader: Asking) -> bytes:
        """The answer of a server as bytes; the error ``NOT_HERE`` where the view has left that server meanwhile."""
        try:
            return self.ask(away.address, data, lambda: reader.is_cancelled() or runtime.away != away)
        except Unwanted:
            if reader.is_cancelled():
                raise SqlError("57014", "canceling statement due to user request") from None
            return encode_error(SqlError(NOT_HERE, "the view no longer exists"))

    def _damage(self, runtime: ViewRuntime, away: Away) -> SqlError | None:
        """The error of a view whose server is lost or does not have it, where no server can continue it."""
        owned = read_owned(self._core.shared, runtime.shared)
        if owned is None or owned.error is None or owned.error[0] != "XX001":
            return None
        hint = f'Start server "{away.server}" again with its data folder; or drop the view, and create it again.'
        message = (
            f'view "{runtime.view.name}" is on server "{away.server}", which does not answer, and its copy is damaged'
        )
        return SqlError("XX001", message, owned.error[1], hint)

    def _moved(self, runtime: ViewRuntime, away: Away) -> bool:
        """Reads the view's entry again; whether another server has it than was known."""
        self._refresh_entry(runtime)
        return runtime.away != away


def _unreachable(runtime: ViewRuntime, away: Away, error: OSError) -> SqlError:
    where = f" at {away.address}" if away.address else ""
    message = f'view "{runtime.view.name}" is on server "{away.server}", which cannot be reached{where}: {error}'
    hint = "If that server is lost, the view continues from its last checkpoint (millstream.servers, server_lease)."
    return SqlError("08001", message, hint=hint)


def wanted(relation: Relation | None, runtime: ViewRuntime, parameters: tuple[Value, ...]) -> Relation:
    """The relation of a question: the columns of a query's scans of the view and, where there is one scan, the filter
    above it; all columns where the query is unknown."""
    view = runtime.view
    nodes: list[Node] = [] if relation is None else list(walk(relation))
    scans = [node for node in nodes if isinstance(node, Scan) and (node.kind, node.oid) == ("view", view.oid)]
    if not scans:
        columns = tuple(Column(place, item.name, item.type) for place, item in enumerate(view.stored, 1))
        return Scan(view.oid, view.name, "view", columns, tuple(item.name for item in view.stored))
    (scan,) = joined_scans(scans)
    if not scan.columns:  # rows without columns have no number
        first = view.columns[0]
        return replace(scan, columns=(Column(1, first.name, first.type),), sources=(first.name,))
    above = [node for node in nodes if any(child is scans[0] for child in children(node))]
    if len(scans) > 1 or len(above) != 1 or not isinstance(above[0], Filter):
        return scan
    parts = (replace_parameters(part, parameters) if parameters else part for part in conjuncts(above[0].predicate))
    test = conjunction(part for part in parts if used_columns(part) <= set(scan.columns) and _can_go(part))
    return scan if test is None else Filter(scan, test)


def _can_go(part: Node) -> bool:
    """Whether a condition means the same on another server, and can be encoded."""
    if volatility(part) == "volatile" or any(isinstance(node, (*SUBQUERIES, Parameter)) for node in walk(part)):
        return False
    try:
        for node in walk(part):
            check_call(node)
    except ValueError:
        return False
    return True

"""DO: the steps of a block, one after another, as one transaction.

Owns: which step comes next, the savepoint that a handler goes back to, and RAISE. Statements are planned when their
turn comes, and run as any other of the session. In a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from catalog.values.errors import SqlError, Subject, unsupported
from executor.transactions.result import Result
from planner.algebra.nodes import Value
from planner.statements.do_blocks import DoBlock, If, Raise, Run, RunText, Step, Steps
from planner.statements.error_conditions import state_of
from planner.statements.statement import CopyIn, CopyOut, Query, TransactionControl
from server.plans.planning import Plan

if TYPE_CHECKING:
    from server.session.session import Session

Runner = Callable[["Session", Plan, tuple[Value, ...]], Result]
#: The SQLSTATE of what RAISE says none of.
_STATES: Final = {"ERROR": "P0001", "WARNING": "01000"}


def run_block(session: Session, statement: DoBlock, run: Runner) -> Result:
    """Runs a block, which is a transaction where none is open. Raises what no handler of it takes."""
    block = _Block(session, run)
    try:
        with session.transaction.as_one():
            block.steps((statement.body,))
    except SqlError:
        for notice in block.notices:  # of what came before the error
            session.reports.report(notice)
        raise
    return Result("DO", notices=tuple(block.notices))


class _Block:
    """One run of a block."""

    def __init__(self, session: Session, run: Runner) -> None:
        self._session = session
        self._run = run
        self._depth = 0
        self._handling: list[SqlError] = []  # the errors whose handlers run
        self.notices: list[SqlError] = []

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Run(text, discards):
                    self._statement(text, discards)
                case RunText(expression):
                    self._statement(self._required(expression), True)
                case If(cases, otherwise):
                    chosen = (branch for condition, branch in cases if self._value(condition))
                    self.steps(next(chosen, otherwise))
                case Raise():
                    self._raise(step)
                case Steps(inner, ()):
                    self.steps(inner)
                case Steps():
                    self._handled(step)

    def _handled(self, block: Steps) -> None:
        """Runs steps; an error that a handler is for undoes what they did, and the handler's steps follow."""
        self._depth += 1
        name = f"do {self._depth}"
        self._control("savepoint", name)
        try:
            self.steps(block.steps)
        except SqlError as error:
            handler = next((item for item in block.handlers if _is_for(item.states, error.sqlstate)), None)
            if handler is None:
                raise
            self._control("rollback_to", name)
            self._control("release", name)
            self._handling.append(error)
            try:
                self.steps(handler.steps)
            finally:
                self._handling.pop()
        else:
            self._control("release", name)
        finally:
            self._depth -= 1

    def _control(self, action: str, name: str) -> None:
        self._session.transaction.control(TransactionControl(action, name))  # type: ignore[arg-type]  # one of its actions

    def _statement(self, text: str, discards: bool) -> None:
        for result in self._results(text, discards):
            self.notices += result.notices
            for _ in result.batches or ():  # rows that are discarded, but that may raise
                pass

    def _results(self, text: str, discards: bool) -> list[Result]:
        """Runs a text. Raises 0A000 and 42601, never with a place, which would be one of the whole block's."""
        session, results = self._session, []
        try:
            for raw in session.server.plans.parse(text):
                plan = session.plan_allowed(raw, (), session.surroundings)
                if isinstance(plan.statement, TransactionControl | CopyIn | CopyOut | DoBlock):
                    raise unsupported(f"{raw.text.split()[0].upper()} in DO", "Send it from the client.")
                if isinstance(plan.statement, Query) and not discards:
                    hint = "If you want to discard the results of a SELECT, use PERFORM instead."
                    raise SqlError("42601", "query has no destination for result data", hint=hint)
                results.append(self._run(session, plan, ()))
        except SqlError as error:
            error.position = None
            raise
        return results

    def _value(self, query: str) -> object:
        """The value of a query of one row and column."""
        (result,) = self._results(query, True)
        return next((row for batch in result.batches or () for row in batch.column(0).to_pylist()), None)

    def _required(self, expression: str) -> str:
        value = self._value(expression)
        if value is None:
            raise SqlError("22004", "query string argument of EXECUTE is null")
        return str(value)

    def _raise(self, step: Raise) -> None:
        if step.message is None and step.condition is None and not step.options:
            if not self._handling:
                message = "RAISE without parameters cannot be used outside an exception handler"
                raise SqlError("0Z002", message, where=_at(step), routine="exec_stmt_raise")
            raise self._handling[-1]
        error = self._error(step)
        if step.level == "ERROR":
            raise error
        error.severity = step.level
        self.notices.append(error)

    def _error(self, step: Raise) -> SqlError:
        """What RAISE tells. Raises 22004 for an option that is NULL, and 42601 for one that is there twice."""
        condition, fields = step.condition, {} if step.message is None else {"MESSAGE": self._message(step)}
        for name, query in step.options:
            value = self._value(query)
            if value is None:
                raise SqlError("22004", "RAISE statement option cannot be null")
            if name in fields or (name == "ERRCODE" and condition is not None):
                raise SqlError("42601", f"RAISE option already specified: {name}")
            if name == "ERRCODE":
                condition = str(value)
            else:
                fields[name] = str(value)
        state = _STATES.get(step.level, "00000") if condition is None else self._state(step, condition)
        error = SqlError(state, fields.get("MESSAGE", condition or state), fields.get("DETAIL"), fields.get("HINT"))
        names = [fields.get(name) for name in ("SCHEMA", "TABLE", "COLUMN", "CONSTRAINT", "DATATYPE")]
        if any(name is not None for name in names):
            error.about = Subject(*names)
        error.where, error.routine = _at(step), "exec_stmt_raise"
        return error

    def _state(self, step: Raise, condition: str) -> str:
        try:
            return state_of(condition) or _STATES.get(step.level, "00000")
        except SqlError as error:
            error.where, error.routine = _at(step), "exec_stmt_raise"
            raise

    def _message(self, step: Raise) -> str:
        """The message with the arguments' values in it."""
        values = iter([self._value(item) for item in step.arguments])
        first, *others = (step.message or "").replace("%%", "\0").split("%")
        rest = ("<NULL>" if (value := next(values)) is None else str(value) for _ in others)
        message = first + "".join(f"{value}{other}" for value, other in zip(rest, others, strict=True))
        return message.replace("\0", "%")


def _at(step: Raise) -> str:
    return f"PL/pgSQL function inline_code_block line {step.line} at RAISE"


def _is_for(states: Sequence[str], sqlstate: str) -> bool:
    """Whether one of a handler's states is an error's; OTHERS takes all but a cancelled statement."""
    return any(sqlstate.startswith(state) if state else sqlstate != "57014" for state in states)

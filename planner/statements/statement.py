"""What a statement means once names and types are resolved: the planner's output besides algebra.

Owns: one frozen class per kind of statement but those of ``planner.statements.definitions``. The binder makes them, the
executor runs them, the server answers with ``tag``. Positions in errors are resolved before these exist.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from catalog.objects import Index, Stream, Table, UniqueKey, View
from catalog.values.types import SqlType
from planner.algebra.event_time import Keeping
from planner.algebra.nodes import Column, Relation, Scalar
from planner.parse.parser import Raw
from planner.statements.definitions import Definition, Truncate
from planner.statements.do_blocks import DoBlock
from planner.view_rules import Places

#: A new row's columns with their values once those of generated columns are computed; empty where there are none.
Generated = tuple[tuple[Column, Scalar], ...]


class Output(Struct, frozen=True):
    """A result column as RowDescription announces it; ``table`` and ``attribute`` are 0 where it is an expression."""

    name: str
    type: SqlType
    typmod: int = -1
    table: int = 0
    attribute: int = 0


class Locking(Struct, frozen=True):
    """FOR UPDATE, FOR SHARE and the like, in ``words``: locks on rows; with ``nowait``, 55P03 about a table at once,
    and with ``skip`` no row that another transaction has locked."""

    words: str
    table: str
    nowait: bool = False
    skip: bool = False


class Query(Struct, frozen=True):
    """SELECT, VALUES or TABLE: the relation's columns are ``outputs`` position by position."""

    relation: Relation
    outputs: tuple[Output, ...]
    volatile: bool = False
    locking: Locking | None = None


class CreateTableAs(Struct, frozen=True):
    """CREATE TABLE AS, SELECT INTO: ``query`` yields complete rows of ``table``, taken unless ``filled`` is false."""

    table: Table
    query: Query
    filled: bool = True
    exists: bool = False


class CreateView(Struct, frozen=True):
    """CREATE [OR REPLACE] [MATERIALIZED] VIEW; ``query`` is bound, ``view.definition`` its text.

    ``places`` are for the errors of a view that cannot be continuous. ``keeping`` says for how long the view has its
    groups, where its options do. ``above`` are the views that read one that is replaced, before and after. ``kept`` is
    the continuous view, as it was when this was bound, that has the definition already and stays but for its options.
    """

    view: View
    query: Query
    replaces: bool = False
    exists: bool = False
    notices: tuple[str, ...] = ()
    places: Places = Places()
    keeping: Keeping | None = None
    above: tuple[tuple[View, View], ...] = ()
    kept: View | None = None
    warnings: tuple[str, ...] = ()


class Returning(Struct, frozen=True):
    """RETURNING: ``expressions`` over the changed row (Insert.row, Update.new or Delete.old) and what was beside it."""

    expressions: tuple[tuple[Column, Scalar], ...]
    outputs: tuple[Output, ...]


class Upsert(Struct, frozen=True):
    """DO UPDATE: a row in the way has the columns ``old``, the row that it stopped those of the Insert (``excluded``).

    Where ``predicate`` is true over both, ``assigned`` are the columns of the row that takes the old one's place.
    """

    old: tuple[Column, ...]
    predicate: Scalar | None
    assigned: tuple[tuple[Column, Scalar], ...]


class Conflict(Struct, frozen=True):
    """ON CONFLICT: what becomes of a row whose key of ``keys`` is taken; ``update`` None is DO NOTHING."""

    keys: tuple[UniqueKey | Index, ...]
    update: Upsert | None = None


class OfView(str):
    """What a check is called that is a view's WITH CHECK OPTION: the view's name."""

    __slots__ = ()


#: Conditions on a changed row, each with the name of its constraint or view.
Checks = tuple[tuple[str, Scalar], ...]


class Insert(Struct, frozen=True):
    """INSERT: ``source`` yields complete rows, ``row`` position by position in the target's column order.

    Assignment casts and defaults are expressions in ``source``. ``checks`` are the target's, over ``row``.
    ``literals`` holds the rows when ``source`` is VALUES of only literals and parameters, the latter perhaps under
    a Cast to the column's type: the path without an engine. ``view_checks`` are those of views, of the rows that are
    there afterwards, where ``checks`` are of all that are proposed. ``updated``, where RETURNING asks for it, is beside
    the row: 1 where ON CONFLICT has updated one, else 0.
    """

    target: Table | Stream
    source: Relation
    row: tuple[Column, ...]
    checks: Checks = ()
    returning: Returning | None = None
    literals: tuple[tuple[Scalar, ...], ...] | None = None
    conflict: Conflict | None = None
    generated: Generated = ()
    view_checks: Checks = ()
    updated: Column | None = None


class Update(Struct, frozen=True):
    """UPDATE: ``relation`` yields per changed row its ``row_id``, the ``old`` row and the ``new`` row.

    ``beside``: columns of FROM that RETURNING uses.
    """

    target: Table
    relation: Relation
    row_id: Column
    old: tuple[Column, ...]
    new: tuple[Column, ...]
    checks: Checks = ()
    returning: Returning | None = None
    beside: tuple[Column, ...] = ()
    generated: Generated = ()


class Delete(Struct, frozen=True):
    """DELETE: ``relation`` yields per deleted row its ``row_id`` and the ``old`` row.

    ``beside``: columns of USING that RETURNING uses.
    """

    target: Table
    relation: Relation
    row_id: Column
    old: tuple[Column, ...]
    returning: Returning | None = None
    beside: tuple[Column, ...] = ()


class MergeAction(Struct, frozen=True):
    """What a WHEN clause of MERGE does; ``row`` is the new row of an insert or update, over the relation's columns."""

    kind: Literal["insert", "update", "delete", "nothing"]
    row: tuple[tuple[Column, Scalar], ...] = ()


class Merge(Struct, frozen=True):
    """MERGE: ``relation`` yields each joined row: the target's ``row_id`` and ``old`` row (NULL: none), and ``action``,
    the index of what is done with it (NULL: nothing).
    """

    target: Table
    relation: Relation
    row_id: Column
    action: Column
    old: tuple[Column, ...]
    new: tuple[Column, ...]
    actions: tuple[MergeAction, ...]
    checks: Checks = ()
    generated: Generated = ()


#: What changes rows of one relation.
RowChange = Insert | Update | Delete | Merge


class Modifying(Struct, frozen=True):
    """WITH of statements that change rows: each part's RETURNING is, by its name, a leaf of what follows.

    Such a leaf is a ``Snapshot`` whose sources number RETURNING's columns.
    """

    parts: tuple[tuple[str, Insert | Update | Delete], ...]
    main: Query | RowChange

    @property
    def statements(self) -> tuple[Query | RowChange, ...]:
        """The parts in their order, and then the rest."""
        return (*(part for _, part in self.parts), self.main)


class CopyOptions(Struct, frozen=True):
    """COPY's options as given, defaults filled in by format; the forced are places among the columns copied.

    ``codec`` is Python's for ``encoding``, which is '' where it is the client's.
    """

    format: Literal["text", "csv", "binary"] = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    match_header: bool = False
    encoding: str = ""
    codec: str = "utf-8"
    force_quote: frozenset[int] = frozenset()
    force_not_null: frozenset[int] = frozenset()
    force_null: frozenset[int] = frozenset()


class CopyIn(Struct, frozen=True):
    """COPY target FROM: ``columns`` are indexes of the target's columns; ``path`` None is STDIN.

    ``defaults`` gives the target's other columns their values; ``checks`` are the target's, over complete rows ``row``,
    of which those are kept that meet ``where``.
    """

    target: Table | Stream
    columns: tuple[int, ...]
    options: CopyOptions
    path: str | None = None
    defaults: tuple[tuple[int, Scalar], ...] = ()
    checks: Checks = ()
    row: tuple[Column, ...] = ()
    generated: Generated = ()
    where: Scalar | None = None


class CopyOut(Struct, frozen=True):
    """COPY (query) TO, or the rows that a change returns; ``path`` None is STDOUT."""

    query: Query | Insert | Update | Delete | Modifying
    options: CopyOptions
    path: str | None = None


class TransactionControl(Struct, frozen=True):
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT name, RELEASE name, ROLLBACK TO name; ``tag`` is that of a beginning.

    ``chain``: another block with the same characteristics begins where this one ends.
    """

    action: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback_to"]
    name: str | None = None
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    tag: str = "BEGIN"
    chain: bool = False


class SetConstraints(Struct, frozen=True):
    """SET CONSTRAINTS; ``named`` are tables' oids with the names of their constraints, None is ALL."""

    named: tuple[tuple[int, str], ...] | None
    deferred: bool


class SetVariable(Struct, frozen=True):
    """SET [LOCAL], also TO DEFAULT (``value`` None), RESET, RESET ALL (``name`` 'all')."""

    name: str
    value: str | None
    local: bool = False
    tag: Literal["SET", "RESET"] = "SET"


class SetModes(Struct, frozen=True):
    """SET TRANSACTION and SET SESSION CHARACTERISTICS with several modes, set one after the other."""

    modes: tuple[SetVariable, ...]


class ShowVariable(Struct, frozen=True):
    """SHOW name or SHOW ALL."""

    name: str


class Explain(Struct, frozen=True):
    """EXPLAIN of a statement, or of a continuous view when the query is a bare read of one."""

    statement: Statement
    analyze: bool = False
    format: Literal["text", "json"] = "text"


class Prepare(Struct, frozen=True):
    """PREPARE name AS statement text, from ``offset`` on of the whole, ``written``; parameters' types as declared."""

    name: str
    text: str
    types: tuple[SqlType, ...]
    offset: int = 0
    written: str = ""


class ExecutePrepared(Struct, frozen=True):
    """EXECUTE name (arguments). ``places`` are where the arguments begin in the text; ``within`` is the EXPLAIN or
    CREATE TABLE AS in which it stands, if it does."""

    name: str
    arguments: tuple[Scalar, ...]
    places: tuple[int | None, ...] = ()
    within: Raw | None = None


class Deallocate(Struct, frozen=True):
    """DEALLOCATE name; None is ALL."""

    name: str | None


class Discard(Struct, frozen=True):
    """DISCARD ALL and its parts, in lower case: what resets a session."""

    what: str


class DeclareCursor(Struct, frozen=True):
    """DECLARE name CURSOR FOR query; ``scroll`` None leaves it to the query, ``text`` is the statement's own.

    The query's last columns may be the primary ``key`` of the ``table`` (its oid) of which each row shows a row.
    """

    name: str
    query: Query
    text: str
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False
    table: int = 0
    key: int = 0


class Fetch(Struct, frozen=True):
    """FETCH, or MOVE where it ``moves``: ``count`` rows in a direction (None: all), or the one at a place."""

    name: str
    direction: Literal["forward", "backward", "absolute", "relative"]
    count: int | None
    moves: bool = False


class CloseCursor(Struct, frozen=True):
    """CLOSE name; None is ALL."""

    name: str | None


class Listen(Struct, frozen=True):
    """LISTEN channel."""

    channel: str


class Unlisten(Struct, frozen=True):
    """UNLISTEN channel; None is all."""

    channel: str | None


class Notify(Struct, frozen=True):
    """NOTIFY channel, payload."""

    channel: str
    payload: str = ""


class LockTable(Struct, frozen=True):
    """LOCK: tables by oid and name, in a mode that is PostgreSQL's number of it, 1 to 8."""

    mode: int
    nowait: bool
    tables: tuple[tuple[int, str], ...]


class NoOperation(Struct, frozen=True):
    """A statement with nothing to do here, answered by its tag: VACUUM, ANALYZE, CHECKPOINT, ...

    ``alone``: what it is called where it may not be within a transaction block.
    """

    tag: str
    notices: tuple[str, ...] = ()
    alone: str = ""


#: What has rows or changes some.
RowStatement = Query | RowChange | Modifying

Statement = (
    RowStatement
    | Truncate
    | Definition
    | CreateTableAs
    | CreateView
    | CopyIn
    | CopyOut
    | TransactionControl
    | SetConstraints
    | SetModes
    | SetVariable
    | ShowVariable
    | Explain
    | Prepare
    | ExecutePrepared
    | Deallocate
    | Discard
    | DeclareCursor
    | Fetch
    | CloseCursor
    | Listen
    | Unlisten
    | Notify
    | LockTable
    | DoBlock
    | NoOperation
)


def outputs_of_rows(statement: RowStatement) -> tuple[Output, ...] | None:
    """The columns of a query, or of what a change returns; None where that has no rows."""
    match statement:
        case Query(outputs=outputs):
            return outputs
        case Modifying(main=main):
            return outputs_of_rows(main)
        case Merge():
            return None
        case _:
            return None if statement.returning is None else statement.returning.outputs

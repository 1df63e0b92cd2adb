"""Statements with resolved names and types: the planner's output besides algebra.

Owns: one frozen class per kind of statement but those of ``planner.statements.definitions``. The binder makes them, the
executor runs them, the server answers with ``tag``. Positions in errors are resolved before these exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from catalog.objects import Index, Stream, Table, UniqueKey, View
from catalog.values.types import SqlType
from planner.algebra.event_time import Keeping, Watermark
from planner.algebra.nodes import Column, Relation, Scalar
from planner.parse.parser import Raw
from planner.statements.definitions import Definition, Truncate
from planner.statements.do_blocks import DoBlock

#: The generated columns' values for a new row, over its other columns; empty without generated columns.
Generated = tuple[tuple[Column, Scalar], ...]


class Output(Struct, frozen=True):
    """A result column as RowDescription describes it; ``table`` and ``attribute`` are 0 for an expression."""

    name: str
    type: SqlType
    typmod: int = -1
    table: int = 0
    attribute: int = 0


class Locking(Struct, frozen=True):
    """FOR UPDATE, FOR SHARE and similar, in ``words``: row locks. With ``nowait``, a locked row raises 55P03; with
    ``skip``, rows that another transaction has locked are left out."""

    words: str
    table: str
    nowait: bool = False
    skip: bool = False


class Query(Struct, frozen=True):
    """SELECT, VALUES or TABLE; ``outputs`` describe the relation's columns in their order."""

    relation: Relation
    outputs: tuple[Output, ...]
    volatile: bool = False
    locking: Locking | None = None


class CreateTableAs(Struct, frozen=True):
    """CREATE TABLE AS, SELECT INTO: ``query`` yields complete rows of ``table``, which are stored unless ``filled`` is
    false."""

    table: Table
    query: Query
    filled: bool = True
    exists: bool = False


class CreateView(Struct, frozen=True):
    """CREATE [OR REPLACE] [MATERIALIZED] VIEW; ``query`` is bound, ``view.definition`` is its text.

    ``position`` is where the text first names a stream. ``keeping`` is how long the view keeps its groups, if its
    options say so. ``above`` are the views that read a replaced view, before and after. ``refreshed`` is an ordinary
    view, as of binding, that REFRESH MATERIALIZED VIEW makes a continuous one. ``watermarks`` are those of the streams
    that have one, by oid.
    """

    view: View
    query: Query
    replaces: bool = False
    exists: bool = False
    notices: tuple[str, ...] = ()
    position: int | None = None
    keeping: Keeping | None = None
    above: tuple[tuple[View, View], ...] = ()
    warnings: tuple[str, ...] = ()
    refreshed: View | None = None
    watermarks: Mapping[int, Watermark] = field(default_factory=dict[int, Watermark])


class AlterView(Struct, frozen=True):
    """ALTER VIEW ... SET or RESET (options), and CREATE OR REPLACE VIEW with an equal definition: ``before``, as of
    binding, becomes ``view``, which differs in its options.

    Where these change what the view shows, ``query`` is what it shows from now on, and ``keeping`` how long it keeps
    its groups; ``watermarks`` as above. ``tag`` is the statement's.
    """

    before: View
    view: View
    tag: str = "ALTER VIEW"
    query: Query | None = None
    keeping: Keeping | None = None
    watermarks: Mapping[int, Watermark] = field(default_factory=dict[int, Watermark])


class Returning(Struct, frozen=True):
    """RETURNING: ``expressions`` over the changed row (Insert.row, Update.new or Delete.old) and the columns beside
    it."""

    expressions: tuple[tuple[Column, Scalar], ...]
    outputs: tuple[Output, ...]


class Upsert(Struct, frozen=True):
    """DO UPDATE: ``old`` are the columns of the existing row with the same key, ``excluded`` those of the row proposed
    by INSERT.

    If ``predicate`` is true over both, the row ``assigned`` replaces the existing one.
    """

    old: tuple[Column, ...]
    predicate: Scalar | None
    assigned: tuple[tuple[Column, Scalar], ...]


class Conflict(Struct, frozen=True):
    """ON CONFLICT: what happens to a row if another row has its key of ``keys``; ``update`` None is DO NOTHING."""

    keys: tuple[UniqueKey | Index, ...]
    update: Upsert | None = None


class OfView(str):
    """The name of a check that is a view's WITH CHECK OPTION: the view's name."""

    __slots__ = ()


#: Conditions on a changed row, each with the name of its constraint or view.
Checks = tuple[tuple[str, Scalar], ...]


class Insert(Struct, frozen=True):
    """INSERT: ``source`` yields complete rows, ``row`` is their columns in the order of the target's columns.

    Assignment casts and defaults are expressions in ``source``. ``checks`` are the target's, over ``row``. ``literals``
    holds the rows if ``source`` is VALUES of only literals and parameters, a parameter possibly under a Cast to the
    column's type: such rows need no engine. ``view_checks`` are those of views; they apply to the rows that are stored,
    while ``checks`` apply to all proposed rows. ``updated``, if RETURNING needs it, is a column beside the row: 1 if ON
    CONFLICT has updated a row, else 0.
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
    """UPDATE: ``relation`` yields for each changed row its ``row_id``, the ``old`` row and the ``new`` row.

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
    """DELETE: ``relation`` yields for each deleted row its ``row_id`` and the ``old`` row.

    ``beside``: columns of USING that RETURNING uses.
    """

    target: Table
    relation: Relation
    row_id: Column
    old: tuple[Column, ...]
    returning: Returning | None = None
    beside: tuple[Column, ...] = ()


class MergeAction(Struct, frozen=True):
    """The action of a WHEN clause of MERGE; ``row`` is the new row of an insert or update, over the relation's
    columns."""

    kind: Literal["insert", "update", "delete", "nothing"]
    row: tuple[tuple[Column, Scalar], ...] = ()


class Merge(Struct, frozen=True):
    """MERGE: ``relation`` yields each joined row: the target's ``row_id`` and ``old`` row (NULL: none), and ``action``,
    the index of the action to run (NULL: none)."""

    target: Table
    relation: Relation
    row_id: Column
    action: Column
    old: tuple[Column, ...]
    new: tuple[Column, ...]
    actions: tuple[MergeAction, ...]
    checks: Checks = ()
    generated: Generated = ()


#: Statements that change rows of one relation.
RowChange = Insert | Update | Delete | Merge


class Modifying(Struct, frozen=True):
    """WITH whose queries change rows: the RETURNING rows of each part are, by its name, a leaf of the following
    statements.

    Such a leaf is a ``Snapshot`` whose sources number RETURNING's columns.
    """

    parts: tuple[tuple[str, Insert | Update | Delete], ...]
    main: Query | RowChange

    @property
    def statements(self) -> tuple[Query | RowChange, ...]:
        """The parts in their order, then the main statement."""
        return (*(part for _, part in self.parts), self.main)


class CopyOptions(Struct, frozen=True):
    """COPY's options as given, with the format's defaults filled in. The ``force_`` options hold places among the
    copied columns.

    ``codec`` is Python's codec for ``encoding``; both are '' for the client's encoding.
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

    ``defaults`` gives the values of the target's other columns. ``checks`` are the target's, over complete rows
    ``row``; only rows that meet ``where`` are stored.
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
    """COPY (query) TO, where the query may be a change with RETURNING; ``path`` None is STDOUT."""

    query: Query | Insert | Update | Delete | Modifying
    options: CopyOptions
    path: str | None = None


class TransactionControl(Struct, frozen=True):
    """BEGIN, COMMIT, ROLLBACK, SAVEPOINT name, RELEASE name, ROLLBACK TO name; ``tag`` is the tag of BEGIN or START
    TRANSACTION.

    ``chain``: a new block with the same characteristics begins when this one ends.
    """

    action: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback_to"]
    name: str | None = None
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    tag: str = "BEGIN"
    chain: bool = False


class SetConstraints(Struct, frozen=True):
    """SET CONSTRAINTS; ``named`` are tables' oids with the names of their constraints, None for ALL."""

    named: tuple[tuple[int, str], ...] | None
    deferred: bool


class SetVariable(Struct, frozen=True):
    """SET [LOCAL], also TO DEFAULT (``value`` None), RESET, RESET ALL (``name`` 'all')."""

    name: str
    value: str | None
    local: bool = False
    tag: Literal["SET", "RESET"] = "SET"


class SetModes(Struct, frozen=True):
    """SET TRANSACTION and SET SESSION CHARACTERISTICS with several modes, applied in order."""

    modes: tuple[SetVariable, ...]


class ShowVariable(Struct, frozen=True):
    """SHOW name or SHOW ALL."""

    name: str


class Explain(Struct, frozen=True):
    """EXPLAIN of a statement, or of a continuous view if the query only selects all of one view; with ``pace`` also of
    what it takes to follow more or fewer changes at a time."""

    statement: Statement
    analyze: bool = False
    format: Literal["text", "json"] = "text"
    pace: bool = False


class Prepare(Struct, frozen=True):
    """PREPARE name AS statement. The statement's text begins at ``offset`` in the whole text ``written``; ``types`` are
    the declared parameter types."""

    name: str
    text: str
    types: tuple[SqlType, ...]
    offset: int = 0
    written: str = ""


class ExecutePrepared(Struct, frozen=True):
    """EXECUTE name (arguments). ``places`` are the positions of the arguments in the text; ``within`` is the EXPLAIN or
    CREATE TABLE AS around it, if any."""

    name: str
    arguments: tuple[Scalar, ...]
    places: tuple[int | None, ...] = ()
    within: Raw | None = None


class Deallocate(Struct, frozen=True):
    """DEALLOCATE name; None is ALL."""

    name: str | None


class Discard(Struct, frozen=True):
    """DISCARD ALL or one of its parts, in lower case: resets a session."""

    what: str


class DeclareCursor(Struct, frozen=True):
    """DECLARE name CURSOR FOR query. With ``scroll`` None the query decides whether the cursor scrolls; ``text`` is the
    statement's text.

    The query's last columns may be the primary ``key`` of the ``table`` (its oid), if each row shows one row of it.
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
    """FETCH, or MOVE if ``moves``: ``count`` rows in a direction (None: all), or the row at a position."""

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
    """LOCK TABLE: tables by oid and name, and a mode by PostgreSQL's number, 1 to 8."""

    mode: int
    nowait: bool
    tables: tuple[tuple[int, str], ...]


class NoOperation(Struct, frozen=True):
    """A statement that does nothing in Millstream and is answered with its tag: VACUUM, ANALYZE, CHECKPOINT, ...

    ``alone``: the name for the error if it must not be in a transaction block, else None.
    """

    tag: str
    notices: tuple[str, ...] = ()
    alone: str = ""


#: Statements that return or change rows.
RowStatement = Query | RowChange | Modifying

Statement = (
    RowStatement
    | Truncate
    | Definition
    | CreateTableAs
    | CreateView
    | AlterView
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
    """The result columns of a query, or of a change with RETURNING; None if the statement returns no rows."""
    match statement:
        case Query(outputs=outputs):
            return outputs
        case Modifying(main=main):
            return outputs_of_rows(main)
        case Merge():
            return None
        case _:
            return None if statement.returning is None else statement.returning.outputs

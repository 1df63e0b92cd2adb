"""One connection of a DuckDB instance, and the fastest way through it from algebra to Arrow.

Owns: registered inputs and prepared statements. An input is registered once under its leaf's name as a ``Source``,
whose table is exchanged before every run: DuckDB asks the source for a stream at each scan, so a statement stays
prepared while its inputs change (which takes a third of the time of registering a table again). Plans are kept by the
identity of their relation; the caller must keep the relation to use its plan again.

A connection knows nothing of programs, of table semantics or of its ``instance``. One thread uses it at a time; any
thread may call ``interrupt``.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

import duckdb
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.nested_types import holds
from catalog.values.scales import is_padded
from catalog.values.types import SqlType
from executor.embedded.detached_statements import Apart, is_long
from executor.embedded.errors import overflowed, translate
from executor.embedded.functions.batches import ticks
from executor.embedded.printing.dialect import DuckPrinter
from executor.embedded.results import PORTION, STREAMED, OpenRows, arrow_reader, arrow_table, conform
from executor.files.file_tables import FileRows
from executor.printing.nodes import column_name
from planner.algebra.nodes import Limit, Parameter, Relation, Scalar, Scan
from planner.algebra.walk import contains, free_columns, kinds_of, replace_parameters, walk
from planner.cancellation import cancelled, leave
from planner.lowering.single_parameters import separate_parameters
from planner.placement import reads_system_alone
from planner.scales.nested import written_kind

#: Errors after which an assertion of DuckDB has failed. Such an error ends a query, and a result that was being kept
#: for one; a change of tables, or a commit, may have been applied in part.
_DOUBTFUL: Final = (duckdb.FatalException, duckdb.InternalException)
#: The begin of DuckDB's message for a failed assertion.
_ASSERTION: Final = "INTERNAL Error"
#: Setting: up to how many first rows of an order are looked up by their row ids.
FIRST_ROWS: Final = "late_materialization_max_rows"
#: Settings of a connection that measures the progress of its statements without printing it.
MEASURING: Final = {"enable_progress_bar_print": False, "enable_progress_bar": True}
_PLANS: Final = 256
_BATCH: Final = 65536
#: The most rows of a small result.
_SMALL: Final = 2048

_PARAMETERS: Final = kinds_of(Parameter)
_Result = TypeVar("_Result")
Parameters = Sequence[object]
#: The rows or files of leaves, by the leaves' engine names; the engine itself reads files.
Bindings = Mapping[str, pa.Table | FileRows]
NOTHING: Final[Bindings] = MappingProxyType({})
#: A function for a relation's rows, given the rows of further leaves.
Run = Callable[[Relation, Bindings], pa.Table]
#: A function for a relation's rows; it runs the relation, or the parts into which the relation was split.
Evaluate = Callable[[Relation, Run], pa.Table]


def plainly(relation: Relation, run: Run) -> pa.Table:
    """Runs a relation with the engine only."""
    return run(relation, NOTHING)


class Source:
    """A registered input: streams the table that it holds at the moment."""

    __slots__ = ("_nothing", "table")

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._nothing = table.schema.empty_table()

    def clear(self) -> None:
        """Drops the table."""
        self.table = self._nothing

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Plan(Struct, frozen=True):
    """A relation's plan, kept under ``name``. ``text`` runs it if it has no parameters, and is empty if it must be
    printed with their values.

    A plan is prepared only where that saves time: DuckDB plans a statement that reads tables again at each EXECUTE, and
    also one whose parameters reach a scan. A statement with parameters is prepared when it is used a second time (until
    then, ``is_first``), since most texts come once. A statement that reads only system relations is prepared at once,
    in a form that is planned once: PREPARE and EXECUTE take as long as the statement, and each further EXECUTE takes a
    third.
    """

    relation: Relation
    name: str
    text: str
    arguments: tuple[Scalar, ...]  # EXECUTE's arguments, over the parameters
    schema: pa.Schema
    is_first: bool = False
    is_long: bool = False  # it may not react to an interrupt for long


class Connection:
    """One connection, with its inputs and plans."""

    def __init__(
        self,
        cursor: Any,
        broken: Callable[[SqlError], None] = lambda error: None,
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        """``broken`` is called with errors after which the instance's content is unknown; ``interrupted`` is called to
        end the functions of the running statement."""
        self._raw = cursor
        self._open: weakref.ref[OpenRows] | None = None
        self._broken = broken
        self._interrupted = interrupted
        self._sources: dict[str, Source] = {}
        self._plans: OrderedDict[tuple[int, str, bool], Plan] = OrderedDict()
        #: Relations, by identity, whose last result for a client was small: they are prepared and computed completely.
        self._seen_small: dict[int, Relation] = {}
        self._texts: dict[str, str] = {}
        self._names = 0
        self._is_measuring = False
        #: When the running call began, in ``ticks``; 0 between statements.
        self.began = 0
        self._depth = 0
        #: Whether the running call must end.
        self.is_interrupted = False
        #: Whether a statement that does not end after an interrupt may be left behind together with the connection.
        self.may_be_left = False
        #: Whether decimals are computed with 38 digits at once: an overflow of narrower ones may go unnoticed.
        self.is_wide = False
        #: Whether a statement was left behind.
        self.is_lost = False
        self._apart: Apart[Any] | None = None
        self.in_transaction = False
        self._has_own_rows = False
        #: Whether the transaction will be rolled back at its end, which drops its temporary objects at no cost.
        self.makes_nothing = False
        self._registered: set[str] = set()  # inputs registered in this transaction, dropped by a rollback

    @property
    def _cursor(self) -> Any:
        """DuckDB's connection. An open result needs it alone, so the rest of that result is read first."""
        rows = self.open_rows
        if rows is not None:
            rows.settle()
            if self.is_lost:
                raise cancelled()
        return self._raw

    @property
    def open_rows(self) -> OpenRows | None:
        """The open result, if there is one that is still being read."""
        return None if self._open is None else self._open()

    # Statements -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Marks the begin of a call; ``__exit__`` marks its end."""
        if self.is_lost:
            raise cancelled()
        if not self._depth:
            self.is_interrupted = False
            self.began = next(ticks)
        self._depth += 1
        return self

    def __exit__(self, *raised: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.began = 0

    def _heard(self, is_long: bool, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """A call of the engine; if it is interrupted, the caller continues with 57014."""
        if not is_long or self._apart is not None:
            return function(*arguments)
        self._apart = apart = Apart(function, arguments, self._raw.close)
        try:
            return apart.run(self.may_be_left)
        finally:
            self.is_lost = apart.is_left
            self._apart = None

    def execute(self, sql: str) -> Any:
        """Runs SQL generated by the server. Raises SqlError."""
        return self._guarded(self._cursor.execute, sql)

    def _guarded(self, call: Callable[..., Any], sql: str = "") -> Any:
        """A call of the engine with a text, or without one for a transaction's begin or end. Raises SqlError."""
        try:
            with self:
                return self._heard(is_long(sql), call, sql) if sql else call()
        except _DOUBTFUL as error:
            if isinstance(error, duckdb.FatalException) or not sql.startswith("CREATE TEMPORARY"):
                self._broken(translate(error))
            raise translate(error) from error
        except duckdb.Error as error:
            raise translate(error) from error

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a small result as Python values; the statement stays prepared."""
        with self:
            rows: list[tuple[Any, ...]] = self.execute(self._again(sql)).fetchall()
        return rows

    def table(self, sql: str, schema: pa.Schema) -> pa.Table:
        """A result as Arrow with a schema; the statement stays prepared."""
        try:
            with self:
                return conform(arrow_table(self._cursor, self._again(sql)), schema)
        except duckdb.Error as error:
            raise translate(error) from error

    def batches(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A large result in batches, computed while it is read."""
        try:
            with self:
                for batch in self._heard(is_long(sql), arrow_reader, self._cursor, sql, _BATCH):
                    yield from conform(pa.Table.from_batches([batch]), schema).to_batches()
        except STREAMED as error:
            raise translate(error) from error

    def _again(self, sql: str) -> str:
        """An EXECUTE of a text, which is prepared on its first use."""
        name = self._texts.get(sql)
        if name is None:
            if len(self._texts) >= _PLANS:
                self._drop_texts()
            self._names += 1
            name = f"p{self._names}"
            self.execute(f"PREPARE {name} AS {sql}")
            self._texts[sql] = name
        return f"EXECUTE {name}"

    def begin(self) -> None:
        """Starts a transaction. After an error in it, only ``rollback`` is possible."""
        self._guarded(self._cursor.begin)
        self.in_transaction = True

    def expect_own_rows(self) -> None:
        """The transaction is about to change rows, and may read them again. Until its end, the first rows of an order
        are read as they are: DuckDB otherwise looks up the row ids of those that it has chosen, and a look-up by row
        ids that has rows of the transaction among them loses rows (2.0)."""
        if not self._has_own_rows:
            self.execute(f"SET SESSION {FIRST_ROWS} = 0")
            self._has_own_rows = True

    def _forget_own_rows(self) -> None:
        if self._has_own_rows:
            self._has_own_rows = False
            self.execute(f"RESET SESSION {FIRST_ROWS}")

    def commit(self) -> None:
        """Commits."""
        makes_nothing = self.makes_nothing
        self.in_transaction = self.makes_nothing = False
        self._guarded(self._cursor.rollback if makes_nothing else self._cursor.commit)
        self._forget_own_rows()
        for name in self._registered if makes_nothing else ():
            self.release(name)
        self._registered.clear()

    def rollback(self) -> None:
        """Rolls back, and drops inputs that the transaction registered."""
        self.in_transaction = self.makes_nothing = False
        if self.is_lost:  # the transaction ends with the connection
            return
        with contextlib.suppress(duckdb.Error):  # DuckDB may have ended the transaction already
            self._cursor.execute("ROLLBACK")
        self._forget_own_rows()
        self.forget()

    def interrupt(self) -> None:
        """Makes the running call raise 57014."""
        self.is_interrupted = True
        if not self.is_lost:
            self._raw.interrupt()
        if self._apart is not None:
            self._apart.interrupt()
        self._interrupted()

    def measure(self) -> None:
        """Makes ``progress`` report the progress of statements from now on."""
        if not self._is_measuring:
            self.execute("; ".join(f"SET {name} = {value}" for name, value in MEASURING.items()))
            self._is_measuring = True

    def progress(self) -> float:
        """The approximate finished share of the running statement, for any thread; 0 if the engine cannot tell."""
        try:
            return max(0.0, float(self._raw.query_progress()) / 100)
        except duckdb.Error:  # the connection was closed
            return 0.0

    def close(self) -> None:
        """Closes the connection."""
        self._plans.clear()
        self.drop_rows()
        if not self.is_lost:
            self._raw.close()
        self._sources.clear()

    def drop_rows(self) -> None:
        """Stops computing the rows of an open result."""
        rows = self.open_rows
        if rows is not None:
            rows.close()

    def next_batch(self, reader: Any, is_apart: bool) -> pa.RecordBatch:
        """The next batch of an open result. Raises StopIteration at its end."""
        with self:
            return self._heard(is_apart, reader.read_next_batch)

    def _closed(self, bindings: Bindings) -> None:
        """The open result has ended."""
        self._open = None
        self.unbind(bindings)

    # Inputs -----------------------------------------------------------------------------------------------------

    def bind(self, bindings: Bindings) -> None:
        """Makes tables available under their leaves' names. Raises 57014, as an interrupt may arrive here, too."""
        try:
            for name, rows in bindings.items():
                if not isinstance(rows, FileRows):
                    self._bind(name, rows)
        except duckdb.Error as error:
            raise translate(error) from error

    def _bind(self, name: str, table: pa.Table) -> None:
        source = self._sources.get(name)
        if source is not None and source.table.schema.equals(table.schema):
            source.table = table
            return
        self.release(name)
        new = Source(table)
        self._cursor.register(name, new)
        self._sources[name] = new
        if self.in_transaction:
            self._registered.add(name)

    def release(self, name: str) -> None:
        """Frees the name of an input for a table."""
        if name in self._sources and not self.is_lost:
            self._drop_plans()
            self._cursor.unregister(name)
            del self._sources[name]

    def unbind(self, bindings: Bindings) -> None:
        """Drops the tables of inputs; their names and the statements stay."""
        for name in bindings:
            source = self._sources.get(name)
            if source is not None:
                source.clear()

    def forget(self) -> None:
        """Drops all inputs and plans."""
        self._drop_plans()
        for name in self._sources:
            self._cursor.unregister(name)
        self._sources.clear()
        self._registered.clear()

    # Queries ----------------------------------------------------------------------------------------------------

    def query(
        self, relation: Relation, bindings: Bindings, parameters: Parameters = (), timezone: str = "UTC"
    ) -> pa.Table:
        """The relation's rows, columns c<id> in exactly their Arrow types."""
        with self:
            return self._query(relation, bindings, parameters, timezone)

    def _query(self, relation: Relation, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table:
        files = {name: rows for name, rows in bindings.items() if isinstance(rows, FileRows)}
        attempt: Callable[..., pa.Table] = partial(self._as_text, files) if files else self._attempt
        self.bind(bindings)
        try:
            return attempt(relation, parameters, timezone, wide=self.in_transaction or self.is_wide)
        except duckdb.InternalException as error:
            if self.in_transaction:
                raise translate(error) from error
            attempt = partial(self._as_text, files, apart=True)
        except duckdb.Error as error:
            if self.in_transaction or not overflowed(error):
                raise translate(error) from error
        finally:
            self.unbind(bindings)
        self.bind(bindings)
        try:
            return attempt(relation, parameters, timezone, wide=True)
        except duckdb.Error as error:
            raise translate(error) from error
        finally:
            self.unbind(bindings)

    def open(
        self, relation: Relation, bindings: Bindings, parameters: Parameters = (), timezone: str = "UTC"
    ) -> pa.Table | OpenRows:
        """The relation's rows: a table if they are few, else a result that is computed while it is read. Decimals are
        computed with 38 digits throughout."""
        self.bind(bindings)
        found: pa.Table | OpenRows | None = None
        try:
            with self:
                found = self._opened(relation, bindings, parameters, timezone)
        except STREAMED as error:
            if self.in_transaction or not str(error).startswith(_ASSERTION):
                raise translate(error) from error
        finally:
            if not isinstance(found, OpenRows):
                self.unbind(bindings)
        return self.query(relation, bindings, parameters, timezone) if found is None else found

    def _opened(
        self, relation: Relation, bindings: Bindings, parameters: Parameters, timezone: str
    ) -> pa.Table | OpenRows:
        schema = _schema(relation)
        files = {name: rows for name, rows in bindings.items() if isinstance(rows, FileRows)}
        if not files and id(relation) in self._seen_small:
            table = self._attempt(relation, parameters, timezone, wide=True)
            if table.num_rows >= _SMALL:
                self._seen_small.pop(id(relation), None)
            return table
        # An EXECUTE would be computed completely first.
        printer = DuckPrinter(wide=True, timezone=timezone, read=files)
        text = _printed(printer, replace_parameters(relation, parameters))
        is_apart, cursor = is_long(text), self._cursor
        reader = self._heard(is_apart, arrow_reader, cursor, text, PORTION)
        found = OpenRows(self, reader, schema, partial(self._closed, bindings), is_apart)
        self._open = weakref.ref(found)
        table = found.begin()
        if table is not None and table.num_rows < _SMALL and not files:
            if len(self._seen_small) >= _PLANS:
                self._seen_small.clear()
            self._seen_small[id(relation)] = relation
        return found if table is None else table

    def _attempt(self, relation: Relation, parameters: Parameters, timezone: str, wide: bool) -> pa.Table:
        plan, call = self._called(relation, parameters, timezone, wide)
        return conform(self._heard(plan.is_long, arrow_table, self._cursor, call), plan.schema)

    def _as_text(
        self,
        files: Mapping[str, FileRows],
        relation: Relation,
        parameters: Parameters,
        timezone: str,
        wide: bool,
        apart: bool = False,
    ) -> pa.Table:
        """The result of a text that is used once, as for files, whose names are in it.

        With the parameters' values as constants, the engine sees while planning which row groups it can skip.
        """
        printer = DuckPrinter(wide=wide, timezone=timezone, read=files, apart=apart)
        return self._arrow(_printed(printer, replace_parameters(relation, parameters)), relation)

    def _arrow(self, sql: str, relation: Relation) -> pa.Table:
        return conform(self._heard(is_long(sql), arrow_table, self._cursor, sql), _schema(relation))

    def once(self, sql: str, relation: Relation) -> pa.Table:
        """The result of a printed relation over bound inputs, without preparing it."""
        try:
            with self:
                return self._arrow(sql, relation)
        except duckdb.Error as error:
            raise translate(error) from error

    def few(self, sql: str, relation: Relation, most: int) -> pa.Table | None:
        """The result if it has at most ``limit`` rows; else None, without reading more into memory."""
        found: list[pa.RecordBatch] = []
        count, schema = 0, _schema(relation)
        for batch in self.batches(sql, schema):
            found.append(batch)
            count += batch.num_rows
            if count > most:
                return None
        return pa.Table.from_batches(found, schema)

    def once_in_batches(self, sql: str, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The result, computed while it is read; meanwhile, nothing else may run on the connection."""
        return self.batches(sql, _schema(relation))

    def printed(self, relation: Relation, timezone: str, files: Mapping[str, FileRows] = MappingProxyType({})) -> str:
        """A relation without parameters as the engine's SQL; decimals are computed with 38 digits."""
        return _printed(DuckPrinter(wide=True, timezone=timezone, read=files), relation)

    def _called(self, relation: Relation, parameters: Parameters, timezone: str, wide: bool) -> tuple[Plan, str]:
        """A relation's plan and its call, with the parameters as constants where the engine requires that."""
        plan = self._prepared(relation, timezone, wide)
        if plan.text:
            return plan, _call(plan, parameters)
        call = _printed(DuckPrinter(wide=wide, timezone=timezone), replace_parameters(relation, parameters))
        return replace(plan, is_long=is_long(call)), call

    def _prepared(self, relation: Relation, timezone: str, wide: bool) -> Plan:
        key = (id(relation), timezone, wide)
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
            if not plan.is_first:
                return plan
        planned_once = reads_system_alone(relation)
        if plan is None and not planned_once and _has_plain_parameters(relation):
            plan = self._plans[key] = Plan(relation, "", "", (), _schema(relation), is_first=True)
            return plan
        sql, arguments = _with_arguments(relation, wide, timezone, planned_once)
        self._names += 1
        name, schema = f"p{self._names}", _schema(relation)
        is_constant = bool(arguments) and _counts_for_each_row(relation)
        is_prepared = not is_constant and (bool(arguments) or not _reads_tables(relation))
        text = f"EXECUTE {name}" if is_prepared else "" if is_constant else sql
        plan = Plan(relation, name, text, arguments, schema, is_long=is_long(sql))
        if is_prepared:
            self._heard(plan.is_long, self._cursor.execute, f"PREPARE {name} AS {sql}")
        self._plans[key] = plan
        if len(self._plans) > _PLANS:
            _, oldest = self._plans.popitem(last=False)
            self._deallocate(oldest)
        return plan

    def _drop_plans(self) -> None:
        for plan in self._plans.values():
            self._deallocate(plan)
        self._plans.clear()
        self._seen_small.clear()
        self._drop_texts()

    def _deallocate(self, plan: Plan) -> None:
        if plan.text.startswith("EXECUTE "):
            self._cursor.execute(f"DEALLOCATE {plan.name}")

    def _drop_texts(self) -> None:
        for name in self._texts.values():
            self._cursor.execute(f"DEALLOCATE {name}")
        self._texts.clear()


def _schema(relation: Relation) -> pa.Schema:
    return pa.schema([pa.field(column_name(column), column.type.arrow) for column in relation.columns])


def _printed(printer: DuckPrinter, relation: Relation) -> str:
    try:
        return leave(printer.print_relation, relation)
    except RecursionError:
        raise SqlError("54001", "stack depth limit exceeded") from None


def _with_arguments(
    relation: Relation, wide: bool, timezone: str, planned_once: bool
) -> tuple[str, tuple[Scalar, ...]]:
    """A relation as text with $1, $2, ..., and the expression of each of them. ``planned_once``: DuckDB plans it at
    PREPARE only."""
    if not planned_once or not contains(relation, _PARAMETERS):
        printer = DuckPrinter(wide=wide, timezone=timezone)
        return _printed(printer, relation), tuple(Parameter(*item) for item in printer.parameters.items())
    printed, arguments = separate_parameters(relation)
    printer = DuckPrinter(wide=wide, timezone=timezone, planned_once=True)
    text = _printed(printer, printed)
    return text, tuple(_of_type(arguments[index], kind) for index, kind in printer.parameters.items())


def _of_type(argument: Scalar, kind: SqlType) -> Scalar:
    """An argument; the value of a parameter is written as a literal of the parameter's type."""
    return Parameter(argument.index, kind) if isinstance(argument, Parameter) else argument


def _call(plan: Plan, parameters: Parameters) -> str:
    """EXECUTE with the parameters as literals, since DuckDB accepts no other arguments there."""
    if not plan.arguments:
        return plan.text
    printer = DuckPrinter()
    values = [printer.print_scalar(replace_parameters(argument, parameters)) for argument in plan.arguments]
    return f"EXECUTE {plan.name}({', '.join(values)})"


def _counts_for_each_row(relation: Relation) -> bool:
    """Whether a parameter is the LIMIT or OFFSET of a correlated subquery, which must be a constant for the engine."""
    return any(
        isinstance(node, Limit)
        and any(isinstance(item, Parameter) for part in (node.count, node.offset) if part for item in walk(part))
        and free_columns(node.input)
        for node in walk(relation)
    )


def _has_plain_parameters(relation: Relation) -> bool:
    """Whether there are parameters and each can be written as a constant of its type."""
    if not contains(relation, _PARAMETERS):
        return False
    types = {node.type for node in walk(relation) if isinstance(node, Parameter)}
    return all(written_kind(kind) == kind and not holds(kind, is_padded) and kind.name != "jsonpath" for kind in types)


def _reads_tables(relation: Relation) -> bool:
    return any(isinstance(node, Scan) and node.kind == "table" for node in walk(relation))

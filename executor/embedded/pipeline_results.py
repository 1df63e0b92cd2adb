"""Results of a query's finished pipelines, in temporary tables of the connection that runs the next ones.

Owns: the tables' names (those of the snapshots that read them), their sizes, and their removal. The engine knows the
row count of such a table, unlike that of Arrow rows, and moves the table to disk if memory is short. A result leaves
the table through a query. If Python can compute the following pipelines from few rows, these are fetched instead, and
become a table only once the engine must read them. Decimals are computed with 38 digits, as in any transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from executor.embedded.connection import Bindings, Connection
from executor.embedded.printing.dialect import STORE
from executor.files.file_tables import FileRows
from executor.printing.nodes import column_name, leaf_name, quoted
from executor.small import small_of
from executor.small.values import CELLS
from planner.algebra.nodes import ROW_ID, Column, Join, Relation, Scan, Snapshot
from planner.algebra.walk import walk

#: A placeholder for a slice's bounds in a text that is printed once for all slices.
_LOW: Final = 0x3A5F_0C77_91D2_4E6B
_HIGH: Final = 0x5C19_E83D_27B6_F04D
#: Rows from which on texts and similar values in a result are measured, by a sample of this many rows, and their
#: assumed bytes in smaller results: measuring takes 2 to 3 ms, in which some hundred kilobytes can be transferred.
_MANY: Final = 65_536
_MEASURED: Final = 2048
_SHORT: Final = 32
#: The size in bytes below which a result is not dropped before its transaction ends, as the statement costs more.
_SMALL: Final = 1 << 20


class Kept(Struct, frozen=True):
    """The size of a result; ``size`` is in bytes, approximately."""

    rows: int
    size: int


class KeptResults:
    """The results of one query on one connection, which nothing else uses meanwhile."""

    def __init__(
        self,
        connection: Connection,
        bindings: Bindings,
        time_zone: str,
        texts: MutableMapping[str, str] | None = None,
        counts: MutableMapping[str, int] | None = None,
    ) -> None:
        """``bindings`` are the rows of leaves that are not tables of the engine; ``texts`` are the texts of pipelines
        that were printed before, by name, and ``counts`` their results' row counts."""
        self.number = ROW_ID
        self._connection = connection
        self._bindings = bindings
        self._files = {name: rows for name, rows in bindings.items() if isinstance(rows, FileRows)}
        self._time_zone = time_zone
        self._texts = {} if texts is None else texts
        self._counts = {} if counts is None else counts
        self._slices: dict[str, str] = {}
        self._tables: dict[str, int] = {}  # with their row counts
        self._fetched: dict[str, pa.Table] = {}
        self._results: dict[str, Snapshot] = {}
        self._is_computing = False
        connection.bind(bindings)
        connection.measure()

    def progress(self) -> float:
        """The finished share of the running step, as the engine reports it: 0 to 1, for any thread."""
        return self._connection.progress() if self._is_computing else 0.0

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """Marks that a pipeline, or a slice of one, is being computed."""
        self._is_computing = True
        try:
            yield
        finally:
            self._is_computing = False

    def keep(self, result: Snapshot, relation: Relation, readers: Sequence[Relation]) -> Kept:
        """Computes a relation's rows and keeps them as the rows of a snapshot, which the relations ``readers`` read."""
        name = leaf_name(result)
        # The engine has no table of fetched rows.
        found = self._without_engine(relation) if self._fetched else None
        if found is None:
            self._settle()
            text = self._text(result.trace, relation)
            if self._is_few(result) and all(_is_computed_here(reader, name) for reader in readers):
                found = self._connection.few(text, result, CELLS // len(result.columns))
            if found is None:
                kept = self._keep(result, text)
                self._counts[result.trace] = kept.rows
                return kept
        self._fetched[name], self._results[name] = found, result
        return Kept(found.num_rows, self._size(name, result.columns, found.num_rows))

    def _is_few(self, result: Snapshot) -> bool:
        """Whether a result had few rows in an earlier run."""
        rows = self._counts.get(result.trace)
        return rows is not None and rows * len(result.columns) <= CELLS

    def add(self, result: Snapshot, sliced: Callable[[int, int], Relation], low: int, high: int) -> Kept:
        """Adds the result of one slice to the snapshot's rows. ``sliced`` gives the relation over the rows of a leaf
        numbered from ``low`` to below ``high``. The text is printed once for all slices."""
        self._settle()
        if result.trace not in self._slices:
            self._slices[result.trace] = self._printed(sliced(_LOW, _HIGH))
        text = self._slices[result.trace]
        if any(text.count(str(mark)) != 1 for mark in (_LOW, _HIGH)):
            return self._keep(result, self._printed(sliced(low, high)))
        return self._keep(result, text.replace(str(_LOW), str(low)).replace(str(_HIGH), str(high)))

    def _keep(self, result: Snapshot, text: str) -> Kept:
        name = leaf_name(result)
        self._connection.release(name)
        into = f"INSERT INTO {quoted(name)}" if name in self._tables else f"CREATE TEMPORARY TABLE {quoted(name)} AS"
        with self._computing():
            ((added,),) = self._connection.execute(f"{into} {text}").fetchall()
        rows = self._tables[name] = self._tables.get(name, 0) + added
        self._results[name] = result
        return Kept(rows, self._size(name, result.columns, rows))

    def numbers(self, leaf: Scan | Snapshot) -> tuple[int, int]:
        """The least and the greatest number of a leaf's rows, or of its files, with which it can be read in slices."""
        self._settle()
        name = leaf_name(leaf)
        if name in self._files:
            return 0, len(self._files[name].paths) - 1
        if name in self._bindings and name not in self._tables:
            self._load(name)
        table = quoted(name) if name in self._tables else f"{STORE}.main.{quoted(name)}"
        ((low, high),) = self._connection.execute(f"SELECT min(rowid), max(rowid) FROM {table}").fetchall()
        return (0, -1) if low is None else (low, high)

    def reads_parts(self, leaf: Scan | Snapshot) -> bool:
        """Whether a leaf reads files, which are numbered instead of rows."""
        return leaf_name(leaf) in self._files

    @property
    def left(self) -> Bindings:
        """The bound leaves that are not tables."""
        return {name: rows for name, rows in self._bindings.items() if name not in self._tables}

    def load(self, relation: Relation) -> None:
        """Makes tables of all bound rows if a relation has several joins: the engine knows tables' row counts, and
        orders joins by them."""
        if sum(isinstance(node, Join) for node in walk(relation)) < 2:
            return
        for name, rows in self._bindings.items():
            if name not in self._tables and isinstance(rows, pa.Table):
                self._load(name)

    def _settle(self) -> None:
        """Makes tables of the fetched rows, for the engine."""
        while self._fetched:
            name, rows = self._fetched.popitem()
            self._connection.bind({name: rows})
            self._load(name)

    def _load(self, name: str) -> None:
        """Makes a table of bound rows."""
        copy = quoted(f"{name}_loaded")
        create = f"CREATE TEMPORARY TABLE {copy} AS SELECT * FROM {quoted(name)}"
        ((rows,),) = self._connection.execute(create).fetchall()
        self._connection.release(name)
        self._connection.execute(f"ALTER TABLE {copy} RENAME TO {quoted(name)}")
        self._tables[name] = rows

    def rows(self, relation: Relation, name: str | None = None) -> pa.Table:
        """A relation's rows over the kept results and bound leaves, columns c<id> in exactly their Arrow types;
        ``name`` is the pipeline that computes them. For few rows Python computes them, in a third of the time."""
        found = self._without_engine(relation)
        if found is not None:
            return found
        self._settle()
        text = self._printed(relation) if name is None else self._text(name, relation)
        with self._computing():
            return self._connection.once(text, relation)

    def batches(self, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The rows, computed while they are read."""
        found = self._without_engine(relation)
        if found is not None:
            return iter(found.to_batches())
        self._settle()
        return self._connection.once_in_batches(self._printed(relation), relation)

    def _without_engine(self, relation: Relation) -> pa.Table | None:
        small = small_of(relation)
        table = None if small is None else self._few(small.leaf)
        return None if small is None or table is None else small.run({small.leaf: table})

    def _few(self, name: str) -> pa.Table | None:
        """The rows of a result or of a bound leaf; None for a large result and for other leaves."""
        if name in self._fetched:
            return self._fetched[name]
        result = self._results.get(name)
        if result is None:
            bound = self._bindings.get(name)
            return bound if isinstance(bound, pa.Table) and name not in self._tables else None
        if self._tables[name] * len(result.columns) > CELLS:
            return None
        return self._connection.once(f"FROM {quoted(name)}", result)

    def _text(self, name: str, relation: Relation) -> str:
        """The text of a pipeline. Texts with files are printed anew for each run, as the files may differ."""
        if self._files:
            return self._printed(relation)
        if name not in self._texts:
            self._texts[name] = self._printed(relation)
        return self._texts[name]

    def _printed(self, relation: Relation) -> str:
        return self._connection.printed(relation, self._time_zone, self._files)

    def drop(self, result: Snapshot) -> None:
        """Drops a result that nothing reads any more. A small one is dropped with its transaction."""
        name = leaf_name(result)
        del self._results[name]
        if self._fetched.pop(name, None) is not None:
            return
        size = self._size(name, result.columns, self._tables[name]) if self._connection.in_transaction else _SMALL
        if size >= _SMALL:
            del self._tables[name]
            self._connection.execute(f"DROP TABLE {quoted(name)}")

    def close(self) -> None:
        """Drops all results. After a failed transaction, its end does that."""
        self._connection.unbind(self._bindings)
        if self._connection.in_transaction:
            self._connection.makes_nothing = True
            return
        with contextlib.suppress(SqlError):
            for name in self._tables:
                self._connection.execute(f"DROP TABLE {quoted(name)}")
        self._tables.clear()

    def _size(self, name: str, columns: tuple[Column, ...], rows: int) -> int:
        width = sum(width_of(column.type) or 0 for column in columns)
        long = [column_name(column) for column in columns if width_of(column.type) is None]
        if long and rows < _MANY:
            width += _SHORT * len(long)
        elif long:
            lengths = " + ".join(f"coalesce(strlen({quoted(item)}::VARCHAR), 0)" for item in long)
            sample = f"SELECT {lengths} AS n FROM {quoted(name)} LIMIT {_MEASURED}"
            ((found,),) = self._connection.execute(f"SELECT avg(n) FROM ({sample})").fetchall()
            width += int(found)
        return rows * width


def _is_computed_here(relation: Relation, leaf: str) -> bool:
    """Whether Python computes a relation that reads one leaf."""
    small = small_of(relation)
    return small is not None and small.leaf == leaf


def width_of(kind: SqlType) -> int | None:
    """Bytes of a value; None if values differ in size."""
    try:
        return 1 if kind.name == "bool" else int(kind.arrow.byte_width)
    except ValueError:
        return None

"""One DuckDB instance: its settings, the functions and macros that our SQL calls, and its connections.

Owns: what all connections share. Statements do not pass through here (``connection``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from catalog.values.errors import SqlError
from executor.embedded.connection import MEASURING, Bindings, Connection
from executor.embedded.errors import translate
from executor.embedded.functions import library
from executor.embedded.functions.batches import Batches
from executor.embedded.printing.dialect import STORE
from planner.algebra.nodes import Relation
from planner.cancellation import Calls, current
from planner.placement import Power

_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SETTINGS: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "ieee_floating_point_ops": False,  # 1.0 / 0.0 is an error
    "error_on_division_by_zero": True,
    "default_null_order": "nulls_last",
    "order_by_non_integer_literal": True,  # what orders nothing is no error
    "max_expression_depth": 5000,
    "immediate_transaction_mode": True,  # a snapshot is of the moment of BEGIN, not of the first read
    # The one makes sum(x) + count(x) of sum(x + 1), in which no x + 1 overflows; the other, where a statement joins a
    # table with itself at two places, takes a column of one side for that of the other.
    "disabled_optimizers": "aggregate_function_rewriter,common_subplan",
    # A query in which an assertion of DuckDB's fails is no end of the others: ``Instance`` refuses all that come after
    # only where changes were under way.
    "disable_database_invalidation": True,
}

#: Settings that change after the start: to set the limit again is what makes DuckDB give freed memory back.
_LATER: Final = [*MEASURING, "memory_limit"]
_RESTART: Final = "Restart the server."


def _unopened(path: Path, error: SqlError) -> SqlError:
    """What keeps DuckDB from a file, where it has no state of its own, is the file's content or the disk."""
    if error.sqlstate != "XX000":
        return error
    is_disk = error.message.startswith("IO Error")
    return SqlError("58030" if is_disk else "XX001", f'could not open "{path.name}": {error.message}')


class Instance:
    """A DuckDB instance in memory, the tables' file attached where there is one. No SQL reaches the network, nor files
    outside ``folders`` and ``spill``, where it writes what exceeds its memory (53200 without one).
    """

    def __init__(
        self,
        threads: int = 0,
        path: Path | None = None,
        folders: Sequence[str] = (),
        spill: Path | None = None,
        memory: int = 0,
    ) -> None:
        config = {**_SETTINGS, "temp_directory": str(spill or ""), **({"threads": threads} if threads else {})}
        if memory:
            config["memory_limit"] = f"{memory}B"
        self._database = duckdb.connect(":memory:", config=config)
        self._batches = Batches()
        library.install(self._database, self._query, self._batches)
        if path is not None:
            quoted = str(path).replace("'", "''")
            try:
                self._database.execute(f"ATTACH '{quoted}' AS {STORE}")
            except duckdb.Error as error:
                self._database.close()
                raise _unopened(path, translate(error)) from error
        if folders:
            self._database.execute("SET allowed_directories = $folders", {"folders": list(folders)})
        self._database.execute(
            "SET GLOBAL TimeZone = 'UTC'; SET enable_external_access = false; "
            f"SET allowed_configs = {_LATER}; SET lock_configuration = true"
        )
        self._memory = self._database.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
        self._path = path
        self._is_left = False  # whether a statement may run whose connection is lost
        self._failure: SqlError | None = None
        self._idle: list[Connection] = []
        #: Whose they are: what was named, and the client whose thread asked.
        self._busy: dict[Connection, tuple[object, Calls | None]] = {}
        #: Those that functions within other statements use.
        self._within: set[Connection] = set()
        self._lock = threading.Lock()

    def power(self) -> Power:
        """Its threads and memory, which it says in words: 18.8 GiB."""
        threads, limit = self._database.execute(
            "SELECT current_setting('threads'), current_setting('memory_limit')"
        ).fetchall()[0]
        number, unit = limit.split()
        return Power(int(threads), float(number) * _UNITS[unit])

    def acquire(self, owner: object = None) -> Connection:
        """A connection for the caller alone, until ``release``. ``interrupt`` may name its ``owner``, or the client for
        which the thread works.

        Raises XX000 where changes have failed within DuckDB: a start reads them from the log again.
        """
        with self._lock:
            if self._failure is not None:
                raise SqlError("XX000", f"the tables' engine has failed: {self._failure.message}", hint=_RESTART)
            connection = self._idle.pop() if self._idle else self._connect()
            self._busy[connection] = owner, current()
        return connection

    def _connect(self) -> Connection:
        connection = Connection(self._database.cursor(), self._fail, self._interrupt_functions)
        connection.may_be_left = self._path is None  # of tables' the transaction may have to be undone
        return connection

    def release(self, connection: Connection) -> None:
        """Gives a connection back; it must be outside a transaction."""
        with self._lock:
            self._busy.pop(connection, None)
            if not connection.is_lost:
                connection.may_be_left = self._path is None
                self._idle.append(connection)
            else:
                self._is_left = True

    def _fail(self, error: SqlError) -> None:
        """What the tables hold is not known any more."""
        self._failure = error

    def _query(self, relation: Relation, bindings: Bindings, timezone: str) -> pa.Table:
        """A relation's rows, on a connection of its own: for functions within another connection's statement."""
        connection = self.acquire()
        self._within.add(connection)
        try:
            return connection.query(relation, bindings, timezone=timezone)
        finally:
            self._within.discard(connection)
            self.release(connection)

    def give_back(self) -> None:
        """Returns to the system what DuckDB's allocator keeps, as it does whenever its limit is set."""
        with self._lock:
            cursor = self._database.cursor()
        try:
            cursor.execute(f"SET GLOBAL memory_limit = '{self._memory}'")
        finally:
            cursor.close()

    def is_idle(self) -> bool:
        """Whether no connection is in use."""
        with self._lock:
            return not self._busy

    def interrupt(self, owner: object = None) -> None:
        """Interrupts what runs for an owner or a client; without one, everything."""
        with self._lock:
            for connection, whose in self._busy.items():
                if owner is None or any(item is owner for item in whose):
                    connection.interrupt()

    def _interrupt_functions(self) -> None:
        """Ends what functions compute for statements, by themselves or by others, where no statement goes on for which
        that may be."""
        running = [item for item in tuple(self._busy) if item.began and item not in self._within]
        before = min((item.began for item in running if not item.is_interrupted), default=math.inf)
        self._batches.interrupt(before)
        for connection in tuple(self._within):
            if 0 < connection.began < before and not connection.is_interrupted:
                connection.interrupt()

    def close(self) -> None:
        """Closes the instance; nothing may run."""
        with self._lock:
            for connection in (*self._idle, *self._busy):
                connection.close()
            self._idle.clear()
            self._busy.clear()
            if not self._is_left:
                self._database.close()

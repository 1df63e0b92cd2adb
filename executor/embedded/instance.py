"""One DuckDB instance: its settings, the functions and macros that the printed SQL calls, and its connections.

Owns: what all connections share. Statements are run by ``connection``.
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
from executor.embedded.connection import FIRST_ROWS, MEASURING, Bindings, Connection
from executor.embedded.errors import translate
from executor.embedded.functions import forgiveness, library
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
    "order_by_non_integer_literal": True,  # ORDER BY of a constant is no error
    "max_expression_depth": 5000,
    "immediate_transaction_mode": True,  # a snapshot is as of BEGIN, not of the first read
    # The first replaces sum(x + 1) with sum(x) + count(x), which misses the overflow of x + 1. The second, if a
    # statement joins a table with itself at two places, confuses the columns of the two sides. The third evaluates the
    # keys of a grouping, and its input, once for each DISTINCT aggregate.
    "disabled_optimizers": "aggregate_function_rewriter,common_subplan,distinct_aggregate_rewrite",
    # After a failed assertion, other queries may go on: ``Instance`` refuses later ones only if changes were being
    # made.
    "disable_database_invalidation": True,
}

#: Settings that change after the start, the last for a connection alone; setting the memory limit again makes DuckDB
#: return freed memory.
_LATER: Final = [*MEASURING, "memory_limit", FIRST_ROWS]
_RESTART: Final = "Restart the server."


def _unopened(path: Path, error: SqlError) -> SqlError:
    """The error that prevents DuckDB from opening a file; without an SQLSTATE of its own, it concerns the file's
    content or the disk."""
    if error.sqlstate != "XX000":
        return error
    is_disk = error.message.startswith("IO Error")
    return SqlError("58030" if is_disk else "XX001", f'could not open "{path.name}": {error.message}')


class Instance:
    """A DuckDB instance in memory, with the tables' file attached if there is one. No SQL can reach the network, or
    files outside of ``folders`` and ``spill``, the folder for data that exceeds its memory (53200 without one)."""

    def __init__(
        self,
        threads: int = 0,
        path: Path | None = None,
        folders: Sequence[str] = (),
        spill: Path | None = None,
        memory: int = 0,
        forgives: bool = False,
    ) -> None:
        """``forgives``: for relations that ask whether an expression fails (``functions.forgiveness``)."""
        config = {**_SETTINGS, "temp_directory": str(spill or ""), **({"threads": threads} if threads else {})}
        if memory:
            config["memory_limit"] = f"{memory}B"
        if forgives:
            config["disabled_optimizers"] += forgiveness.DISABLED
        self._database = duckdb.connect(":memory:", config=config)
        self._batches = Batches()
        library.install(self._database, self._query, self._batches)
        if forgives:
            forgiveness.install(self._database)
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
        self._path, self._forgives = path, forgives
        self._is_left = False  # whether a statement may be running whose connection was given up
        self._failure: SqlError | None = None
        self._idle: list[Connection] = []
        #: The owners of the connections: the named owner, and the client for which the thread worked.
        self._busy: dict[Connection, tuple[object, Calls | None]] = {}
        #: Connections that functions within other statements use.
        self._within: set[Connection] = set()
        self._lock = threading.Lock()

    def power(self) -> Power:
        """The instance's threads and memory, which DuckDB gives as text: 18.8 GiB."""
        threads, limit = self._database.execute(
            "SELECT current_setting('threads'), current_setting('memory_limit')"
        ).fetchall()[0]
        number, unit = limit.split()
        return Power(int(threads), float(number) * _UNITS[unit])

    def acquire(self, owner: object = None) -> Connection:
        """A connection for the caller only, until ``release``. ``interrupt`` may name its ``owner``, or the client for
        which the thread works.

        Raises XX000 if a change has failed within DuckDB: the next start reads the changes from the log.
        """
        with self._lock:
            if self._failure is not None:
                raise SqlError("XX000", f"the tables' engine has failed: {self._failure.message}", hint=_RESTART)
            connection = self._idle.pop() if self._idle else self._connect()
            self._busy[connection] = owner, current()
        return connection

    def _connect(self) -> Connection:
        connection = Connection(self._database.cursor(), self._fail, self._interrupt_functions)
        connection.may_be_left = self._path is None  # a transaction on tables may have to be rolled back
        connection.is_wide = self._forgives
        return connection

    def release(self, connection: Connection) -> None:
        """Returns a connection, which must be outside of a transaction."""
        with self._lock:
            self._busy.pop(connection, None)
            if not connection.is_lost:
                connection.may_be_left = self._path is None
                self._idle.append(connection)
            else:
                self._is_left = True

    def _fail(self, error: SqlError) -> None:
        """The content of the tables is unknown from now on."""
        self._failure = error

    def _query(self, relation: Relation, bindings: Bindings, timezone: str) -> pa.Table:
        """A relation's rows, on another connection: for functions within a connection's statement."""
        connection = self.acquire()
        self._within.add(connection)
        try:
            return connection.query(relation, bindings, timezone=timezone)
        finally:
            self._within.discard(connection)
            self.release(connection)

    def give_back(self) -> None:
        """Makes DuckDB's allocator return free memory to the system, as it does whenever its limit is set."""
        with self._lock:
            cursor = self._database.cursor()
        try:
            cursor.execute(f"SET GLOBAL memory_limit = '{self._memory}'")
        finally:
            cursor.close()

    def is_idle(self) -> bool:
        """Whether all connections are unused."""
        with self._lock:
            return not self._busy

    def interrupt(self, owner: object = None) -> None:
        """Interrupts the statements of an owner or a client; without one, all."""
        with self._lock:
            for connection, whose in self._busy.items():
                if owner is None or any(item is owner for item in whose):
                    connection.interrupt()

    def _interrupt_functions(self) -> None:
        """Ends the functions' calls for statements, unless they may belong to a statement that goes on."""
        running = [item for item in tuple(self._busy) if item.began and item not in self._within]
        before = min((item.began for item in running if not item.is_interrupted), default=math.inf)
        self._batches.interrupt(before)
        for connection in tuple(self._within):
            if 0 < connection.began < before and not connection.is_interrupted:
                connection.interrupt()

    def close(self) -> None:
        """Closes the instance; no statement may be running."""
        with self._lock:
            for connection in (*self._idle, *self._busy):
                connection.close()
            self._idle.clear()
            self._busy.clear()
            if not self._is_left:
                self._database.close()

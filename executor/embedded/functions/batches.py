"""Functions of the engine that are written in Python, over batches of values.

Owns: ``register``, which defines a function over values in an instance, and ``Batches``, the calls that run in an
instance's threads and that a cancelled statement leaves. NULL in, NULL out, unless a function says otherwise. Errors
carry their SQLSTATE, as those of macros do.
"""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from catalog.values.errors import SqlError
from planner.cancellation import Left, Stretch, cancelled

#: Result types by DuckDB's names.
_ARROW: Final = {
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    "VARCHAR[][]": pa.list_(pa.list_(pa.string())),
    "INTEGER[]": pa.list_(pa.int32()),
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "BIGINT[]": pa.list_(pa.int64()),
    "DOUBLE": pa.float64(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "INTERVAL": pa.month_day_nano_interval(),
    "DECIMAL(38, 18)": pa.decimal128(38, 18),
    "DECIMAL(38, 20)": pa.decimal128(38, 20),
}
#: The parameters that DuckDB asks of each function and would otherwise determine again.
_SIGNATURE: Final = inspect.signature(lambda *columns: None)
#: For each name, the function over values and the type of its result.
Functions = Mapping[str, tuple[Callable[..., object], str]]
#: For each name, the function over columns and the type of its result.
ColumnFunctions = Mapping[str, tuple[Callable[..., pa.Array], str]]


#: Numbers statements and batches in the order in which they begin.
ticks: Final = itertools.count(1)


class Batches:
    """The batches that an instance's threads compute. DuckDB does not tell a batch's statement; a statement that began
    after the batch is not its statement."""

    __slots__ = ("_lock", "_stretches")

    def __init__(self) -> None:
        self._stretches: set[Stretch] = set()
        self._lock = threading.Lock()

    def leave(self, batch: Callable[..., pa.Array], columns: tuple[pa.ChunkedArray, ...]) -> pa.Array:
        """A batch's result. If interrupted, raises an error that the engine reports as 57014."""
        stretch = Stretch(next(ticks))
        self._stretches.add(stretch)
        try:
            return stretch.call(batch, columns)
        except Left:
            raise raised(cancelled()) from None
        finally:
            self._stretches.discard(stretch)

    def interrupt(self, before: float) -> None:
        """Ends the batches that began before a tick; for any thread."""
        with self._lock:
            for stretch in tuple(self._stretches):
                if stretch.began < before:
                    stretch.interrupt()


def error(state: str, message: str) -> ValueError:
    """An error with its SQLSTATE."""
    return ValueError(f"!{state}!{message}")


def raised(found: SqlError) -> ValueError:
    """An error with all parts of its message, in the form that ``errors.py`` reads."""
    said = f"\x1e{found.detail or ''}\x1e{found.hint or ''}" if found.detail or found.hint else ""
    return error(found.sqlstate, f"{found.message}{said}")


def register(connection: Any, functions: Functions, batches: Batches, strict: bool = True) -> None:
    """Defines functions in an instance, for all of its connections; ``strict``: NULL for NULL."""
    for name, (function, result) in functions.items():
        create(connection, name, _left(_over_batches(function, _ARROW[result], strict), batches), result)


def create(connection: Any, name: str, batch: Callable[..., pa.Array], result: str) -> None:
    """Defines a function over columns."""
    batch.__annotations__ = {}  # so that DuckDB does not evaluate them while planning
    connection.create_function(name, batch, None, result, type="arrow", null_handling="special")


def register_columns(connection: Any, functions: ColumnFunctions, batches: Batches) -> None:
    """Defines functions over columns, which may have nulls."""
    for name, (function, result) in functions.items():
        create(connection, name, _left(function, batches), result)


def _over_batches(function: Callable[..., object], kind: pa.DataType, strict: bool) -> Callable[..., pa.Array]:
    def batch(*columns: pa.ChunkedArray) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([None if strict and None in row else function(*row) for row in rows], kind)
        except SqlError as found:
            raise raised(found) from None
        except RecursionError:
            raise error("54001", "stack depth limit exceeded") from None

    return batch


def _left(function: Callable[..., pa.Array], batches: Batches) -> Callable[..., pa.Array]:
    def batch(*columns: pa.ChunkedArray) -> pa.Array:
        return batches.leave(function, columns)

    batch.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
    return batch

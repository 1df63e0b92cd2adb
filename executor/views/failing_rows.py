"""The rows of a batch on which a view's expressions fail, found once a path's statements have failed on the batch.

Owns: ``run_without``, which gives what the other rows make, and ``rejections``, how the view remembers those that it
leaves out. Whether a row fails depends on the row alone, so that the same rows are left out however the log is cut into
batches and whichever engine computed before:

    1  the tests of the statements (``programs.row_failures.tests_of``) name the rows of which an expression raises,
       all in one pass;
    2  where the statements fail on the other rows, too, these are halved until single rows are left, on which the
       statements fail by themselves;
    3  an error that no row has by itself, such as an overflow of a sum, is raised.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from catalog.objects import Stream, qualified
from catalog.values.errors import SqlError
from executor.tables.error_rows import row_texts
from executor.traces.layout import LSN, ORDINAL
from executor.views.failure import is_of_the_rows
from planner.incremental.names import stored_name
from planner.incremental.programs.rejected import KEPT, REJECTED

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions

#: Runs of states by name.
Runs = dict[str, pa.Table]
#: Rows of streams by oid, and places of such rows.
Deltas = Mapping[int, pa.Table]
_Places = npt.NDArray[np.int64]
Places = dict[int, _Places]
#: The most characters of a value that are remembered.
_LONGEST: Final = 1000
_SCHEMA: Final = pa.schema([pa.field(stored_name(column), column.type.arrow) for column in REJECTED.columns])
_STREAM, _NUMBER = (stored_name(column) for column in REJECTED.columns[:2])


def run_without(
    rows: Deltas, tests: Callable[[int], Iterable[int]], run: Callable[[Deltas], Runs]
) -> tuple[Runs, Places]:
    """What the statements make of the rows on which they do not fail, and the places of the others, in order, both by
    the oids of the streams.

    ``tests`` gives the places of a stream's rows that fail. Raises an error that no row has by itself."""
    fails = {oid: np.zeros(table.num_rows, np.bool_) for oid, table in rows.items()}
    for oid in rows:
        fails[oid][list(tests(oid))] = True
    while True:
        left = {oid: table.filter(pa.array(~fails[oid])) for oid, table in rows.items()}
        try:
            return run(left), {oid: np.flatnonzero(found) for oid, found in fails.items()}
        except SqlError as error:
            if not is_of_the_rows(error):
                raise
            alone = {oid: _failing_alone(table, of_one(rows, oid, run)) for oid, table in left.items()}
            if not any(alone.values()):
                raise
            for oid, places in alone.items():
                fails[oid][np.flatnonzero(~fails[oid])[places]] = True


def of_one(rows: Deltas, oid: int, run: Callable[[Deltas], Runs]) -> Callable[[pa.Table], Runs]:
    """The statements over rows of one stream, as if none of the others had come."""
    return lambda some: run({other: some if other == oid else table.slice(0, 0) for other, table in rows.items()})


def _failing_alone(rows: pa.Table, run: Callable[[pa.Table], Runs]) -> list[int]:
    """The places of rows on which the statements fail by themselves."""
    found: list[int] = []
    parts = [(0, rows.num_rows)]
    while parts:
        first, end = parts.pop()
        if first == end or error_of(rows.slice(first, end - first), run) is None:
            continue
        if end - first == 1:
            found.append(first)
        else:
            middle = (first + end) // 2
            parts += [(first, middle), (middle, end)]
    return found


def error_of(rows: pa.Table, run: Callable[[pa.Table], Runs]) -> SqlError | None:
    """The error of the statements over some rows; None where they do not fail. Raises errors of circumstances."""
    try:
        run(rows)
    except SqlError as error:
        if not is_of_the_rows(error):
            raise
        return error
    return None


def rejections(
    stream: Stream | None,
    rows: pa.Table,
    places: _Places,
    before: Iterable[pa.Table],
    error: Callable[[pa.Table], SqlError | None],
) -> pa.Table:
    """A run of the state of rejected rows for those at some places; ``before`` are the state's rows so far.

    ``error`` says why one row fails."""
    name = "" if stream is None else qualified(stream)
    first = 1 + last_number(name, before)
    now = dt.datetime.now(dt.UTC)
    found = []
    for number, place in list(enumerate(places.tolist(), first))[-KEPT:]:
        row = rows.slice(place, 1)
        why = error(row) or SqlError("22000", "an expression of the view fails")
        text = None if stream is None else _text(row_texts(stream, row, 0))
        at = row.column(LSN)[0].as_py(), row.column(ORDINAL)[0].as_py()
        found.append((name, number, *at, now, why.sqlstate, why.message, text))
    columns = zip(*found, strict=True) if found else [()] * len(_SCHEMA)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, _SCHEMA.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _text(values: Mapping[str, str | None]) -> str:
    shortened = {name: None if value is None else value[:_LONGEST] for name, value in values.items()}
    return json.dumps(shortened, ensure_ascii=False)


def last_number(stream: str, rejected: Iterable[pa.Table]) -> int:
    """How many rows of a stream have been left out, by the state's rows."""
    found = [_compute.max(_of(stream, table).column(_NUMBER)).as_py() for table in rejected if table.num_rows]
    return max((number for number in found if number is not None), default=0)


def last_rejected(rejected: pa.Table) -> pa.Table:
    """Of the state's rows those that stay."""
    if rejected.num_rows <= KEPT:
        return rejected
    streams = _compute.unique(rejected.column(_STREAM)).to_pylist()
    return pa.concat_tables([_of(stream, rejected)[-KEPT:] for stream in streams]).combine_chunks()


def _of(stream: str, rejected: pa.Table) -> pa.Table:
    return rejected.filter(_compute.equal(rejected.column(_STREAM), stream))

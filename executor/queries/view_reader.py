"""A continuous view's rows at a moment: the rows that are kept of it, or its final relation over its states.

Owns: where the rows come from. Another server has answered for a view that it maintains; a lookup finds some of the
rows that are kept up to date; else all rows at the LSN are taken from those that are kept, or computed. The caller
holds the locks of the view and of those that it reads. ``executor/queries/moments`` has the moments,
``executor/maintained/maintained_views`` decides which rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import pyarrow as pa

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.plans import SCANS, Lookup, Plan
from executor.embedded.connection import Bindings
from executor.identity_cache import Remembered
from executor.maintained.maintained_views import MaintainedViews, Reading
from executor.queries.moments import Moment, Parameters
from executor.traces.trace import InputTrace
from executor.views.runtime import ViewPassed, ViewRuntime
from planner.algebra.nodes import Literal, Relation
from planner.algebra.reading_time import with_time_as_parameter
from planner.algebra.walk import find
from planner.scales.large_quotients import with_large_quotients

#: A final relation that depends on when it is read, with a parameter for the time.
_TIMED: Final = Remembered(with_time_as_parameter)
#: A query with quotients of more digits, which runs where the query itself has overflowed; None without quotients.
LARGE: Final = Remembered(with_large_quotients)

OVERFLOWED: Final = "22003"


class TablesNeeded(Exception):
    """Raised at a moment without tables where the rows of a view are not kept up to date any more."""


class ViewReader:
    """The rows of continuous views, for the reader of one session."""

    def __init__(
        self,
        core: Core,
        maintained: MaintainedViews,
        time: Callable[[], datetime],
        bound: Callable[[Plan, Moment], Bindings],
    ) -> None:
        """``time`` is that of the reader's transaction; ``bound`` finds what the leaves of a plan stand for."""
        self._core, self._maintained = core, maintained
        self._time, self._bound = time, bound

    def read(self, plan: Plan, oid: int, moment: Moment, parameters: Parameters) -> pa.Table:
        """A view's rows at a moment, as far as a plan reads them, in the types in which it does. Raises ViewPassed."""
        lookup = plan.lookups.get(oid)
        found = None if lookup is None else self._looked_up(oid, lookup, moment, parameters)
        return _as_read(plan, oid, self.whole(oid, moment) if found is None else found)

    def _looked_up(self, oid: int, lookup: Lookup, moment: Moment, parameters: Parameters) -> pa.Table | None:
        """The rows of a view with some values, and perhaps others, where its rows are kept by them."""
        runtime, known = self._core.view(oid), moment.catalog.objects.get(oid)
        if runtime.away is not None or moment.versions[oid] < 0 or moment.lent or moment.elsewhere:
            return None
        stored = (known if isinstance(known, View) else runtime.view).stored
        values = [item.value if isinstance(item, Literal) else parameters[item.index] for item in lookup.values]
        kinds = [item.type.arrow for item in lookup.values]
        row = pa.table(
            [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)], list(lookup.columns)
        )
        some = partial(self._maintained.some, runtime, moment.lsn, self._time(), lookup.columns, row)
        found = runtime.some(moment.lsn, moment.exact, some)
        return None if found is None else found.rename_columns([column.name for column in stored])

    def whole(self, oid: int, moment: Moment) -> pa.Table:
        """All rows of a view at a moment, columns named as the view's. Raises ViewPassed."""
        runtime = self._core.view(oid)
        if runtime.away is not None or oid in moment.elsewhere:
            return self._from_elsewhere(runtime, moment)
        if runtime.program.borrowed and oid not in moment.lent:
            runtime.check()
            raise ViewPassed
        known = moment.catalog.objects.get(oid)
        view = known if isinstance(known, View) else runtime.view
        relation = runtime.final(view)
        final = self._core.plans.get(_TIMED(relation) if view.timed else relation)
        time = self._time()
        values: Parameters = (time,) if view.timed else ()

        engine, zone = self._core.engine, runtime.time_zone

        def query(states: Callable[[], Mapping[str, pa.Table]]) -> pa.Table:
            is_own = moment.versions[oid] < 0 or bool(moment.lent) or bool(moment.elsewhere) or moment.is_kept
            if is_own or (moment.exact and runtime.has_passed(moment.lsn)):
                table = compute(states)
            else:
                at = Reading(moment.lsn, time, whole, require_tables, moment.may_be_later)
                table = self._maintained.rows(runtime, at, partial(compute, states))
            return table.rename_columns([column.name for column in view.stored])

        def require_tables() -> None:
            if moment.is_bare:
                raise TablesNeeded

        def whole(relation: Relation, bindings: Bindings) -> pa.Table:
            if any(scan.kind == "table" for scan in find(relation, SCANS)):
                require_tables()
            return moment.query(engine, relation, bindings, values, zone)

        def compute(snapshots: Callable[[], Mapping[str, pa.Table]]) -> pa.Table:
            states = snapshots()
            if oid in moment.lent:
                states = {**states, **moment.lent[oid].rows}
            table = None if final.small is None or view.timed else final.small.run(states)
            return by_engine(states) if table is None else table

        def by_engine(states: Mapping[str, pa.Table]) -> pa.Table:
            bindings = {**states, **self._bound(final, moment)}
            if final.tables:
                return whole(final.relation, bindings)
            try:
                return engine.query(final.relation, bindings, values, zone, moment.owner)
            except SqlError as error:
                large = LARGE(final.relation) if error.sqlstate == OVERFLOWED else None
                if large is None:
                    raise
                return engine.query(large, bindings, values, zone, moment.owner)

        return runtime.result(moment.lsn, moment.exact, (moment.versions[oid], view.columns, values), query)

    def _from_elsewhere(self, runtime: ViewRuntime, moment: Moment) -> pa.Table:
        """What another server has answered, where it is of the moment, or that may be any."""
        found = moment.elsewhere.get(runtime.view.oid)
        if found is None:
            raise ViewPassed
        if moment.exact and found.at != moment.lsn:
            first, last = sorted((found.at, moment.lsn))
            core, oid = self._core, runtime.view.oid
            streams = (core.streams.get(each) for each in core.reads_of(oid))
            if any(_have_come(stream.feed, first, last) for stream in streams if stream is not None):
                raise ViewPassed
            if any(core.versions.last(table) > first for table in core.tables_of_view(oid)):
                raise ViewPassed  # a table has changed then, or since
        return found.rows


def of_types(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """A table whose columns of these names have these types. Raises 22003."""
    fields = [field.with_type(kinds.get(field.name, field.type)) for field in table.schema]
    schema = pa.schema(fields)
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise SqlError(OVERFLOWED, "numeric field overflow", str(error)) from error


def _as_read(plan: Plan, oid: int, table: pa.Table) -> pa.Table:
    """A view's rows in the types of which the plan takes them: quotients may be large ones on either side."""
    wanted = plan.quotients.get(oid)
    if not wanted or all(table.schema.field(name).type == kind for name, kind in wanted.items()):
        return table
    return of_types(table, wanted)


def _have_come(feed: InputTrace, after: int, upto: int) -> bool:
    """Whether there are rows of an interval, or may have been: a view's server has copied it beyond them."""
    try:
        return bool(feed.rows(after, upto))
    except SqlError as error:
        if error.sqlstate != "72000":
            raise
        return True

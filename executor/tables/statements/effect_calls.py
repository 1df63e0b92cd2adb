"""Calls of functions with an effect in statements: made here, in the order of the rows, and not by an engine.

Owns: the results of a step's calls beside its rows, for relations that were split (``planner/lowering/effects``).
Values come from ``executor/tables/sequences``; the server sends notifications.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import Sequence, is_temporary
from catalog.privileges import OF_SEQUENCE
from catalog.roles import BOOTSTRAP_NAME
from catalog.values.errors import SqlError, undefined_table
from catalog.values.identifiers import split_name
from executor.embedded.connection import NOTHING, Run
from executor.identity_cache import Remembered
from executor.printing.nodes import column_name
from executor.tables.sequences import SessionSequences
from executor.tables.statements.effects import numbered
from planner.algebra.functions import ADVISORY, UNLOCK_ALL
from planner.algebra.nodes import Column, Literal, Relation, Value
from planner.bind.lookup.relations import find_named
from planner.bind.state.context import Context
from planner.cancellation import cancelled
from planner.lowering.effects import Drawing, Site, Step, calls_of, take_apart

#: Sends a notification with a channel and a payload. Raises 22023.
Notify = Callable[[str, str], None]
#: Calls a session function by name with the values of a row.
Ask = Callable[[str, list[Value]], Value]
#: Values, or a mask of the rows that have one.
Numbers = npt.NDArray[Any]
_REMEMBERED: Final = 1024
#: Functions on sequences, each with the privileges of which it requires one.
_LETTERS: Final = {"nextval": "Uw", "currval": "Ur", "setval": "w"}
#: Functions that are called even with a NULL argument.
_TAKE_NULL: Final = ("pg_notify", "session_call")
#: Functions of advisory locks that return nothing.
_VOID: Final = frozenset(name for name in ADVISORY if "_try_" not in name and "unlock" not in name) | {UNLOCK_ALL}


#: The drawing of a relation; None if it calls no such function.
Drawings = Remembered[Relation, Drawing | None]


def drawings() -> Drawings:
    """The drawings of relations, each computed once."""
    return Remembered(lambda relation: take_apart(relation) if calls_of(relation) else None, _REMEMBERED)


class Caller(Struct, frozen=True):
    """The caller: a session, with the sequences that its transaction sees."""

    drawings: Drawings
    sequences: SessionSequences
    notify: Notify
    catalog: Catalog
    search_path: tuple[str, ...]
    sleep: Callable[[float], None]
    ask: Ask
    lock: Callable[[str, list[int]], bool]
    is_cancelled: Callable[[], bool]
    read_only: bool = False
    user: str = BOOTSTRAP_NAME

    def evaluate(self, relation: Relation, run: Run) -> pa.Table:
        """A relation's rows: its steps are evaluated one after the other, then the rest over them."""
        drawing = self.drawings(relation)
        if drawing is None:
            return run(relation, NOTHING)
        found: dict[str, pa.Table] = {}
        for step in drawing.steps:
            found[f"s_{step.name}"] = self._beside(step, run(step.source, found))
        return run(drawing.relation, found)

    def _beside(self, step: Step, rows: pa.Table) -> pa.Table:
        names = tuple(map(column_name, step.source.columns))
        rows = rows.rename_columns(names)
        places = [_places(site, rows) for site in step.sites]
        results = self._ranges(step, places) or self._calls(step, rows, places)
        for site, values in zip(step.sites, results, strict=True):
            rows = rows.append_column(column_name(site.column), values)
        return numbered(rows)

    def _ranges(self, step: Step, places: list[Numbers]) -> list[pa.Array] | None:
        """All values at once, if each call is nextval of one constant sequence; None if the order of calls matters."""
        constant = all(site.function == "nextval" and _oid(site) is not None for site in step.sites)
        whole = [site.selector is None for site in step.sites]
        if not constant or (len(step.sites) > 1 and not all(whole)):
            return None
        found: list[pa.Array] = [None] * len(step.sites)
        groups: dict[int | None, list[int]] = {}
        for index, site in enumerate(step.sites):
            groups.setdefault(_oid(site), []).append(index)
        for oid, indexes in groups.items():
            total = sum(int(np.count_nonzero(places[index])) for index in indexes)
            values = self._nextval(self._sequence(oid, "nextval"), total)
            for shift, index in enumerate(indexes):
                found[index] = _scattered(values[shift :: len(indexes)], places[index])
        return found

    def _calls(self, step: Step, rows: pa.Table, places: list[Numbers]) -> list[pa.Array]:
        """Makes the calls row by row, and within a row from left to right. Raises 57014 if the statement is cancelled
        meanwhile."""
        arguments = [[self._column(argument, rows) for argument in site.arguments] for site in step.sites]
        results: list[list[Value]] = [[] for _ in step.sites]
        for row in range(rows.num_rows):
            if self.is_cancelled():
                raise cancelled()
            for index, site in enumerate(step.sites):
                values = [column[row] for column in arguments[index]]
                made = places[index][row] and (None not in values or site.function in _TAKE_NULL)
                results[index].append(self._call(site.function, values) if made else None)
        return [pa.array(values, site.column.type.arrow) for site, values in zip(step.sites, results, strict=True)]

    def _column(self, argument: Column | Literal, rows: pa.Table) -> list[object]:
        if isinstance(argument, Literal):
            return [argument.value] * rows.num_rows
        found: list[object] = rows.column(column_name(argument)).to_pylist()
        return found

    def _call(self, function: str, values: list[Any]) -> Value:
        if function == "pg_sleep":
            self.sleep(values[0])
            return ""
        if function == "session_call":
            return self.ask(values[0], values[1:])
        if function == "pg_notify":
            self.notify(*(value or "" for value in values))
            return ""
        if "advisory" in function:
            done = self.lock(function, values)
            return "" if function in _VOID else done
        if function == "lastval":
            return self.sequences.lastval(self.catalog)
        sequence = self._sequence(values[0], function)
        if function == "nextval":
            return int(self._nextval(sequence, 1)[0])
        if function == "currval":
            return self.sequences.currval(sequence)
        self._refuse_read_only("setval", sequence)
        return self.sequences.setval(sequence, *values[1:])

    def _nextval(self, sequence: Sequence, count: int) -> Numbers:
        self._refuse_read_only("nextval", sequence)
        return self.sequences.nextval(sequence, count)

    def _refuse_read_only(self, function: str, sequence: Sequence) -> None:
        if self.read_only and not is_temporary(sequence):
            raise SqlError("25006", f"cannot execute {function}() in a read-only transaction")

    def _sequence(self, named: object, function: str) -> Sequence:
        """The sequence of a call. Raises 42P01, 42809, and 42501 if the caller lacks the privilege."""
        if isinstance(named, int):
            found = self.catalog.objects.get(named)
        else:
            schema, name = split_name(str(named))
            found = find_named(Context(self.catalog, self.search_path, role=self.user), name, schema)
            if found is None:
                raise self.catalog.missing(name, schema)
        if found is None:
            raise undefined_table(str(named))
        if not isinstance(found, Sequence):
            raise SqlError("42809", f'"{found.name}" is not a sequence')
        self._require(found, _LETTERS[function])
        return found

    def _require(self, sequence: Sequence, letters: str) -> None:
        """Requires one of some privileges on a sequence; for an identity column's sequence, the column's privileges
        suffice."""
        roles, role = self.catalog.roles, self.catalog.roles.find(self.user)
        if is_temporary(sequence) or (role is not None and role.superuser) or _is_identity(self.catalog, sequence):
            return
        rights = self.catalog.rights_of(sequence.oid)
        if role is None or not rights.held(roles, role.oid, OF_SEQUENCE) & set(letters):
            raise SqlError("42501", f"permission denied for sequence {sequence.name}")


def _is_identity(catalog: Catalog, sequence: Sequence) -> bool:
    if sequence.owner is None:
        return False
    table = catalog.objects.get(sequence.owner[0])
    columns = table.columns if table is not None else ()
    return any(column.name == sequence.owner[1] and column.identity for column in columns)


def _oid(site: Site) -> int | None:
    """The oid of the sequence that a call names with a constant."""
    argument = site.arguments[0]
    return argument.value if isinstance(argument, Literal) and isinstance(argument.value, int) else None


def _places(site: Site, rows: pa.Table) -> Numbers:
    """The rows for which a call is made."""
    if site.selector is None:
        return np.ones(rows.num_rows, np.bool_)
    found: Numbers = rows.column(column_name(site.selector)).to_numpy() == site.place
    return found


def _scattered(values: Numbers, places: Numbers) -> pa.Array:
    """The values, in order, in the rows for which the calls were made."""
    if len(values) == len(places):
        return pa.array(values)
    whole = np.zeros(len(places), np.int64)
    whole[places] = values
    return pa.array(whole, mask=~places)

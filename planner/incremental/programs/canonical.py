"""Traces of a program named by what they hold, so that equal traces of two views have one name.

Owns ``canonical``, the last step of planning. A trace's name is a hash of what it holds:

    static_<hash>    its relation, and whether it is as of the view's creation or of each row's arrival
    state_<hash>     its kind, its key and merge, the relations that fill it, and when its rows expire

In a relation, inputs count by oid and by their server, statics and states by their own names, columns by their places
and types; and so does the time zone where the relation depends on it. Names of relations and columns do not count. A
name says nothing of the moment: a static is as of its view's creation, and a state has the rows since then.

The columns of a trace are numbered by their places, from 1 on, and each relation has numbers of its own. So the columns
of runs, which are called after these numbers, have the same names in equal traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import Composite, Enumeration, SqlType
from planner.algebra.construction import rename_columns
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import Column, Delta, Fixpoint, Relation, Scan, Snapshot, Working
from planner.algebra.signature import entries, signature
from planner.algebra.walk import transform
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Expiry, Mark, Path, Program, State, Statement, Static, states_read
from planner.incremental.programs.zones import depends_on_zone

#: Hexadecimal digits of a name: 128 bits, so that no two traces have one by chance.
_DIGITS: Final = 32
_Trace = TypeVar("_Trace", State, Static)


class Origin(Struct, frozen=True):
    """What else decides what a view's relations mean: its TimeZone setting, and the server that gave the oids."""

    zone: str = "UTC"
    server: str = ""


def canonical(program: Program, origin: Origin) -> Program:
    """An equal program whose traces are called by what they hold; traces that hold the same are one."""
    return _Naming(program, origin).program()


def contents(program: Program, origin: Origin) -> dict[str, Named]:
    """What the traces of a program hold, by their names, whenever their rows expire: traces that hold the same have one
    name, and columns of the same ids."""
    naming = _Naming(replace(program, expiries=()), origin)
    naming.program()
    return naming.named


class Named(Struct, frozen=True):
    """A trace's name, and its columns by those of the program that was given."""

    name: str
    columns: Mapping[Column, Column]

    @property
    def sources(self) -> dict[str, str]:
        """What snapshots call its columns, by what they called them."""
        return {stored_name(old): stored_name(new) for old, new in self.columns.items()}


class _Naming:
    """Names the traces of one program: a trace after those that it is computed from."""

    def __init__(self, program: Program, origin: Origin) -> None:
        self._program = program
        self._origin = origin
        #: The traces that have names, by those that they had.
        self.named: dict[str, Named] = {}
        self._expiries = {expiry.state: expiry for expiry in program.expiries}
        self._statements: dict[str, list[Statement]] = {}
        for path in program.paths:
            for statement in path.statements:
                self._statements.setdefault(statement.target, []).append(statement)
        #: Relations of statements as they are numbered, by those that were given.
        self._numbers: NodeMap[Relation] = NodeMap()

    def program(self) -> Program:
        """The program with names of its own."""
        statics = [self._static(item) for item in self._program.statics]
        states: dict[str, State] = {}
        waiting = list(self._program.states)
        while waiting:
            ready = [item for item in waiting if self._read_by(item) <= self.named.keys()]
            assert ready, "states are computed from each other"
            states |= {item.name: self._state(item) for item in ready}
            waiting = [item for item in waiting if item.name not in states]
        kept = {self.named[item.name].name: item.name for item in reversed(self._program.states)}
        firsts = frozenset(kept.values())
        return replace(
            self._program,
            statics=_by_name(statics),
            states=_by_name(states[item.name] for item in self._program.states),
            paths=tuple(self._path(path, firsts) for path in self._program.paths),
            final=self._reading(self._program.final),
            expiries=tuple(self._expiry(item) for item in self._program.expiries if item.state in firsts),
        )

    def _read_by(self, state: State) -> set[str]:
        """The traces that a state is computed from."""
        found = states_read(self._statements[state.name])
        expiry = self._expiries.get(state.name)
        return found if expiry is None or expiry.by_clock else {*found, *(mark.watermark for mark in expiry.marks)}

    def _static(self, static: Static) -> Static:
        relation = self._numbered(static.relation)
        meaning = self._meaning(relation)
        name = _name("static", ("arrival", meaning) if static.arrival else meaning)
        self.named[static.name] = Named(name, _paired(static.columns, relation.columns))
        return replace(static, name=name, relation=relation, columns=relation.columns)

    def _state(self, state: State) -> State:
        statements = self._statements[state.name]
        relations = [self._numbered(statement.relation) for statement in statements]
        for statement, found in zip(statements, relations, strict=True):
            self._numbers[statement.relation] = found
        columns = _paired(state.columns, relations[0].columns)
        places = {column: place for place, column in enumerate(state.columns)}
        merge = tuple((places[column], entries(call, places)) for column, call in state.merge)
        key = tuple(places[column] for column in state.key)
        filled = tuple(map(self._meaning, relations))
        name = _name("state", (state.kind, key, merge, filled, self._kept(state, places)))
        self.named[state.name] = Named(name, columns)
        return State(
            name,
            state.kind,
            tuple(columns.values()),
            tuple(columns[column] for column in state.key),
            tuple((columns[column], rename_columns(call, columns)) for column, call in state.merge),
        )

    def _kept(self, state: State, places: Mapping[Column, int]) -> object:
        """What is to be known of when a state's rows expire."""
        expiry = self._expiries.get(state.name)
        if expiry is None:
            return ()
        if expiry.by_clock:
            return places[expiry.column], expiry.age
        (first, *also), others = map(self._mark, expiry.marks), tuple(places[column] for column in expiry.others)
        name, latest, age = first
        return places[expiry.column], name, latest, age, expiry.gap, others, *also

    def _mark(self, mark: Mark) -> tuple[str, str, int]:
        known = self.named[mark.watermark]
        return known.name, stored_name(known.columns[mark.latest]), mark.age

    def _path(self, path: Path, states: frozenset[str]) -> Path:
        """A path's statements, but those that would fill a state again."""
        statements = (
            replace(item, target=self.named[item.target].name, relation=self._numbers[item.relation])
            for item in path.statements
            if item.target in states
        )
        return replace(path, statements=tuple(statements))

    def _expiry(self, expiry: Expiry) -> Expiry:
        state = self.named[expiry.state]
        if expiry.by_clock:
            column = state.columns[expiry.column]
            return replace(expiry, state=state.name, column=column, latest=column)
        watermark = self.named[expiry.watermark]
        return replace(
            expiry,
            state=state.name,
            column=state.columns[expiry.column],
            watermark=watermark.name,
            latest=watermark.columns[expiry.latest],
            others=tuple(state.columns[column] for column in expiry.others),
            also=tuple(
                Mark(known.name, known.columns[mark.latest], mark.age)
                for mark in expiry.also
                for known in (self.named[mark.watermark],)
            ),
        )

    def _numbered(self, relation: Relation) -> Relation:
        """A relation whose columns are numbered as they appear, its own first, and which reads named traces."""
        found = self._reading(relation)
        _, columns = signature(found)
        renamed: Relation = rename_columns(
            found, {column: replace(column, id=number) for number, column in enumerate(columns, 1)}
        )
        return renamed

    def _reading(self, relation: Relation) -> Relation:
        """A relation that reads traces under their names."""

        def change(node: Any) -> Any:
            if not isinstance(node, Snapshot):
                return node
            found = self.named[node.trace]
            return Snapshot(found.name, node.columns, tuple(found.sources[source] for source in node.sources))

        changed: Relation = transform(relation, change)
        return changed

    def _meaning(self, relation: Relation) -> object:
        """What a relation gives, whatever anything in it is called."""
        recursions: dict[str, str] = {}

        def change(node: Any) -> Any:
            match node:
                case Scan() | Delta():
                    return replace(node, name=self._origin.server)
                case Fixpoint() | Working():
                    return replace(node, name=recursions.setdefault(node.name, str(len(recursions))))
                case _:
                    return node

        zone = self._origin.zone if depends_on_zone(relation) else ""
        return zone, signature(transform(relation, change))[0]


def _paired(old: Iterable[Column], new: Iterable[Column]) -> dict[Column, Column]:
    return dict(zip(old, new, strict=True))


def _by_name(traces: Iterable[_Trace]) -> tuple[_Trace, ...]:
    """The traces, each name once: equal ones may call their columns otherwise, and the first is kept."""
    found: dict[str, _Trace] = {}
    for item in traces:
        found.setdefault(item.name, item)
    return tuple(found.values())


def _name(kind: str, held: object) -> str:
    return f"{kind}_{sha256(_text(held).encode()).hexdigest()[:_DIGITS]}"


def _text(value: object) -> str:
    """A value as text that differs from that of any other value. User's types count by what they are, not by what they
    are called."""
    match value:
        case tuple():
            return f"({','.join(map(_text, value))})"
        case SqlType():
            return f"type{_text((value.name, value.modifiers, value.element, value.enum, value.row))}"
        case Enumeration():
            return f"enum{_text((value.oid, value.labels, value.places))}"
        case Composite():
            return f"row{_text((value.oid, value.fields, value.domains))}"
        case _:
            return repr(value)

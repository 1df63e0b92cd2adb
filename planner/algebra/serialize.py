"""Programs and relations to JSON and back: what manifests store, and what another process computes.

Owns the format, version 2. Trees are flat, so that plans of any depth are read and written without recursion:

    {"version": 2,
     "columns": [[id, name, type, nullable], ...],             each column once
     "nodes":   [["Filter", {"n": 3}, {"n": 7}], ...],         class, then its fields; children before parents
     "program": {"p": ["Program", ...]}}                       {"n": i} is a node, {"c": i} a column

Version 1 is read, too: its paths have a stream's oid in the place of an id and inputs, and its statements no method.

A relation by itself has ``"relation": {"n": i}`` in the program's place, and no version: it is not kept.

Other values are JSON's own, or tagged by ``catalog.codec`` (decimals, dates, types); tuples are lists. Classes come
from an allow-list, all fields are of the types that these declare, and nothing is executed when reading. What several
nodes have in common is written once, but a tree is walked as a whole: one that is much larger than its text is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from msgspec.structs import replace

from catalog.codec import Classes, classes, decode, encode
from catalog.typed import Typed
from catalog.values.errors import unsupported
from catalog.values.types import Composite, Enumeration, SqlType
from planner.algebra.relations import Relation, SortKey
from planner.algebra.scalars import Column
from planner.algebra.walk import NODES, RELATIONS, Node, walk
from planner.incremental.programs.program import Borrowed, Expiry, Path, Program, State, Statement, Static, paths_of

VERSION: Final = 2
_TREES: Final[Classes] = classes(*NODES)
_PARTS: Final[Classes] = classes(Program, Static, State, Statement, Path, Expiry, Borrowed)
_TYPES: Final[Classes] = classes(SqlType, Enumeration, Composite)
_TYPED: Final = Typed((*NODES, Column, *_PARTS.values()), within=_TYPES.values(), Relation=Relation, SortKey=SortKey)
#: Nodes of a tree, and of subqueries within each other, that are no more than their text has.
_SHARED: Final = 1 << 16
_NESTED: Final = 64
_SUBQUERIES: Final = frozenset(("ScalarSubquery", "Exists", "InSubquery"))


def encode_program(program: Program) -> dict[str, Any]:
    """The JSON value of a program."""
    return {"version": VERSION, **_Writer().document("program", program)}


def decode_program(data: Mapping[str, Any]) -> Program:
    """The program of a JSON value. Raises ValueError for a later version, KeyError for an unknown class."""
    version = data["version"]
    if version not in (1, VERSION):
        raise ValueError(f"program of version {version}, this server reads versions 1 and {VERSION}")
    program = _Reader(data, version).value(data["program"])
    assert isinstance(program, Program)
    if version == 1:
        pairs = ((path.inputs[0], statement) for path in program.paths for statement in path.statements)
        return replace(program, paths=paths_of(pairs))
    return program


def _path_of_version_1(stream: int, statements: tuple[Statement, ...]) -> Path:
    return Path(0, (stream,), statements)


def encode_relation(relation: Relation) -> dict[str, Any]:
    """The JSON value of a relation."""
    return _Writer().document("relation", relation)


def decode_relation(data: Mapping[str, Any]) -> Relation:
    """The relation of a JSON value. Raises KeyError for an unknown class."""
    relation = _Reader(data).value(data["relation"])
    assert isinstance(relation, RELATIONS)
    return relation


class _Writer:
    def __init__(self) -> None:
        self._columns: dict[Column, int] = {}
        self._nodes: dict[int, tuple[Node, int]] = {}
        self._entries: list[list[Any]] = []

    def document(self, name: str, root: Program | Relation) -> dict[str, Any]:
        """The whole document, ``root`` under its name; columns and nodes are gathered on the way."""
        body = self._value(root)
        try:
            _require_small(self._entries)
        except ValueError as error:
            raise unsupported("to write down a plan so large") from error
        columns = [[item.id, item.name, encode(item.type), item.nullable] for item in self._columns]
        return {"columns": columns, "nodes": self._entries, name: body}

    def _value(self, value: Any) -> Any:
        if isinstance(value, NODES):
            return {"n": self._node(value)}
        if isinstance(value, Column):
            return {"c": self._columns.setdefault(value, len(self._columns))}
        if isinstance(value, tuple):
            return [self._value(item) for item in value]
        if type(value).__name__ in _PARTS:
            return {"p": self._entry(value)}
        if isinstance(value, float) and not isfinite(value):
            return {"f": str(value)}
        return encode(value)

    def _entry(self, value: Any) -> list[Any]:
        return [type(value).__name__, *(self._value(getattr(value, name)) for name in value.__struct_fields__)]

    def _node(self, root: Node) -> int:
        """The place of a node, which is written with all below it unless it was before."""
        if id(root) not in self._nodes:
            for node in reversed(list(walk(root))):
                if id(node) not in self._nodes:
                    self._entries.append(self._entry(node))
                    self._nodes[id(node)] = (node, len(self._entries) - 1)
        return self._nodes[id(root)][1]


class _Reader:
    def __init__(self, data: Mapping[str, Any], version: int = VERSION) -> None:
        self._version = version
        columns = data["columns"]
        self._columns = [Column(id_, name, decode(type_, _TYPES), nullable) for id_, name, type_, nullable in columns]
        for column in self._columns:
            _TYPED.require(column)
        _require_small(data["nodes"])
        self._nodes: list[Node] = []
        for entry in data["nodes"]:
            self._nodes.append(self._built(entry, _TREES))

    def _built(self, entry: list[Any], allowed: Classes) -> Any:
        make = _path_of_version_1 if (self._version, entry[0]) == (1, "Path") else allowed[entry[0]]
        built = make(*map(self.value, entry[1:]))
        _TYPED.require(built)
        return built

    def value(self, data: Any) -> Any:
        """The value that was encoded."""
        if isinstance(data, list):
            return tuple(map(self.value, data))
        if not isinstance(data, dict):
            return data
        match data:
            case {"n": place}:
                return self._nodes[place]
            case {"c": place}:
                return self._columns[place]
            case {"p": entry}:
                return self._built(entry, _PARTS)
            case {"f": text}:
                return float(text)
            case _:
                return decode(data, _TYPES)


def _require_small(entries: Sequence[Any]) -> None:
    """Raises ValueError for nodes that are trees of far more nodes, or of too many subqueries within each other."""
    sizes: list[int] = []
    depths: list[int] = []
    most = max(_SHARED, 2 * len(entries))
    for entry in entries:
        below = list(_below(entry))
        sizes.append(1 + sum(sizes[place] for place in below))
        depths.append((entry[0] in _SUBQUERIES) + max((depths[place] for place in below), default=0))
        if sizes[-1] > most or depths[-1] > _NESTED:
            raise ValueError("its plan is too large")


def _below(value: Any) -> Iterator[int]:
    """The places of the nodes that an entry names."""
    stack = [value]
    while stack:
        match stack.pop():
            case list() as items:
                stack += items
            case {"n": place}:
                yield place
            case _:
                pass

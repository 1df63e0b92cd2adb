"""Trees to JSON and back: what manifests store, and what another process computes.

Trees are flat, so that plans of any depth are read and written without recursion:

    {"columns":  [[id, name, type, nullable], ...],            each column once
     "nodes":    [["Filter", {"n": 3}, {"n": 7}], ...],        class, then its fields; children before parents
     "relation": {"n": i}}                                     {"n": i} is a node, {"c": i} a column

``Writer`` and ``Reader`` take further classes whose fields hold trees, ``{"p": ["Class", ...]}``: those of programs
(``planner.incremental.programs.documents``).

Other values are JSON's own, or tagged by ``catalog.codec`` (decimals, dates, types); tuples are lists. Classes come
from an allow-list, all fields are of the types that these declare, and nothing is executed when reading. What several
nodes have in common is written once, but a tree is walked as a whole: one that is much larger than its text is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from catalog.codec import Classes, classes, decode, encode
from catalog.struct_types import Typed
from catalog.values.errors import unsupported
from catalog.values.types import Composite, Enumeration, SqlType
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import Column, Relation
from planner.algebra.walk import NODES, RELATIONS, Node, walk

_TREES: Final[Classes] = classes(*NODES)
_TYPES: Final[Classes] = classes(SqlType, Enumeration, Composite)
#: Nodes of a tree, and of subqueries within each other, that are no more than their text has.
_SHARED: Final = 1 << 16
_NESTED: Final = 64
_SUBQUERIES: Final = frozenset(("ScalarSubquery", "Exists", "InSubquery"))


def checked(*parts: type) -> Typed:
    """The types that the fields of nodes, columns and some classes of ``parts`` declare."""
    return Typed((*NODES, Column, *parts), within=_TYPES.values())


_NO_PARTS: Final[Classes] = {}
#: What makes a struct of its fields, by the name that a document has for its class.
Makers = Mapping[str, Callable[..., Any]]
_TYPED: Final = checked()


def encode_relation(relation: Relation) -> dict[str, Any]:
    """The JSON value of a relation."""
    return Writer().document("relation", relation)


def decode_relation(data: Mapping[str, Any]) -> Relation:
    """The relation of a JSON value. Raises KeyError for an unknown class."""
    relation = Reader(data).value(data["relation"])
    assert isinstance(relation, RELATIONS)
    return relation


class Writer:
    """Writes one document; ``parts`` are the classes that it may have besides nodes."""

    def __init__(self, parts: Classes = _NO_PARTS) -> None:
        self._parts = parts
        self._columns: dict[Column, int] = {}
        self._nodes = NodeMap[int]()
        self._entries: list[list[Any]] = []

    def document(self, name: str, root: Any) -> dict[str, Any]:
        """The whole document, ``root`` under its name; columns and nodes are gathered on the way."""
        body = self._value(root)
        try:
            _require_small(self._entries)
        except ValueError as error:
            raise unsupported("a plan of this size") from error
        columns = [[item.id, item.name, encode(item.type), item.nullable] for item in self._columns]
        return {"columns": columns, "nodes": self._entries, name: body}

    def _value(self, value: Any) -> Any:
        if isinstance(value, NODES):
            return {"n": self._node(value)}
        if isinstance(value, Column):
            return {"c": self._columns.setdefault(value, len(self._columns))}
        if isinstance(value, tuple):
            return [self._value(item) for item in value]
        if type(value).__name__ in self._parts:
            return {"p": self._entry(value)}
        if isinstance(value, float) and not isfinite(value):
            return {"f": str(value)}
        return encode(value)

    def _entry(self, value: Any) -> list[Any]:
        return [type(value).__name__, *(self._value(getattr(value, name)) for name in value.__struct_fields__)]

    def _node(self, root: Node) -> int:
        """The place of a node, which is written with all below it unless it was before."""
        if root not in self._nodes:
            for node in reversed(list(walk(root))):
                if node not in self._nodes:
                    self._entries.append(self._entry(node))
                    self._nodes[node] = len(self._entries) - 1
        return self._nodes[root]


class Reader:
    """Reads one document, whose nodes and ``parts`` have fields of the types that ``typed`` knows."""

    def __init__(self, data: Mapping[str, Any], parts: Makers = _NO_PARTS, typed: Typed = _TYPED) -> None:
        self._parts = parts
        self._typed = typed
        columns = data["columns"]
        self._columns = [Column(id_, name, decode(type_, _TYPES), nullable) for id_, name, type_, nullable in columns]
        for column in self._columns:
            self._typed.require(column)
        _require_small(data["nodes"])
        self._nodes: list[Node] = []
        for entry in data["nodes"]:
            self._nodes.append(self._built(entry, _TREES))

    def _built(self, entry: list[Any], allowed: Makers) -> Any:
        built = allowed[entry[0]](*map(self.value, entry[1:]))
        self._typed.require(built)
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
                return self._built(entry, self._parts)
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

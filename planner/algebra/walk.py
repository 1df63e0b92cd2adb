"""The one walker over relations, scalars, aggregate and window calls, and sort keys.

Iterative, since plans may be thousands of nodes deep. Children are found from the classes' fields, in field order;
tuples of nodes (of any nesting) count. Nothing else in the planner recurses over trees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import chain
from operator import is_, or_
from typing import Any, Final, TypeGuard
from zlib import crc32

from msgspec.structs import replace

from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Exists,
    Filter,
    Fixpoint,
    InSubquery,
    InZone,
    Join,
    Limit,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    Unnest,
    Values,
    Window,
    WindowCall,
    With,
    Working,
)

Node = Relation | Scalar | AggregateCall | WindowCall | SortKey
RELATIONS = (
    *(Scan, Values, Snapshot, Delta, Filter, Project, Join, Aggregate, Window, Unnest, Sort, Limit, SetOperation),
    *(Fixpoint, Working, InZone, With),
)
SCALARS = (Literal, ColumnRef, Parameter, Call, Cast, Case, ScalarSubquery, Exists, InSubquery)
NODES = (*RELATIONS, *SCALARS, AggregateCall, WindowCall, SortKey)


#: To look a class up is quicker than to try each.
_KINDS, _RELATIONS = frozenset(NODES), frozenset(RELATIONS)
_NAMES = ("Relation", "Scalar", "AggregateCall", "WindowCall", "SortKey")

#: The fields of each class that hold nodes, by their annotations; columns and names are many and hold none.
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name, type_ in kind.__annotations__.items() if any(known in type_ for known in _NAMES))
    for kind in NODES
}


#: A bit for each class of nodes, and above these some for the names of functions, of which several may share one.
_BITS: Final[dict[type, int]] = {kind: 1 << place for place, kind in enumerate(NODES)}
#: Those of nodes that have none below them.
_LEAVES: Final[dict[type, int]] = {kind: bit for kind, bit in _BITS.items() if not _FIELDS[kind]}
_NAME_BITS: Final = 96
_CALLED: Final[dict[str, int]] = {}
_CONTENTS: Final = "contents"
_USED: Final = "used"


@cache
def kinds_of(*classes: type) -> int:
    """Nodes of some classes, for ``contains`` and ``transform``."""
    return reduce(or_, (_BITS[kind] for kind in classes))


@cache
def calls_of(*functions: str) -> int:
    """Calls, aggregates and windows of some functions, and perhaps of others."""
    found = 0
    for name in functions:
        if (bit := _CALLED.get(name)) is None:
            bit = _CALLED[name] = 1 << (len(NODES) + crc32(name.encode()) % _NAME_BITS)
        found |= bit
    return found


_CALLS: Final = kinds_of(Call, AggregateCall, WindowCall)
ANY: Final = -1
RELATION_KINDS: Final = kinds_of(*RELATIONS)
SUBQUERY_KINDS: Final = kinds_of(ScalarSubquery, Exists, InSubquery)


def _gather(value: tuple[Any, ...], found: list[Node]) -> None:
    for item in value:
        if type(item) in _KINDS:
            found.append(item)
        elif type(item) is tuple:
            _gather(item, found)


def _one(node: Node | None) -> tuple[Node, ...]:
    return () if node is None else (node,)


#: The children of the classes of which plans have the most.
_CHILDREN: Final[dict[type, Callable[[Any], list[Node]]]] = {
    ColumnRef: lambda node: [],
    Literal: lambda node: [],
    Parameter: lambda node: [],
    Scan: lambda node: [*_one(node.since)],
    Call: lambda node: [*node.arguments],
    Cast: lambda node: [node.argument],
    Case: lambda node: [*chain.from_iterable(node.branches), node.otherwise],
    ScalarSubquery: lambda node: [node.relation],
    Exists: lambda node: [node.relation],
    SortKey: lambda node: [node.expression],
    AggregateCall: lambda node: [*node.arguments, *_one(node.filter), *node.order_by],
    Filter: lambda node: [node.input, node.predicate],
    Project: lambda node: [node.input, *[value for _, value in node.outputs]],
    Join: lambda node: [node.left, node.right, *_one(node.predicate)],
    Aggregate: lambda node: [node.input, *[value for _, value in (*node.keys, *node.aggregates)]],
    Sort: lambda node: [node.input, *node.keys],
    SetOperation: lambda node: [node.left, node.right],
}


def children(node: Node) -> list[Node]:
    """The nodes directly below one node, relations and scalars alike."""
    if (known := _CHILDREN.get(type(node))) is not None:
        return known(node)
    return _found(node)


def _found(node: Node) -> list[Node]:
    """The nodes in the fields of any node."""
    found: list[Node] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        if type(value) is tuple:
            _gather(value, found)
        elif type(value) in _KINDS:
            found.append(value)
    return found


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, subqueries included, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if _FIELDS[type(current)]:
            stack += children(current)[::-1]


def find(node: Node, kinds: int) -> Iterator[Any]:
    """The nodes of some kinds (``kinds_of``) in a tree, in the order of ``walk``, which subtrees without them leave
    out."""
    stack = [node]
    while stack:
        current = stack.pop()
        if contents(current) & kinds:
            if _BITS[type(current)] & kinds:
                yield current
            stack += children(current)[::-1]


def by_class(roots: Iterable[Node]) -> dict[type, list[Any]]:
    """All nodes of some trees by their classes, an empty list for a class without nodes: one walk for questions about
    several classes."""
    found: defaultdict[type, list[Any]] = defaultdict(list)
    stack = list(roots)
    while stack:
        node = stack.pop()
        kind = type(node)
        found[kind].append(node)
        if _FIELDS[kind]:
            stack += children(node)
    return found


def is_node(value: object) -> TypeGuard[Node]:
    """Whether it is one."""
    return type(value) in _KINDS


def is_relation(node: Node) -> TypeGuard[Relation]:
    """Whether it has columns and rows."""
    return type(node) in _RELATIONS


def is_larger(node: Node, count: int) -> bool:
    """Whether a tree has more nodes than so many."""
    stack: list[Node] = [node]
    while stack and count >= 0:
        current = stack.pop()
        count -= 1
        if _FIELDS[type(current)]:
            stack += children(current)
    return count < 0


def transform(node: Any, change: Callable[[Any], Any], kinds: int = ANY) -> Any:
    """The tree with ``change`` applied to every node, children first; untouched subtrees are kept as they are.

    Subtrees without nodes of the ``kinds`` are left out, which is what makes a rule cost nothing where it does nothing.
    """
    return _changed(node, _same, change, kinds)


def descend(node: Any, change: Callable[[Any], Any], kinds: int = ANY) -> Any:
    """The tree with ``change`` applied to every node, parents first; the children of what it returned follow.

    Subtrees without nodes of the ``kinds`` are left out.
    """
    return _changed(node, change, _same, kinds)


def transform_relations(relation: Relation, change: Callable[[Any], Any], kinds: int = RELATION_KINDS) -> Relation:
    """``transform`` of a relation into another."""
    result: Relation = _changed(relation, _same, change, kinds)
    return result


def descend_relations(relation: Relation, change: Callable[[Any], Any], kinds: int = RELATION_KINDS) -> Relation:
    """``descend`` of a relation into another."""
    result: Relation = _changed(relation, change, _same, kinds)
    return result


def contains(node: Node, kinds: int) -> bool:
    """Whether a tree has a node of some ``kinds`` (``kinds_of``, ``calls_of``). Each branch remembers what it has."""
    return contents(node) & kinds != 0


def contents(node: Node) -> int:
    """The kinds of all nodes of a tree, as bits."""
    known = _LEAVES.get(type(node))
    if known is None:
        known = node.__dict__.get(_CONTENTS)
    return _gathered(node) if known is None else known


def _gathered(node: Any) -> int:
    stack = [node]
    while stack:
        current = stack[-1]
        found, unknown = _own(current), len(stack)
        for child in children(current):
            known = _LEAVES.get(type(child))
            if known is None and (known := child.__dict__.get(_CONTENTS)) is None:
                stack.append(child)
            else:
                found |= known
        if len(stack) == unknown:
            vars(current)[_CONTENTS] = found
            stack.pop()
    return vars(node)[_CONTENTS]  # type: ignore[no-any-return]


def _own(node: Any) -> int:
    bits = _BITS[type(node)]
    return bits | calls_of(node.function) if bits & _CALLS else bits


def _same(node: Any) -> Any:
    return node


def _changed(node: Any, down: Callable[[Any], Any], up: Callable[[Any], Any], kinds: int) -> Any:
    """The tree with every node changed on the way ``down`` to its children, and ``up`` from them, but for subtrees
    without nodes of the ``kinds``."""
    if not contents(node) & kinds:
        return node
    result = [node]
    #: A node, the list that gets what becomes of it and its place there; on the way up its children before and after.
    stack: list[tuple[Any, list[Any], int, list[Any] | None, list[Any]]] = [(node, result, 0, None, [])]
    while stack:
        current, into, place, below, new = stack.pop()
        if below is None:
            current = down(current)
            below = children(current)
            wanted = [at for at, child in enumerate(below) if contents(child) & kinds]
            if wanted:
                new = below[:]
                stack.append((current, into, place, below, new))
                stack += [(below[at], new, at, None, new) for at in wanted[::-1]]
                continue
        elif not all(map(is_, below, new)):
            current = _rebuild(current, new)
        into[place] = up(current)
    return result[0]


def _rebuild(node: Any, below: list[Any]) -> Any:
    """The node with other children."""
    rest = iter(below)
    return replace(node, **{name: _refill(getattr(node, name), rest) for name in _FIELDS[type(node)]})


def _refill(value: Any, rest: Iterator[Any]) -> Any:
    if type(value) in _KINDS:
        return next(rest)
    if type(value) is tuple:
        return tuple(_refill(item, rest) for item in value)
    return value


#: The fields with inputs of which a node takes the columns by their places, not by their identities.
BY_POSITION: Final[Mapping[type, tuple[str, ...]]] = {
    SetOperation: ("left", "right"),
    Fixpoint: ("base", "step"),
    ScalarSubquery: ("relation",),
    InSubquery: ("relation",),
}


def inputs(relation: Relation) -> tuple[Relation, ...]:
    """The relations that one relation reads as operator inputs (subqueries inside its expressions do not count)."""
    match relation:
        case Join(left=left, right=right) | SetOperation(left=left, right=right):
            return (left, right)
        case Fixpoint(base=base, step=step):
            return (base, step)
        case With(definitions=definitions, body=body):
            return (*(relation for _, relation in definitions), body)
        case Filter() | Project() | Aggregate() | Window() | Unnest() | Sort() | Limit() | InZone():
            return (relation.input,)
        case _:
            return ()


def used_columns(node: Node) -> frozenset[Column]:
    """Columns that a scalar (or the whole tree of a relation) refers to. Each branch that is asked remembers them."""
    kind = type(node)
    if kind is ColumnRef:
        return frozenset((node.column,))  # type: ignore[union-attr]
    if kind in _LEAVES:
        return frozenset()
    known: frozenset[Column] | None = node.__dict__.get(_USED)
    if known is None:
        found = []
        stack: list[Any] = [node]
        while stack:
            for child in children(stack.pop()):
                if type(child) is ColumnRef:
                    found.append(child.column)
                elif type(child) not in _LEAVES:
                    stack.append(child)
        known = vars(node)[_USED] = frozenset(found)
    return known


def produced_columns(node: Node) -> set[Column]:
    """Columns that some relation in the tree introduces."""
    passing = (Filter, Join, Sort, Limit, InZone, With)  # whose columns are others'
    return {column for item in walk(node) if is_relation(item) and type(item) not in passing for column in item.columns}


def free_columns(node: Node) -> frozenset[Column]:
    """Columns that a subquery takes from enclosing queries: used, but produced nowhere in it."""
    return used_columns(node) - produced_columns(node)


def is_dependent(relation: Relation, beside: Relation) -> bool:
    """Whether a relation uses columns of the one on the left of their join (LATERAL)."""
    return not used_columns(relation).isdisjoint(beside.columns)


def replace_columns(node: Any, mapping: dict[Column, Scalar]) -> Any:
    """The tree with references to columns replaced by expressions."""

    def change(item: Any) -> Any:
        if isinstance(item, ColumnRef):
            return mapping.get(item.column, item)
        return item

    return transform(node, change)


def replace_parameters(node: Any, values: Sequence[Any]) -> Any:
    """The tree with constants for its parameters."""

    def change(item: Any) -> Any:
        return Literal(values[item.index], item.type) if isinstance(item, Parameter) else item

    return transform(node, change)

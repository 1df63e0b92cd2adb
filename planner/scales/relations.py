"""Scales carried through a relation: beside each column whose values show their own decimals, one that says how many.

Owns: ``Derivation``, one walk over a statement's relations, children first. Of every column of numerics it knows the
scale, a literal or a reference to the column beside it, which every relation has that has the column itself; what a
relation's rows are is never changed by it: duplicates, set operations and subqueries see the values alone. The scale of
a scalar subquery is another one with the same rows; written as text, it is computed once. Of what is not
carried (recursion that drops rows) the scale is ``UNKNOWN``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from catalog.objects import CatalogObject, Stream, Table, View
from catalog.values.nested_types import holds
from catalog.values.scales import is_padded, scale_name
from catalog.values.types import BOOL, INT4, JSON, TEXT, SqlType
from planner.algebra.construction import rename_columns, volatility
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Fixpoint,
    InSubquery,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Snapshot,
    Unnest,
    Values,
    Window,
    With,
    Working,
)
from planner.algebra.walk import RELATIONS, SCALARS, produced_columns, transform, walk
from planner.rules.subqueries.correlation import rows_at_most_one
from planner.scales.columns import NewColumn, Scales, over
from planner.scales.expressions import TEXTS, TRANSCENDENTAL, scale_of
from planner.scales.groups import aggregated, windowed
from planner.scales.nested import has_scales, in_place, shown_kind
from planner.scales.set_operations import combined
from planner.scales.terms import UNKNOWN, differs, is_array_of_query, largest, of_type, says_scale

_Name = TypeVar("_Name")

#: Functions that write their arguments as text.
_WRITING: Final = frozenset(("concat_values", "concat_ws"))
_DOCUMENTS: Final = frozenset(("to_json", "json_value"))

#: Subqueries within one whose scale is still told.
_NESTED: Final = 2


class Derivation(Scales):
    """The walk over one statement: it gives each relation the scales of its columns."""

    def __init__(self, objects: Mapping[int, CatalogObject], new: NewColumn) -> None:
        super().__init__(new)
        self._objects = objects
        #: Tables that the statement defines anew.
        self._tables: dict[int, Table] = {}
        #: The rows of scalar subqueries, as they have scales.
        self._subqueries = NodeMap[Relation]()
        #: WITH queries that are computed once, and rows that changes in WITH return: columns by the names under which
        #: they are read.
        self._shared: dict[str, dict[str, Column]] = {}
        #: Recursions whose rows have scales.
        self._recursions: set[str] = set()

    def read(self, table: Table) -> None:
        """A table's definition for what is read of it from now on."""
        self._tables[table.oid] = table

    def relation(self, relation: Relation) -> Relation:
        """The relation with its columns' scales; its own columns stay among those that it has."""
        if not isinstance(relation, With):
            fixpoints = (item for item in walk(relation) if isinstance(item, Fixpoint))
            self._recursions |= {item.name for item in fixpoints if item.all}
            found: Relation = transform(relation, self._change)
            return found
        definitions = []
        for name, definition in relation.definitions:
            changed = self.relation(definition)
            self.share(name, {f"c{column.id}": column for column in changed.columns})
            definitions.append((name, changed))
        return With(tuple(definitions), self.relation(relation.body))

    def share(self, name: str, columns: Mapping[str, Column]) -> None:
        """A leaf has rows of these columns, with their scales, under the names by which they are read."""
        self._shared[name] = dict(columns)

    def scalar(self, scalar: Scalar) -> Scalar:
        """An expression over known columns, with its texts as they show."""
        found: Scalar = transform(scalar, self._change)
        return found

    def scalars(self, pairs: Iterable[tuple[_Name, Scalar]]) -> tuple[tuple[_Name, Scalar], ...]:
        """Expressions beside their names or columns."""
        return tuple((name, self.scalar(scalar)) for name, scalar in pairs)

    def showing(self, columns: Iterable[Column]) -> list[tuple[Column, Scalar]]:
        """Which columns show other decimals than their types say, and how many."""
        found = (column for column in columns if self._shows(ColumnRef(column)))
        return [(column, in_place(self.of_column(column), column.type)) for column in found]

    def leaving(self, relation: Relation, columns: tuple[Column, ...]) -> Relation:
        """Some of a relation's columns as a client gets them."""
        if not any(self._shows(ColumnRef(column)) for column in columns):
            return self.own(relation)
        return over(relation, [self.shown(column, ColumnRef(column)) for column in columns])

    def shown(self, column: Column, scalar: Scalar) -> tuple[Column, Scalar]:
        """A result's column and its value, as text where that shows more."""
        if not self._shows(scalar):
            return column, scalar
        return self.new(column.name, shown_kind(scalar.type)), self._text(scalar, TEXT)

    # -- the walk --------------------------------------------------------------------------------------------------

    def _change(self, node: Any) -> Any:
        if isinstance(node, RELATIONS):
            return self._carried(node)
        if not isinstance(node, SCALARS):
            return node
        scalar = self._written(node)
        if says_scale(scalar.type) and not isinstance(scalar, ColumnRef):
            self._scales[scalar] = self._derived(scalar)
        return scalar

    def _derived(self, scalar: Scalar) -> Scalar:
        if isinstance(scalar, ScalarSubquery) and scalar in self._subqueries:
            return self._of_subquery(scalar)
        return scale_of(scalar, self.of)

    def _of_subquery(self, scalar: ScalarSubquery) -> Scalar:
        """A subquery's scale; none of what is volatile, nor of many within each other: each copies the rest. Nor one
        that is computed of values, as a quotient's, of what may have many rows: Spark fails to run the two subqueries
        that it makes into one."""
        scale = self.of_column(scalar.relation.columns[0])
        if not differs(scale):
            return scale
        relation = self._subqueries[scalar]
        below = list(walk(relation))
        nested = sum(isinstance(item, ScalarSubquery) and item.type.is_loose for item in below)
        is_computed = not rows_at_most_one(relation) and any(
            isinstance(item, Call) and item.function == "quotient_scale" for item in below
        )
        if volatility(relation) == "volatile" or nested > _NESTED or is_computed:
            return UNKNOWN
        rows = over(relation, [(self.new("scale", scale.type), scale)])
        produced = sorted(produced_columns(rows), key=lambda column: column.id)
        return ScalarSubquery(rename_columns(rows, {item: self.new(item.name, item.type) for item in produced}))

    def _written(self, scalar: Scalar) -> Scalar:
        """An expression that shows decimals, or whose value depends on how many its operands show."""
        match scalar:
            case ScalarSubquery(relation=relation):
                subquery = ScalarSubquery(self.own(relation))
                if has_scales(subquery.type) and (subquery.type.element or subquery.type).row is None:
                    self._subqueries[subquery] = relation
                return subquery
            case InSubquery(relation=relation):
                return replace(scalar, relation=self.own(relation))
            case Call(function="padded", arguments=(argument,)):
                return self._text(argument, TEXT) if self._shows(argument) else argument
            case Cast(argument=argument) if argument.type.name == "bpchar":
                return scalar  # which loses its blanks, or takes them along
            case Cast(argument=argument, type=target) if target.name in TEXTS and self._shows(argument):
                text = self._text(argument, TEXT)
                return text if target == TEXT == text.type else replace(scalar, argument=text)
            case Call(function="scale", arguments=(argument,)) if self._shows(argument):
                null = Call("is_null", (argument,), BOOL)
                found = Call("coalesce", (self.of(argument), scalar), INT4)
                return Case(((null, Literal(None, INT4)),), found, INT4)
            case Call(function="div", arguments=(left, right)) if scalar.type.name == "numeric":
                least = largest(self.of(left), self.of(right))
                return (
                    replace(scalar, function="div_scaled", arguments=(left, right, least)) if differs(least) else scalar
                )
            case Call(function=function, arguments=arguments) if _is_transcendental(scalar):
                least = largest(*map(self.of, arguments))
                told = Literal(0, INT4) if least == UNKNOWN else least
                return replace(scalar, function="transcendental", arguments=(Literal(function, TEXT), *arguments, told))
            case Call(function=function, arguments=(argument,)) if function in _DOCUMENTS and self._shows(argument):
                text = self._text(argument, JSON)
                if text.type != JSON:
                    return replace(scalar, arguments=(text,))
                return text if function == "to_json" else Call("coalesce", (text, Literal("null", JSON)), JSON)
            case Call(function=function, arguments=arguments) if function in _WRITING:
                shown = (self._text(item, TEXT) if self._shows(item) else item for item in arguments)
                return replace(scalar, arguments=tuple(shown))
            case Call(function="array_to_string", arguments=(items, *rest)) if self._shows(items):
                return replace(scalar, arguments=(self._text(items, TEXT), *rest))
            case _:
                return scalar

    def _shows(self, scalar: Scalar) -> bool:
        """Whether a numeric shows other decimals than its type says, or one in an array or a row."""
        if not has_scales(scalar.type):
            return False
        return self.of(scalar) not in (UNKNOWN, of_type(scalar.type))

    def _text(self, scalar: Scalar, kind: SqlType) -> Scalar:
        """A numeric as text with its decimals."""
        if isinstance(scalar, ScalarSubquery) and scalar in self._subqueries:
            text = self._text(ColumnRef(scalar.relation.columns[0]), kind)
            return ScalarSubquery(over(self._subqueries[scalar], [(self.new("text", text.type), text)]))
        if is_array_of_query(scalar) and scalar.arguments[0] in self._subqueries:
            shown = shown_kind(scalar.type, kind)
            texts = (self._text(scalar.arguments[0], kind), Literal((), shown))
            return replace(scalar, arguments=texts, type=shown)
        return Call("scaled_text", (scalar, self.of(scalar)), shown_kind(scalar.type, kind))

    # -- relations -------------------------------------------------------------------------------------------------

    def _carried(self, node: Any) -> Relation:
        match node:
            case Scan(kind="table" | "stream" | "view" | "changes" | "history"):
                return self._scan(node)
            case Snapshot():
                return self._snapshot(node)
            case Project():
                return replace(node, outputs=(*node.outputs, *self._outputs(node.outputs)))
            case Values():
                return self._values(node)
            case Aggregate():
                return aggregated(self, node)
            case Window():
                return windowed(self, node)
            case SetOperation():
                return combined(self, node)
            case Unnest():
                return self._items(node)
            case Fixpoint():
                return self._fixpoint(node)
            case Working():
                return self._working(node)
            case _:
                relation: Relation = node
                return relation

    def _scan(self, scan: Scan) -> Scan:
        read = keeping_columns(scan, self._tables.get(scan.oid) or self._objects.get(scan.oid))
        columns, sources = tuple(map(self.beside, read)), tuple(read.values())
        return replace(scan, columns=(*scan.columns, *columns), sources=(*scan.sources, *sources))

    def _snapshot(self, leaf: Snapshot) -> Snapshot:
        shared = self._shared.get(leaf.trace)
        if shared is None:
            return leaf
        names = {column: source for source, column in shared.items()}
        columns, sources = leaf.columns, leaf.sources
        for column, source in zip(leaf.columns, leaf.sources, strict=True):
            scale = self.of_column(shared[source])
            if isinstance(scale, ColumnRef):
                columns, sources = (*columns, self.beside(column)), (*sources, names[scale.column])
            else:
                self.know(column, scale)
        return replace(leaf, columns=columns, sources=sources)

    def _outputs(self, outputs: tuple[tuple[Column, Scalar], ...]) -> list[tuple[Column, Scalar]]:
        """The scales of a projection's columns that need one of their own."""
        # All of them first: what is told of a column counts above the projection, and not for the outputs beside it.
        scales = [
            (column, self.of(scalar))
            for column, scalar in outputs
            if has_scales(column.type) and column not in self._added
        ]
        return [told for column, scale in scales for told in self.told(column, scale)]

    def _values(self, values: Values) -> Values:
        columns, scales = [], []
        for place, column in enumerate(values.columns):
            if not has_scales(column.type):
                continue
            found = [self.of(row[place]) for row in values.rows]
            if found and all(scale == found[0] and not differs(scale) for scale in found):
                self.know(column, found[0])
            elif found:
                columns.append(self.beside(column))
                scales.append([in_place(scale, column.type) for scale in found])
        rows = tuple((*row, *(found[place] for found in scales)) for place, row in enumerate(values.rows))
        return replace(values, columns=(*values.columns, *columns), rows=rows)

    def _items(self, node: Unnest) -> Unnest:
        """The scales of arrays' elements beside them."""
        added = []
        for column, scalar in node.items:
            scale = self.of(scalar)
            if has_scales(column.type) and differs(scale):
                added.append((self.beside(column), scale))
        return replace(node, items=(*node.items, *added))

    def _fixpoint(self, node: Fixpoint) -> Fixpoint:
        """A recursion whose rows bring their scales along, where equal rows need not be found."""
        if not node.all:
            return replace(node, base=self.own(node.base), step=self.own(node.step))
        kept = [(place, column) for place, column in enumerate(node.columns) if is_varying(column.type)]
        beside = tuple(self._beside(column) for _, column in kept)

        def side(relation: Relation) -> Relation:
            own = self.own(relation).columns
            return self.only(relation, (in_place(self.of_column(own[place]), column.type) for place, column in kept))

        return replace(node, base=side(node.base), step=side(node.step), columns=(*node.columns, *beside))

    def _working(self, node: Working) -> Working:
        """The rows of a recursion that came last, with their scales."""
        kept = [
            (column, source)
            for column, source in zip(node.columns, node.sources, strict=True)
            if node.name in self._recursions and is_varying(source.type)
        ]
        columns = tuple(self.beside(column) for column, _ in kept)
        sources = tuple(self._beside(source) for _, source in kept)
        return replace(node, columns=(*node.columns, *columns), sources=(*node.sources, *sources))

    def _beside(self, column: Column) -> Column:
        """A recursion's column for a scale, which its rounds know before its end does."""
        known = self._known.get(column)
        return known.column if isinstance(known, ColumnRef) else self.beside(column)


def _is_transcendental(call: Call) -> bool:
    return call.function in TRANSCENDENTAL and call.type.name == "numeric"


def is_varying(kind: SqlType) -> bool:
    """Whether a type does not say how many decimals its numerics show."""
    return holds(kind, lambda each: each.is_loose or is_padded(each))


def keeping_columns(scan: Scan, relation: object) -> dict[Column, str]:
    """The columns of a relation's scan that keep scales, and the sources of these: names, or places for changes."""
    if not isinstance(relation, Table | Stream | View):
        return {}
    if not any(item.keeps_scale for item in relation.columns):
        return {}
    names = [item.name for item in relation.stored]
    called = dict(zip(names, map(str, range(len(names))) if scan.kind == "changes" else names, strict=True))
    scales = {called[item.name]: called[scale_name(item.name)] for item in relation.columns if item.keeps_scale}
    return {column: scales[name] for column, name in zip(scan.columns, scan.sources, strict=True) if name in scales}

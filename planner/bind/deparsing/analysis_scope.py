"""The scope of an expression or a query: the columns and WITH queries that its names mean.

Owns: ``Place``, one level of queries with the levels around it, the oids of types (a domain has its own), and
``Analysis``, through which expressions and FROM reach queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.objects import FIRST_OID, CatalogObject, Domain
from catalog.system.own_objects import prefix
from catalog.values.identifiers import quote_name
from catalog.values.times.precision import declared
from catalog.values.types import ARRAYS, SqlType, by_oid
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.trees import ColumnOf, Frame, Node, Query, Source
from planner.bind.lookup.type_names import BY_OID, declared_typmod
from planner.bind.state.bind_state import BindState
from planner.bind.state.with_names import Visible

#: Types whose names, as format_type() prints them, mean a length of 1.
_ANY_LENGTH: Final = {"bpchar": "bpchar", "bit": '"bit"'}
#: A column with its name in the text.
Named = tuple[str, Node]


class Analysis(Struct, frozen=True):
    """The parts of the grammar that contain each other, for modules that must not import them (``texts.ANALYSIS``)."""

    query: Callable[[Place, Any], Query]
    call: Callable[[Place, Any], Node]


class Place(Struct, eq=False):
    """One level of queries.

    ``named`` are the items of FROM, ``visible`` the columns that need no qualifier, ``merges`` the columns that JOIN
    ... USING merges, by name. ``is_kept``: the catalog stores the text, so that it names types by oid; other texts have
    ``MARK`` before schemas.
    """

    binding: BindState
    analysis: Analysis
    is_kept: bool = False
    outer: Place | None = None
    named: dict[str, list[Named]] = field(default_factory=dict)
    visible: list[Named] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    ctes: Visible[tuple[ColumnOf, ...]] = field(default_factory=lambda: Visible())
    windows: list[Frame] = field(default_factory=list)
    merges: list[tuple[str, list[Node]]] = field(default_factory=list)

    @property
    def catalog(self) -> Catalog:
        """The catalog that names refer to."""
        return self.binding.context.catalog

    def inside(self, outer: Place | None = None) -> Place:
        """The place of an inner query. ``outer`` is the level whose columns it sees, by default this one."""
        return Place(self.binding, self.analysis, self.is_kept, outer or self, ctes=self.ctes)

    def type_name(self, oid: int, typmod: int = -1) -> str:
        """A type as format_type() shows it; in stored texts, users' types by oid."""
        if oid < FIRST_OID:
            return _built_in(oid, typmod)
        declared = self.catalog.declared(oid + 1 - oid % 2)
        if declared is None:
            raise AsWrittenError
        name = f'{BY_OID}."{declared.oid}"' if self.is_kept else prefix(declared.schema) + quote_name(declared.name)
        return name if oid % 2 else f"{name}[]"

    def base(self, oid: int) -> int:
        """A type's oid, for a domain the oid of its base type."""
        found = self.catalog.declared(oid)
        return found.base.oid if isinstance(found, Domain) else oid

    def bases(self, nodes: Sequence[Node]) -> list[int]:
        """The types of operands and arguments, as function resolution needs them."""
        return [self.base(item.oid) for item in nodes]

    def column(self, names: Sequence[str]) -> Node:
        """The column that a reference means, the innermost level first."""
        level: Place | None = self
        while level is not None:
            known = level.visible if len(names) == 1 else level.named.get(names[-2], ())
            found = [node for name, node in known if name == names[-1]]
            is_meant = len(names) < 3 or level.is_last_with(names[-2]) or level.has_relation(names[-3], names[-2])
            if len(found) == 1 and is_meant:
                return found[0]
            if found and is_meant:
                raise AsWrittenError
            level = level.outer
        raise AsWrittenError

    def has_relation(self, schema: str, name: str) -> bool:
        """Whether an item of FROM is the relation of that name in a schema."""
        return any((item.schema, item.name, item.has_alias) == (schema, name, False) for item in self.sources)

    def is_last_with(self, name: str) -> bool:
        """Whether no item of FROM in an outer level has this name, so that the schema need not be compared."""
        level = self.outer
        while level is not None and name not in level.named:
            level = level.outer
        return level is None


def _built_in(oid: int, typmod: int) -> str:
    kind = by_oid(oid)
    if kind.element is not None and kind.name in ARRAYS:
        return _built_in(kind.element.oid, typmod) + "[]"
    if typmod < 0:
        return _ANY_LENGTH.get(kind.name) or str(kind)
    if kind.name in ("varchar", "bpchar", "bit", "varbit"):
        return str(SqlType(kind.name, (typmod - (0 if "bit" in kind.name else 4),)))
    if kind.name == "numeric":
        scale = (typmod - 4) & 0x7FF
        return f"numeric({(typmod - 4) >> 16},{scale - 0x800 if scale & 0x400 else scale})"
    return str(declared(kind, typmod))


def columns_of(item: CatalogObject) -> dict[str, ColumnOf]:
    """A relation's columns by their current names."""
    return {
        column.name: ColumnOf(
            column.name, column.domain or column.type.oid, -1 if column.is_computed else declared_typmod(column.type)
        )
        for column in item.columns
    }

"""The texts that the catalogs show for stored expressions and for views' queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog.catalog import Catalog
from catalog.objects import View
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from planner.algebra.nodes import Column
from planner.bind.conversion.resolution import UNKNOWN, Ambiguous
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Analysis, Place
from planner.bind.deparsing.calls import analyse_call
from planner.bind.deparsing.coercion import cast, coerce
from planner.bind.deparsing.expressions import analyse
from planner.bind.deparsing.from_items import entries_of
from planner.bind.deparsing.item_names import OF_VIEWS
from planner.bind.deparsing.layout import show_query
from planner.bind.deparsing.printer import Printer
from planner.bind.deparsing.queries import analyse_query
from planner.bind.deparsing.trees import ColumnOf, Const, Source
from planner.bind.lookup.relations import as_created
from planner.bind.state.bind_state import BindState
from planner.bind.state.context import Context
from planner.parse.parser import parse

#: The errors of an analysis that does not know enough.
_FAILURES = (AsWrittenError, SqlError, Ambiguous, KeyError, StopIteration, ValueError, RecursionError)


ANALYSIS: Final = Analysis(analyse_query, analyse_call)


def deparsed_expression(binding: BindState, tree: Any, columns: Sequence[Column], kind: SqlType | None = None) -> str:
    """An expression over a row's columns as pg_get_expr() shows it.

    ``kind`` is the type that its value is assigned to; the cast to it is not written. Users' types are named by oid, as
    in all stored texts. Raises AsWrittenError.
    """
    known = tuple(ColumnOf(item.name, item.type.oid) for item in columns)
    row = Source("relation", "", known, tuple(item.name for item in known))
    place = Place(binding, ANALYSIS, is_kept=True, visible=entries_of(row), sources=[row])
    try:
        node = analyse(place, tree)
        if kind is not None and isinstance(node, Const) and node.oid == UNKNOWN:
            is_interval = kind.name == "interval" and kind.modifiers  # it tells what a number counts
            node = cast(place, node, kind) if is_interval else coerce(place, node, kind.oid)
        to = Printer(place.type_name, show_query)
        to.show(node)
    except _FAILURES as error:
        raise AsWrittenError from error
    return to.text


def deparsed_view(catalog: Catalog, view: View) -> tuple[str, str]:
    """A view's query as pg_get_viewdef() shows it, plain and pretty, without the semicolon and with ``MARK`` before
    schemas. Raises AsWrittenError."""
    (raw,) = parse(view.definition)
    binding = BindState(raw, as_created(Context(catalog), view))
    names = tuple(column.name for column in view.columns)
    try:
        with binding.without_positions():
            place = Place(binding, ANALYSIS)
            query = analyse_query(place, raw.node)
            plain, pretty = (Printer(place.type_name, show_query, flag, named=OF_VIEWS) for flag in (False, True))
            for to in (plain, pretty):
                show_query(to, query, names)
    except _FAILURES as error:
        raise AsWrittenError from error
    return plain.text, pretty.text

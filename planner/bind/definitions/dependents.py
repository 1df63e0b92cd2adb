"""Views and stored texts that a change of the catalog would break, or give another meaning.

Owns: finding them by binding their texts against the catalog as it will be. PostgreSQL stores parsed views and knows
the columns that each uses; here a view does not use a column if its text binds to the same result without that column.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Domain, Stream, Table, View, as_plain
from catalog.values.errors import SqlError
from catalog.values.types import BOOL, SqlType
from planner.algebra.nodes import Column
from planner.algebra.reading_time import at_one_time
from planner.bind.binder import BINDER, bind_expression, new_binding
from planner.bind.definitions.relations.watermarks import keeps_windows
from planner.bind.lookup.relations import as_created, describe
from planner.bind.queries.select import bind_query
from planner.bind.scalars.stored_expressions import functions_called
from planner.bind.state.context import Context, within
from planner.bind.state.environment import Binding
from planner.parse.parser import parse
from planner.statements.statement import Query


def readers(catalog: Catalog, oid: int) -> list[View]:
    """The views that read an object, directly or through others, in the order of that."""
    found: list[View] = []
    pending = [oid]
    for below in pending:  # grows while it is walked
        for item in catalog.dependents(below):
            if isinstance(item, View) and item not in found:
                found.append(item)
                pending.append(item.oid)
    return found


def broken_by(binding: Binding, after: Table | Stream) -> list[View]:
    """The views that do not mean the same any more when a table or stream is as ``after`` says."""
    before = binding.context.catalog
    changed = before.change(after)
    return [
        view
        for view in readers(before, after.oid)
        if (wanted := _outputs(binding, view, before)) is None or _outputs(binding, view, changed) != wanted
    ]


def above_replaced(binding: Binding, after: View) -> tuple[tuple[View, View], ...]:
    """The views that read one that is replaced, before and after: they go on, and depend on what it now reads. Those
    whose programs were made of its text are computed at each read from now on.

    Raises 0A000 where one is maintained, or would have other columns.
    """
    before = binding.context.catalog
    old, changed = before.objects[after.oid], before.change(after)
    found = []
    for view in readers(before, after.oid):
        bound = _bound(binding, view, changed)
        keeps_rows = any(isinstance(item, View) and item.keeps_rows for item in (view, old, after))
        if keeps_rows or bound is None or bound[0] != _outputs(binding, view, before):
            below = describe(binding, after)
            message = f"cannot replace {below} because other objects depend on it"
            detail = f"{describe(binding, view)} depends on {below}"
            raise SqlError("0A000", message, detail, "Drop the dependent objects first.")
        found.append((view, replace(as_plain(view), depends_on=bound[1])))
    return tuple(found)


def first_broken(binding: Binding, after: Catalog) -> str | None:
    """Something kept as text that would not bind any more, described."""
    for item in after.objects.values():
        if isinstance(item, View) and _outputs(binding, item, after) is None:
            return f"view {item.name}"
        found = newly_broken(item, binding.context, after) if isinstance(item, Table | Stream) else []
        if found:
            return found[0][0].format(f"{'table' if isinstance(item, Table) else 'foreign table'} {item.name}")
    for declared in after.types.values():
        if isinstance(declared, Domain) and newly_broken(declared, binding.context, after):
            return f"domain {declared}"
    return None


def reads_as_before(binding: Binding, view: View, after: Catalog) -> bool:
    """Whether a view's text gives the same columns in a catalog as it will be."""
    outputs = _outputs(binding, view, after)
    return outputs is not None and outputs == _outputs(binding, view, binding.context.catalog)


def newly_broken(item: Table | Stream | Domain, context: Context, after: Catalog) -> list[tuple[str, str]]:
    """The kept texts that bind now and would not in a catalog as it will be, each described and by the name of its
    column, constraint or index."""
    broken = _broken(item, within(context, catalog=after))
    if not broken:
        return []
    before = next((known for known in _all(context.catalog) if known.oid == item.oid), item)
    known = _broken(before, context)
    return [each for each in broken if each not in known]


def _all(catalog: Catalog) -> Iterator[Table | Stream | Domain]:
    """What has kept texts."""
    for item in (*catalog.objects.values(), *catalog.types.values()):
        if isinstance(item, Table | Stream | Domain):
            yield item


def _broken(item: Table | Stream | Domain, context: Context) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    columns, texts = _texts(item)
    for words, name, text, kind in texts:
        try:
            if text is not None:
                bind_expression(text, columns, context, kind)
        except SqlError:
            found.append((words, name))
    return found


def texts_calling(item: Table | Stream | Domain, oid: int, context: Context) -> list[str]:
    """The kept texts that call a user's function, each described as a form for the relation's description."""
    columns, texts = _texts(item)
    calling = (
        words
        for words, _, text, _ in texts
        if text is not None and oid in functions_called(BINDER, text, columns, context)
    )
    return list(calling)


def _texts(item: Table | Stream | Domain) -> tuple[list[Column], list[tuple[str, str, str | None, SqlType | None]]]:
    """What texts are over, and the texts: described as a form for the relation's description, of which column,
    constraint or index, and of which type, if an assignment makes them so."""
    if isinstance(item, Domain):
        checks = [(f"constraint {check.name}", check.name, check.expression, BOOL) for check in item.checks]
        return [Column(-1, "value", item.base)], [("default value", item.name, item.default, item.base), *checks]
    columns = [Column(-1 - index, column.name, column.type) for index, column in enumerate(item.columns)]
    texts: list[tuple[str, str, str | None, SqlType | None]] = [
        (f"default value for column {_form(own.name)} of {{}}", own.name, own.default, own.type) for own in item.columns
    ]
    if isinstance(item, Table):
        texts += [(f"column {_form(own.name)} of {{}}", own.name, own.generated, own.type) for own in item.columns]
        texts += [(f"constraint {_form(own.name)} on {{}}", own.name, own.expression, BOOL) for own in item.checks]
    if isinstance(item, Table | View):
        texts += [
            (f"index {_form(own.name)}", own.name, text, None)
            for own in item.indexes
            for text in (*own.parts, own.predicate)
        ]
    return columns, texts


def _form(name: str) -> str:
    """A name within a form."""
    return name.replace("{", "{{").replace("}", "}}")


def _outputs(binding: Binding, view: View, catalog: Catalog) -> tuple[tuple[str, SqlType], ...] | None:
    """A view's columns by its text; None where that does not bind."""
    bound = _bound(binding, view, catalog)
    return None if bound is None else bound[0]


def _bound(
    binding: Binding, view: View, catalog: Catalog
) -> tuple[tuple[tuple[str, SqlType], ...], tuple[int, ...]] | None:
    """A view's columns and what it depends on by its text; None where that does not bind."""
    bound = bind_text(binding, view, catalog)
    if bound is None:
        return None
    query, inner = bound
    return tuple((output.name, output.type) for output in query.outputs), tuple(inner.depends_on)


def bind_text(binding: Binding, view: View, catalog: Catalog) -> tuple[Query, Binding] | None:
    """A view's query by its text, and what was found while it was bound; None where that does not bind."""
    raw = parse(view.definition)[0]
    inner = new_binding(as_created(replace(binding.context, catalog=catalog, parameter_types=()), view), raw)
    inner.marks_rows = True  # whatever it needs
    inner.expands = view.keeps_rows
    inner.keeps_windows = keeps_windows(dict(view.options))
    inner.views.append(view.oid)  # errors have no position in the statement
    try:
        query = bind_query(inner, raw.node)
    except SqlError:
        return None
    return (replace(query, relation=at_one_time(query.relation)) if view.keeps_rows else query), inner

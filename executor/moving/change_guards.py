"""Refuses changes of objects on which other servers rely.

Owns: which objects these are. Other servers know a view that is away, its streams, and the tables that it reads, by
their present definition. A guest and the replicas below it are changed at their home only. A home may drop these
objects, and drops them for all servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, Stream
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import NOBODY
from executor.core.core import Core
from executor.traces.layout import home_of
from executor.views.runtime import ViewRuntime


def require_changeable(core: Core, end_copies: Callable[[ViewRuntime], bool], before: Catalog, after: Catalog) -> None:
    """Raises 55000 for a change of the catalog that another server would have to know of. ``end_copies`` ends the
    automatic copies of a view, if there are any."""
    for runtime, oid, server, is_guest in _pinned(core):
        old, new = before.objects.get(oid), after.objects.get(oid)
        if old is None or new is old:
            continue
        is_dropped = new is None and after.at(old.schema, old.name) is None  # else another view replaces it
        if is_dropped and not is_guest:
            continue
        if is_guest:
            hint = f'Change it on server "{server}".'
            raise SqlError("55000", f'relation "{old.name}" belongs to server "{server}"', hint=hint)
        if server == NOBODY:
            hint = "Resume the view first, with millstream.resume()."
            raise SqlError("55000", f'relation "{old.name}" is in use by a suspended view', hint=hint)
        if server == core.options.server_name:
            if end_copies(runtime):
                continue
            hint = "millstream.forget() with the view's name deletes the copy."
            raise SqlError("55000", f'relation "{old.name}" is in use by a copy on the storage', hint=hint)
        hint = "Migrate the view back first."
        raise SqlError("55000", f'relation "{old.name}" is in use by server "{server}"', hint=hint)


def _pinned(core: Core) -> Iterator[tuple[ViewRuntime, int, str, bool]]:
    """Views with the objects that they pin, the server that relies on these (this one where a copy is kept), and
    whether that server is the home of a guest."""
    for runtime in core.runtimes():
        known = next((core.streams.get(oid) for oid in runtime.program.inputs), None)
        home = "" if known is None else home_of(known.stream)
        if home or runtime.held is not None:
            server = home or (core.options.server_name if runtime.away is None else runtime.away.server)
            for oid in core.reads_of(runtime.view.oid):
                yield runtime, oid, server, bool(home)


def require_own(stream: CatalogObject) -> None:
    """Raises 0A000 for a new view over a replica, which would not be kept for it."""
    home = home_of(stream) if isinstance(stream, Stream) else ""
    if home:
        instead = f'Create it on server "{home}", and let it migrate.'
        raise SqlError("0A000", f'a continuous view over a stream of server "{home}" is not supported', hint=instead)

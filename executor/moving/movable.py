"""Which views can leave their home.

Owns: that they need nothing but their states and their stream's rows. What a view reads whenever it is read is at its
home only, and so are the names of users' types.
"""

from __future__ import annotations

from catalog.catalog import Catalog
from catalog.errors import unsupported
from catalog.nesting import holds, is_declared
from catalog.objects import Domain, Stream
from executor.streams.runtime import is_followed
from executor.views.runtime import ViewRuntime
from planner.algebra import Scan
from planner.walk import walk


def require_movable(catalog: Catalog, runtime: ViewRuntime) -> Stream:
    """The stream of a view that needs nothing else. Raises 0A000."""
    view, instead = runtime.view, "Let it stay, and migrate the queries that read it."
    if len(runtime.paths) != 1:
        raise unsupported(f'migrating view "{view.name}" over several streams', instead)
    stream = catalog.objects[runtime.paths[0].path.stream]
    assert isinstance(stream, Stream)
    scan = next((node for node in walk(runtime.program.final) if isinstance(node, Scan)), None)
    if scan is not None:
        raise unsupported(f'migrating view "{view.name}", which reads "{scan.name}" whenever it is read', instead)
    if is_followed(stream):
        raise unsupported(f'migrating view "{view.name}" over a stream that follows a folder', instead)
    kinds = [column.type for column in (*stream.columns, *view.columns)]
    domains = {item.oid for item in catalog.types.values() if isinstance(item, Domain)}
    if any(oid not in domains for *_, oid in view.types) or any(holds(kind, is_declared) for kind in kinds):
        raise unsupported(f'migrating view "{view.name}", which uses types of users', instead)
    return stream

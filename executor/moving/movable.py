"""Which views can leave their home.

Owns: that they need nothing but their states and their streams' rows. What a view reads whenever it is read is at its
home only.
"""

from __future__ import annotations

from catalog.errors import unsupported
from executor.core import Core
from executor.moving.replica import streams_of
from executor.streams.runtime import is_followed
from executor.views.runtime import ViewRuntime
from planner.algebra import Scan
from planner.walk import walk


def require_movable(core: Core, runtime: ViewRuntime) -> None:
    """A view needs nothing but its streams. Raises 0A000."""
    view, instead = runtime.view, "Let it stay, and migrate the queries that read it."
    scan = next((node for node in walk(runtime.program.final) if isinstance(node, Scan)), None)
    if scan is not None:
        raise unsupported(f'migrating view "{view.name}", which reads "{scan.name}" whenever it is read', instead)
    if any(map(is_followed, streams_of(core, runtime.program))):
        raise unsupported(f'migrating view "{view.name}" over a stream that follows a folder', instead)

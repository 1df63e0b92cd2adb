"""Which views can leave their home, and as what.

Owns: that they need nothing but their states, their streams' rows, and tables of their home, which are asked for when
the view is read elsewhere (``borrowing``).
"""

from __future__ import annotations

from msgspec.structs import replace

from catalog.errors import unsupported
from catalog.objects import Table, View
from executor.core import Core
from executor.views.runtime import ViewRuntime
from planner.algebra import Scan
from planner.lending import lending
from planner.program import Program
from planner.renaming import with_current_names
from planner.walk import walk


def require_movable(core: Core, runtime: ViewRuntime) -> None:
    """A view needs nothing else. Raises 0A000."""
    view, instead = runtime.view, "Let it stay, and migrate the queries that read it."
    scans = (node for node in walk(runtime.program.final) if isinstance(node, Scan))
    scan = next((node for node in scans if node.kind != "table"), None)
    if scan is not None:
        raise unsupported(f'migrating view "{view.name}", which reads "{scan.name}" whenever it is read', instead)


def require_alone(core: Core, runtime: ViewRuntime) -> None:
    """A view can be read where its home is gone. Raises 0A000."""
    if core.plans.get(runtime.program.final).tables:
        view, instead = runtime.view, "millstream.checkpoint() makes copies all the same."
        raise unsupported(f'copying view "{view.name}" unasked, which reads tables whenever it is read', instead)


def as_leaving(core: Core, program: Program, view: View) -> Program:
    """A program of this server's as it leaves: its tables stay."""
    tables = {oid: item for oid, item in core.catalog.objects.items() if isinstance(item, Table)}
    final = with_current_names(program.final, view.moved)
    return lending(replace(program, final=final), f"v{view.oid}", tables)

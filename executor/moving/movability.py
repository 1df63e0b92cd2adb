"""Tells which views can leave their home, and makes the program with which they leave.

Owns: that such a view needs only its states and those of the views that it reads, its streams' rows, and tables of its
home, whose rows the home is asked for when the view is read elsewhere (``remote_reads.home_tables``).
"""

from __future__ import annotations

from msgspec.structs import replace

from catalog.objects import Table
from catalog.values.errors import unsupported
from executor.core.core import Core
from executor.replicas.replica import streams_of
from executor.traces.layout import home_of
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.incremental.programs.inlining import Below, inlined
from planner.incremental.programs.lending import lending
from planner.incremental.programs.program import Program
from planner.incremental.programs.renaming import with_current_names


def views_below(core: Core, runtime: ViewRuntime) -> tuple[ViewRuntime, ...]:
    """The continuous views that a view, or one of these, reads whenever it is read."""
    oid = runtime.view.oid
    return tuple(core.view(below) for below in core.views_below((oid,)) if below != oid)


def require_movable(core: Core, runtime: ViewRuntime) -> None:
    """Raises 0A000 for a view that has no states, or reads something else whenever it is read."""
    name, instead = runtime.view.name, "Migrate the queries that read it instead."
    if not runtime.program.paths:
        raise unsupported(
            f'migrating view "{name}", which reads no stream: it is computed where its tables are', instead
        )
    below = views_below(core, runtime)
    for each in (runtime, *below):
        if each.program.arrival_statics:
            what = f'migrating view "{name}", whose rows meet tables of this server as they come'
            raise unsupported(what, instead)
        scans = (node for node in walk(each.program.final) if isinstance(node, Scan))
        scan = next((node for node in scans if node.kind not in ("table", "view")), None)
        if scan is not None:
            raise unsupported(f'migrating view "{name}", which reads "{scan.name}" whenever it is read', instead)
    if runtime.view.timed:
        raise unsupported(f'migrating view "{name}", whose rows depend on when they are read', instead)
    lenient = next((each.view for each in (runtime, *below) if each.view.on_error != "fail"), None)
    if below and lenient is not None:
        what = f'migrating view "{name}" with the views that it reads, as view "{lenient.name}" has on_error'
        raise unsupported(f"{what} = '{lenient.on_error}'", instead)
    for each in below:
        if any(map(home_of, streams_of(core, each.program))):
            what = f'migrating view "{name}", which reads view "{each.view.name}" of another server'
            raise unsupported(what, instead)


def require_alone(core: Core, runtime: ViewRuntime) -> None:
    """Raises 0A000 for a view that cannot be read without its home."""
    if core.tables_of_view(runtime.view.oid):
        view, instead = runtime.view, "Copy it with millstream.checkpoint()."
        raise unsupported(f'copying view "{view.name}" automatically, which reads tables whenever it is read', instead)


def as_leaving(core: Core, runtime: ViewRuntime) -> Program:
    """The program with which a view leaves this server: the views that it reads are part of it, and tables stay."""
    others = views_below(core, runtime)
    is_one_zone = all(each.time_zone == runtime.time_zone for each in others)
    below = {each.view.oid: Below(_now(each), _names(each), None if is_one_zone else each.time_zone) for each in others}
    tables = {oid: item for oid, item in core.catalog.objects.items() if isinstance(item, Table)}
    return lending(inlined(_now(runtime), below), tables)


def _now(runtime: ViewRuntime) -> Program:
    """A program with the present names of the columns that it reads."""
    return replace(runtime.program, final=with_current_names(runtime.program.final, runtime.view.moved))


def _names(runtime: ViewRuntime) -> tuple[str, ...]:
    return tuple(column.name for column in runtime.view.stored)

"""Continuous views as a start of the server finds them: as they were, rebuilt, or with an error instead of rows.

Owns: what becomes of a view whose files are not what was written. A state is its query over the rows since the view's
creation, so where the log or the stream's history still holds all of these it begins there again; else reads raise
XX001, whatever else there is lives, and nothing of the files is touched. Files that were put back from an older copy
would lack rows that the log has forgotten meanwhile: up to where that may be is kept beside the log, before it forgets
(``executor.core.recycled_log``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec.structs import replace

from catalog.objects import View, qualified
from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned, all_owned
from executor.core.core import Core
from executor.files.arrived_files import FileFeed
from executor.files.followed_folders import verify
from executor.moving import view_artifact as artifact
from executor.traces.layout import home_of
from executor.views.failure import ViewError
from executor.views.storage import Handover, StoredView
from planner.algebra.nodes import Column, Values
from planner.incremental.programs.program import Path, Program

_LOGGER = logging.getLogger(__name__)


def reopen(core: Core, view: View, open_view: Callable[[View, StoredView], None]) -> None:
    """A view is there again at a start, as it was or otherwise: ``open_view`` says so."""
    try:
        owned = _entry(core, view)
        core.storage.open(view)
        stored = core.storage.load(view.oid)
        if owned is None or owned.worker(core.options.server_name, stored.handover) == core.options.server_name:
            _require_young(core, stored)
        open_view(view, stored)
    except SqlError as error:
        if error.sqlstate != "XX001":
            raise
        open_view(view, _without(core, view, error))


def _require_young(core: Core, stored: StoredView) -> None:
    """Raises XX001 for the files of long ago: the log has had rows since then that it has no more."""
    gone = core.forgotten.streams
    for stream, frontier in stored.inputs.items():
        if stored.error is None and frontier < gone.get(stream, 0) and not _has_older(core, stream, frontier):
            missing = "and the log no longer has the rows after that"
            raise SqlError("XX001", f'"manifest.json" is an older copy: it is at LSN {frontier}, {missing}')


def _has_older(core: Core, stream: int, frontier: int) -> bool:
    """Whether there are rows of a stream behind an LSN that the log has forgotten: names of all files, or a history."""
    item = core.streams[stream]
    return isinstance(item.feed, FileFeed) or (item.history is not None and item.history.covers(frontier))


def _without(core: Core, view: View, error: SqlError) -> StoredView:
    """A view whose files are damaged."""
    storage = core.storage
    owned, known = _entry(core, view), storage.known(view.oid)
    shared = owned.name if owned is not None else "" if known is None else known.shared
    try:
        program = storage.program(view)
        copy = None if owned is None or not owned.copied else _copy(core, view, owned, program)
        if copy is None and (owned is None or not _is_elsewhere(core, owned, known)):
            _require_rows(core, view, program)
        storage.create(view)
        if shared:
            storage.share(view.oid, shared)
        if copy is not None:
            storage.come_back(view.oid, *copy)
        found = storage.load(view.oid)
    except SqlError as prevented:
        _LOGGER.error("view %s has lost its state: %s; %s", view.name, error.message, prevented.message)
    else:
        begins = "starts again" if copy is None else "continues from its copy"
        _LOGGER.warning("view %s %s: %s", view.name, begins, error.message)
        return found
    storage.close(view.oid)
    raised = lost(view, error.message)
    if known is None:
        streams = [oid for oid in view.depends_on if oid in core.streams]
        known = StoredView(_no_program(view, streams), dict.fromkeys(range(len(streams)), view.created_lsn))
    return StoredView(known.program, known.frontiers, error=ViewError(raised, 0), shared=shared)


def lost(view: View, why: str) -> SqlError:
    """What reads of a view raise whose state is damaged, and can be had from nowhere else."""
    hint = "Restore the data folder, or create the view again: the log no longer has its first rows."
    return SqlError("XX001", f'the state of view "{view.name}" is damaged: {why}', hint=hint)


def _entry(core: Core, view: View) -> Owned | None:
    """The entry among servers of a view that may not be able to say what it is called there."""
    own, name = core.options.server_name, qualified(view)
    for owned in all_owned(core.shared):
        is_its_home = owned.home == own and owned.stream in view.depends_on
        if owned.view == name and (is_its_home or owned.owner == own):
            return owned
    return None


def _is_elsewhere(core: Core, owned: Owned, known: StoredView | None) -> bool:
    """Whether this server is the home of a view that another server maintains, or that is suspended."""
    own = core.options.server_name
    return owned.home == own and owned.worker(own, "" if known is None else known.handover) != own


def _copy(core: Core, view: View, owned: Owned, program: Program) -> tuple[Handover, int] | None:
    """The copy on the storage of a view that is at its home, and of which LSN that is; None where there is none from
    which the log leads here."""
    own = core.options.server_name
    if not owned.taken or owned.failure is not None or (owned.home, owned.owner) != (own, own):
        return None
    gone = max(core.forgotten.streams.get(oid, 0) for oid in program.inputs)
    for each in (owned, replace(owned, handover=owned.older)):
        try:
            leaving = artifact.read(core.shared.folder, each, is_older=each is not owned)
            if leaving.at >= gone:
                return artifact.as_handover(each, leaving, view.oid, program), leaving.at
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
    return None


def _require_rows(core: Core, view: View, program: Program) -> None:
    """All rows since a view's creation can still be read, and the tables that they meet. Raises 72000, 58P01."""
    if program.arrival_statics and core.log.first_lsn > view.created_lsn:
        raise SqlError("72000", "the log does not reach back to its creation")
    for oid in program.inputs:
        stream = core.streams[oid]
        if (home_of(stream.stream) or core.storage.has_come(view.oid)) and not core.storage.has_arrived(view.oid):
            raise SqlError("72000", "it began on another server")
        if isinstance(stream.feed, FileFeed):
            for arrived in stream.feed.files(view.since(oid), core.log.last_lsn):
                for file in arrived.files:
                    verify(file, stream.stream.name)
        elif core.log.first_lsn > view.created_lsn and not _has_older(core, oid, view.since(oid)):
            raise SqlError("72000", "the log does not reach back to its creation")


def _no_program(view: View, streams: list[int]) -> Program:
    """What stands for a program that cannot be read."""
    columns = tuple(Column(place, item.name, item.type) for place, item in enumerate(view.stored, 1))
    paths = tuple(Path(place, (oid,), ()) for place, oid in enumerate(streams))
    return Program((), (), paths, Values(columns, ()), columns)

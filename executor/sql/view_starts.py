"""With which rows a continuous view starts: those that come, and of before those of a stream's history or folder.

Owns: the LSN of each stream behind which its rows are the view's, what CREATE VIEW says of files that are gone, and
what becomes of views when a stream's rows are no longer kept. The seam is an LSN like any other: a path begins there,
and reads rows of before its view's creation from where the stream has them (``executor.traces.ring``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog.catalog import Catalog
from catalog.objects import Stream, View
from catalog.stream_history import no_history
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.files.arrived_files import FileFeed
from executor.traces.history import BEGINNING
from executor.upkeep.commits import commit
from executor.upkeep.paths import PathTask
from planner.statements.statement import CreateView


def starts(core: Core, catalog: Catalog, statement: CreateView, inputs: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """By stream that a new view has rows of from before, the LSN behind which these are. Raises 55000 where the view is
    to start with a history that a stream does not have."""
    start = dict(statement.view.options).get("start")
    if start == "history":
        _require_history(statement, catalog, inputs)
    return () if start == "now" else tuple(_starts(core, catalog, inputs))


def _starts(core: Core, catalog: Catalog, inputs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Of a history all rows; of a folder the files that are still there, from the last on that is not as it arrived."""
    for oid in inputs:
        stream, item = core.streams.get(oid), catalog.objects[oid]
        if stream is not None and isinstance(stream.feed, FileFeed):
            yield oid, stream.feed.intact_since()
        elif isinstance(item, Stream) and item.keeps_rows:  # perhaps with this transaction's commit
            history = None if stream is None else stream.history
            yield oid, BEGINNING if history is None else history.start


def _require_history(statement: CreateView, catalog: Catalog, inputs: Iterable[int]) -> None:
    """Raises 55000 where a stream has no rows of before."""
    for item in (catalog.objects[oid] for oid in inputs):
        if isinstance(item, Stream) and not (item.keeps_rows or item.option("source")):
            raise no_history(item.name, statement.position)


def missing_files(core: Core, view: View) -> Iterator[str]:
    """Notices of files that a new view does not have, since they are gone."""
    for oid, since in view.files_since:
        stream = core.streams.get(oid)
        if stream is None or not isinstance(stream.feed, FileFeed):
            continue
        count = sum(len(arrived.files) for arrived in stream.feed.files(-1, since))
        if count:
            files = "1 file that arrived before is" if count == 1 else f"{count} files that arrived before are"
            yield (
                f'continuous view "{view.name}" does not have all files of stream "{stream.stream.name}": '
                f"{files} left out, the last of which is no longer as it arrived"
            )


def leave_history(core: Core, stream: Stream) -> None:
    """The views of a stream do without its history from now on. Raises 55006 where one still lacks rows of before its
    creation."""
    for runtime in core.views_on(stream.oid) if stream.keeps_rows else ():
        is_here, upto = runtime.error is None and runtime.away is None, runtime.view.created_lsn
        for progress in runtime.paths if is_here else ():
            after = progress.durable
            if stream.oid not in progress.path.inputs or after >= upto:
                continue
            rows = runtime.runner.rows(progress.path, after, upto)
            if rows or not commit(core, PathTask(runtime, progress), after, upto, {}):
                message = f'view "{runtime.view.name}" is being filled from the history of stream "{stream.name}"'
                hint = "The server fills it in the background: try again when rows_behind of millstream.views is 0."
                raise SqlError("55006", message, hint=hint)

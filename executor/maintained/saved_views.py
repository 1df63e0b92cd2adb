"""Files with the kept rows of views, which an orderly stop of the server writes and the next start reads.

    servers/<id>/kept/<oid>.arrow   the rows of one view's dataflow: Arrow's streams, one for each node
    servers/<id>/kept/saved.json    which files there are, of which LSN, and the plan that each belongs to

Owns: these files. The document is written last, and the file of the tables notes its mark, so that the server reads
no files that were put back from elsewhere. The files are a cache. A view's rows are computed anew where their file is
damaged, the view's plan is another one now, or the log has forgotten changes since the stop. After a kill the server
reads the files of the stop before. Knows nothing of how rows follow changes.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct, convert, to_builtins

from catalog.values.errors import SqlError
from executor.commit.files import disk_error, read_document, replace_file
from executor.core.core import Core
from executor.dataflow.maintained import Saved
from executor.maintained.kept_rows import RowsPlan
from executor.traces.checked import as_written, pack, unpack
from executor.traces.parquet import StoredFile, describe_file, verify_file
from planner.incremental.cost.work import Work
from planner.incremental.dataflow.rewrites.rewriting import GUARDED, REWRITINGS, Rewriting

_LOGGER: Final = logging.getLogger(__name__)
#: The form of the files, and what a plan's nodes mean.
_FORMAT: Final = 1
_DOCUMENT: Final = "saved.json"
#: The name under which the file of the tables notes the document's mark.
_NOTE: Final = "kept"


def plan_key(plan: RowsPlan) -> str:
    """A hash of what decides the meaning of a dataflow's rows: equal ones are made of the same nodes."""
    text = f"{_FORMAT} {plan.expanded.time_zone} {plan.planned.dataflow!r}"
    return hashlib.sha256(text.encode()).hexdigest()


class SavedView(Struct, frozen=True):
    """One view's rows: the ``plan``'s key, their LSN and number, the views whose kept rows they are made of, in the
    order of the file the nodes whose rows are ``kept`` and those of ``groups``, the name of the ``rewriting``, and what
    changes have taken at nodes."""

    plan: str
    lsn: int
    count: int
    sources: tuple[int, ...]
    kept: tuple[int, ...]
    groups: tuple[int, ...]
    file: StoredFile
    rewriting: str = GUARDED.name
    work: dict[int, Work] = {}

    @property
    def written(self) -> Rewriting:
        """The rewriting by which the view was planned."""
        return REWRITINGS.get(self.rewriting, GUARDED)


class ToSave(Struct, frozen=True):
    """The rows of a view, by its oid, as of an LSN, the plan that they belong to, and what changes have taken at its
    nodes."""

    view: int
    plan: RowsPlan
    lsn: int
    rows: Saved
    work: dict[int, Work]


class SavedViews:
    """Those of a database. ``save`` is called once nothing else is."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._folder = core.options.server_directory / "kept"
        self._entries: dict[int, SavedView] = {}
        try:
            self._entries = self._found()
        except SqlError as error:
            _LOGGER.warning("rows of views are computed anew: %s", error)

    def _found(self) -> dict[int, SavedView]:
        path = self._folder / _DOCUMENT
        if not path.exists():
            return {}
        _, content = unpack(read_document(path), _DOCUMENT)
        with as_written(_DOCUMENT):
            if self._core.tables.noted(_NOTE) != content["mark"]:
                return {}
            return {int(oid): convert(entry, SavedView, str_keys=True) for oid, entry in content["views"].items()}

    def find(self, oid: int) -> SavedView | None:
        """What is saved of a view."""
        return self._entries.get(oid)

    def forget(self, oid: int) -> None:
        """What is saved of a view is of no use any more: its rows are kept again, or cannot be."""
        self._entries.pop(oid, None)

    def load(self, entry: SavedView) -> Saved:
        """The rows of a view. Raises XX001."""
        path = verify_file(entry.file, self._folder)
        with as_written(path.name), pa.memory_map(str(path)) as file:
            kept, groups = ({node: _read(file) for node in nodes} for nodes in (entry.kept, entry.groups))
            return Saved(kept, groups)

    def save(self, views: Iterable[ToSave]) -> None:
        """Saves the rows of views as of an LSN, beside those of views that were not read since the start. Raises 53100,
        58030."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            entries = {item.view: self._written(item) for item in views}
            others = {oid: entry for oid, entry in self._entries.items() if self._core.find_view(oid) is not None}
            self._replace(others | entries)
        except OSError as error:
            raise disk_error(error, "save the rows of views") from error

    def _replace(self, entries: Mapping[int, SavedView]) -> None:
        """Writes the document, and removes the files that it does not name."""
        path, mark = self._folder / _DOCUMENT, secrets.token_hex(16)
        if entries or path.exists():
            content: Any = {"mark": mark, "views": {str(oid): to_builtins(entry) for oid, entry in entries.items()}}
            replace_file(path, pack(content))
            self._core.tables.note(_NOTE, mark)
        named = {_DOCUMENT, *(entry.file.name for entry in entries.values())}
        for file in self._folder.iterdir():
            if file.name not in named:
                file.unlink()

    def _written(self, item: ToSave) -> SavedView:
        plan, rows = item.plan, item.rows
        path, tables = self._folder / f"{item.view}.arrow", (*rows.kept.values(), *rows.groups.values())
        with pa.OSFile(str(path), "wb") as file:
            for table in tables:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                with pa.ipc.new_stream(file, table.schema, options=options) as stream:
                    stream.write_table(table)
        described, count = describe_file(path, self._folder), sum(table.num_rows for table in tables)
        sources, nodes = plan.expanded.sources, (tuple(rows.kept), tuple(rows.groups))
        rewriting = plan.sized.rewriting.name
        return SavedView(plan_key(plan), item.lsn, count, sources, *nodes, described, rewriting, item.work)


def _read(file: pa.NativeFile) -> pa.Table:
    with pa.ipc.open_stream(file) as stream:
        return stream.read_all()

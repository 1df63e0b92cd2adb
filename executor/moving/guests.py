"""Creates and drops guests: views of another server over replicas of its streams.

Owns: what of an artifact has another oid here (streams, enums), and that a guest begins at the LSN that
the replica of its home has reached. Where the replica is further than the artifact, the rows between the two go
into the states first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Stream, View
from catalog.roles import BOOTSTRAP
from catalog.values.errors import SqlError, duplicate_table
from executor.cluster.view_ownership import Owned
from executor.commit.records import Followed
from executor.core.core import Core
from executor.definitions import catalog_changes as recording
from executor.definitions.definition_locks import EVERY_DEFINITION
from executor.files.followed_folders import FileSource
from executor.locks.held import TransactionLocks
from executor.locks.manager import Owner
from executor.locks.modes import Mode
from executor.moving.services import MovingServices
from executor.moving.state_recovery import replay_log
from executor.moving.view_artifact import ExportedView
from executor.replicas import enums
from executor.replicas.replica import as_at_home, position_path, replicated
from executor.streams.runtime import file_format, folder_of, is_followed
from executor.tables.temporary import Temporary
from executor.traces.layout import home_of
from executor.transactions.transaction import NewView, Transaction
from executor.views.runtime import ViewRuntime
from executor.views.storage import Handover
from planner.incremental.programs.program import Program
from planner.incremental.programs.retargeting import retargeted

#: Seconds for which transactions that define something are waited for.
PATIENCE: Final = 5.0


@contextlib.contextmanager
def definition_transaction(core: Core) -> Iterator[Transaction]:
    """A transaction of the server's own that changes the catalog. Raises 55P03."""
    locks = TransactionLocks(core.tables.locks, Owner(), lambda: PATIENCE)
    transaction = Transaction(False, lambda: core.tables.begin(locks), Temporary(), locks)
    try:
        locks.take(EVERY_DEFINITION, Mode.EXCLUSIVE)
        transaction.writer()
        yield transaction
    except BaseException:
        transaction.rollback()
        raise
    finally:
        locks.release_all()


def create_guest(services: MovingServices, owned: Owned, leaving: ExportedView) -> None:
    """Makes a guest of an exported view. Raises 42P07, 3F000, 55000, 58P01 where the folder of a stream is not here,
    and what the replica raises."""
    core = services.core
    with definition_transaction(core) as transaction, contextlib.ExitStack() as stack:
        catalog = core.catalog
        for schema in {leaving.view.schema, *(stream.schema for stream in leaving.streams)}:
            if schema not in catalog.schemas:
                raise SqlError("3F000", f'schema "{schema}" does not exist')
        if catalog.at(leaving.view.schema, leaving.view.name) is not None:
            raise duplicate_table(leaving.view.name)
        for stream in filter(is_followed, leaving.streams):
            FileSource(folder_of(stream), file_format(stream), stream.name).require()
        replica = services.replicas.of(owned.home)
        if replica is not None:
            stack.enter_context(replica.lock)  # it stays where it is until the view is there
            replica.catch_up()  # also since some of its streams may be further than others
            starts = {stream.oid: leaving.at for stream in leaving.streams}
            leaving = replay_log(core, owned.home, leaving, starts, replica.position)
            transaction.parts.extend(replica.positions(leaving.at))
        columns = (*leaving.view.columns, *(column for stream in leaving.streams for column in stream.columns))
        transaction.role = _role(catalog, leaving.owners[0])
        retyped = enums.bring(transaction, catalog, owned.home, columns)
        streams = {}
        for item, owner in zip(leaving.streams, leaving.owners, strict=True):
            transaction.role = _role(catalog, owner)
            streams[item.oid] = _replica_of(core, transaction, owned.home, item, retyped)
        for there, here in streams.items():
            if replica is None or here not in replica.streams:
                transaction.parts.append(Followed(here, leaving.at))
                if there in leaving.arrived:
                    transaction.arrived[here] = leaving.arrived[there]
        view = replace(over_streams(leaving.view, streams, retyped), oid=0, created_lsn=0)
        view = replace(view, oid=recording.free_oid(core, transaction.catalog or catalog, view))
        transaction.role = _role(catalog, leaving.role)
        transaction.views.append(continued_view(view, leaving.program, streams, leaving.statics, leaving.states, owned))
        recording.add_object(transaction, transaction.catalog or catalog, view)
        services.commit(transaction)


def _role(catalog: Catalog, name: str) -> int:
    """The role of that name, or else the superuser."""
    found = catalog.roles.find(name)
    return BOOTSTRAP if found is None else found.oid


def continued_view(
    view: View,
    old: Program,
    streams: Mapping[int, int],
    statics: Mapping[str, pa.Table],
    states: Mapping[str, pa.Table],
    owned: Owned,
) -> NewView:
    """A new view that begins with the states of another program, over ``streams`` by the oids of the old ones."""
    return NewView(view, retargeted(old, streams), dict(statics), Handover(owned.name, owned.handover, states))


def _replica_of(core: Core, transaction: Transaction, home: str, stream: Stream, retyped: enums.Retyped) -> int:
    """The oid of the replica of a stream, created where there is none. Raises 42P07."""
    for runtime in core.streams.values():
        if home_of(runtime.stream) == home and as_at_home(runtime.stream).oid == stream.oid:
            return runtime.stream.oid
    catalog = transaction.catalog or core.catalog
    if catalog.at(stream.schema, stream.name) is not None:
        raise duplicate_table(stream.name)
    options = core.options
    # An earlier replica's may lie there, of a folder that was lost.
    position_path(options.storage_directory, home, stream.oid, options.server_name).unlink(missing_ok=True)
    # Its rows were let pass by their domains at home.
    columns = tuple(replace(column, domain=0) for column in retyped(stream.columns))
    found = replace(stream, oid=0, columns=columns, options=(*stream.options, *replicated(home, stream.oid)))
    found = replace(found, oid=recording.free_oid(core, catalog, found))
    recording.add_object(transaction, catalog, found)
    return found.oid


def over_streams(view: View, streams: Mapping[int, int], retyped: enums.Retyped) -> View:
    """A view's definition over other streams, by the oids of the old ones. What else the view was created from does not
    exist on this server: its program has functions, domains and composite types resolved, and the present labels of
    enums."""
    return replace(
        view,
        columns=tuple(replace(column, domain=0) for column in retyped(view.columns)),
        types=(),
        labels=(),
        kept_labels=(),
        functions=(),
        depends_on=tuple(streams.values()),
        names=tuple((schema, name, streams[oid]) for schema, name, oid in view.names if oid in streams),
        reads=tuple((streams[oid], columns) for oid, columns in view.reads if oid in streams),
        moved=tuple((streams[oid], before, now) for oid, before, now in view.moved if oid in streams),
        files_since=(),  # its states have all files up to where it continues
        program="",  # it comes with the one that it has now
    )


def drop_guest(services: MovingServices, runtime: ViewRuntime) -> None:
    """Drops a guest, and the replicas and enums that no other guest needs."""
    core, streams = services.core, runtime.program.inputs
    replica = services.replicas.get(streams[0])
    assert replica is not None
    with definition_transaction(core) as transaction:
        catalog = recording.drop_object(transaction, core.catalog, runtime.view.oid)
        for stream in streams:
            if core.views_on(stream) == [runtime]:
                catalog = recording.drop_object(transaction, catalog, stream)
        enums.forget(transaction, catalog, replica.home)
        services.commit(transaction)
    if not replica.streams:
        replica.close()

"""A view of another server becomes one of this server's: a guest, over a replica of its stream; and ceases to be one.

Owns: what of an artifact is called otherwise here (oids, traces), and that the view begins at the very LSN that the
replica has reached. Where the replica is there already, and further than the artifact, the rows between the two go into
the states first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.errors import SqlError, duplicate_table
from catalog.objects import Stream, View
from executor.commit.records import Followed
from executor.definitions import recording
from executor.moving.advancing import states_after
from executor.moving.artifact import LeavingView
from executor.moving.ownership import Owned
from executor.moving.replica import Replica, position_path, replicated
from executor.tables.temporary import Temporary
from executor.transaction import NewView, Transaction
from executor.views.storage import Handover
from planner.retargeting import retargeted

if TYPE_CHECKING:
    from executor.database import Database
    from executor.views.runtime import ViewRuntime

#: Seconds for which the table writer's lock is waited for.
PATIENCE: Final = 5.0


@contextlib.contextmanager
def _defining(database: Database) -> Iterator[Transaction]:
    """A transaction of the server's own that changes the catalog."""
    transaction = Transaction(False, lambda nowait: database.tables.begin_write(PATIENCE), Temporary())
    try:
        transaction.writer()
        yield transaction
    except BaseException:
        transaction.rollback()
        raise


def enter(database: Database, owned: Owned, leaving: LeavingView) -> None:
    """Makes a guest of a view. Raises 42P07, 3F000, 55000, and what the replica does."""
    with _defining(database) as transaction, contextlib.ExitStack() as stack:
        catalog = database.catalog
        for schema in {leaving.view.schema, leaving.stream.schema}:
            if schema not in catalog.schemas:
                raise SqlError("3F000", f'schema "{schema}" does not exist')
        if catalog.find(leaving.view.name, leaving.view.schema) is not None:
            raise duplicate_table(leaving.view.name)
        role = catalog.roles.find(leaving.role)
        transaction.role = transaction.role if role is None else role.oid
        replica = database.replicas.of(owned.home, owned.stream)
        states = dict(leaving.states)
        if replica is None:
            stream = _stream_of(owned, leaving)
            if catalog.find(stream.name, stream.schema) is not None:
                raise duplicate_table(stream.name)
            stream = replace(stream, oid=recording.free_oid(database, catalog, stream))
            recording.add_object(transaction, catalog, stream)
            transaction.parts.append(Followed(stream.oid, leaving.at))
            # An earlier replica's may lie there, of a folder that was lost.
            options = database.options
            position_path(options.storage_directory, owned.home, owned.stream, options.server_name).unlink(
                missing_ok=True
            )
        else:
            stack.enter_context(replica.lock)  # it stays where it is until the view is there
            stream = replica.stream
            states = _brought_to(database, replica, leaving)
        view = replace(over(leaving.view, leaving.stream.oid, stream.oid), oid=0, created_lsn=0)
        view = replace(view, oid=recording.free_oid(database, transaction.catalog or catalog, view))
        program = retargeted(leaving.program, {leaving.stream.oid: stream.oid}, f"v{view.oid}")
        old = leaving.program
        renamed = {new.name: states[item.name] for item, new in zip(old.states, program.states, strict=True)}
        statics = {new.name: leaving.statics[item.name] for item, new in zip(old.statics, program.statics, strict=True)}
        transaction.views.append(NewView(view, program, statics, Handover(owned.name, owned.handover, renamed)))
        recording.add_object(transaction, transaction.catalog or catalog, view)
        database.commit(transaction)


def _stream_of(owned: Owned, leaving: LeavingView) -> Stream:
    """The replica. Its rows were let pass by their domains at home."""
    columns = tuple(replace(column, domain=0) for column in leaving.stream.columns)
    return replace(
        leaving.stream, oid=0, columns=columns, options=(*leaving.stream.options, *replicated(owned.home, owned.stream))
    )


def over(view: View, stream: int, other: int) -> View:
    """A view with what it says of a stream said of another one, by their oids. What else it was created from does not
    exist where that is: its program has functions and domains as what they stand for."""
    return replace(
        view,
        columns=tuple(replace(column, domain=0) for column in view.columns),
        types=(),
        functions=(),
        depends_on=(other,),
        names=tuple((schema, name, other) for schema, name, oid in view.names if oid == stream),
        reads=tuple((other, columns) for oid, columns in view.reads if oid == stream),
        moved=tuple((other, before, now) for oid, before, now in view.moved if oid == stream),
    )


def _brought_to(database: Database, replica: Replica, leaving: LeavingView) -> dict[str, pa.Table]:
    """A view's states where a replica is, which may have to go on to where the view left."""
    if replica.position < leaving.at:
        replica.catch_up()
    rows = replica.rows_between(leaving.at, replica.position)
    return states_after(database.engine, leaving, rows)


def leave(database: Database, runtime: ViewRuntime) -> None:
    """A guest is gone, and its stream's replica where no other needs it."""
    (path,) = runtime.program.paths
    with _defining(database) as transaction:
        catalog = recording.drop_object(transaction, database.catalog, runtime.view.oid)
        is_alone = database.views_on(path.stream) == [runtime]
        replica = database.replicas.get(path.stream) if is_alone else None
        if replica is not None:
            recording.drop_object(transaction, catalog, path.stream)
        database.commit(transaction)
    if replica is not None:
        replica.close()

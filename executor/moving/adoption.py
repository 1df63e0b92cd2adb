"""Makes the streams of a server that is lost for good, and the views over them, those of this server, where writers
continue.

Owns: the steps. A repeated request continues after the last step that succeeded.

1. Every view of the home becomes a guest of this server, from its copy and the home's log.
2. The home's log is closed, and its name with it: no server writes there any more (``closed_log``).
3. The states at the log's end are written, and with the home's registry entry the ``staged`` entries with which
   another server could continue from these states and this server's log.
4. Guests and replicas become views and streams of this server, in one transaction.
5. The views' entries are replaced by the staged ones.

The first step is that of every heir. From the second on no other server inherits the views
(``cluster.succession``), since rows may arrive here after the fourth. Rows keep their places of the home, so this
server's LSNs continue above them.

If this server is lost for good as well, the server that adopts it continues. Before the third step it adopts the first
home, too, whose heir it then is; after the third step it applies the staged entries. So these are views of the server
that it adopts, whether the fourth step was reached or not: if not, that server's log has no rows of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from msgspec import to_builtins
from msgspec.structs import replace

from catalog.objects import Stream, View, qualified
from catalog.values.errors import SqlError
from executor.cluster import logs
from executor.cluster.registry import Member, Registry
from executor.cluster.view_ownership import Owned, Ownership, as_owned
from executor.core.core import Core
from executor.definitions import catalog_changes as recording
from executor.definitions.roles import set_rights
from executor.failpoints import failpoint
from executor.moving import view_artifact as artifact
from executor.moving.checkpoints import Checkpoints
from executor.moving.exported_states import role_of, states_at_one_lsn
from executor.moving.guests import continued_view, definition_transaction, over_streams
from executor.moving.services import MovingServices
from executor.moving.view_artifact import ExportedView
from executor.moving.view_import import ViewImport
from executor.moving.view_placement import staged_entry
from executor.replicas import enums
from executor.replicas.replica import arrived_in, as_own, log_of, replica_of
from executor.transactions.transaction import NewView, Transaction
from executor.views.runtime import ViewRuntime

_LOGGER = logging.getLogger(__name__)


class Adoption:
    """Takes all steps. For one thread at a time."""

    def __init__(
        self, services: MovingServices, ownership: Ownership, checkpoints: Checkpoints, importing: ViewImport
    ) -> None:
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._ownership = ownership
        self._checkpoints = checkpoints
        self._import = importing

    def adopt(self, home: str) -> int:
        """Adopts a server that is lost for good; the number of its views. A repeated request continues where the first
        one failed. Raises 42704, 55000, 55006, 58P01, and the error that prevents a view."""
        heir = self._registry.require_heir(home).heir
        return self._adopt(home) if heir in ("", self._registry.name) else self.adopt(heir)

    def _adopt(self, home: str) -> int:
        self._take_all_views(home)
        with closed_log(self._core, home):
            failpoint("home-closed")
            begun = [member for member in self._registry.all() if member.heir == home]
            for member in begun:
                self._finish(member)
            self._take_all_views(home)  # also what another server has claimed in between, which none can from now on
            with self._checkpoints.lock:
                adopt_streams(self._services, self._ownership, home)
        failpoint("streams-adopted")
        count = sum(self._apply_or_delete(owned) for owned in self._ownership.all() if owned.home == home)
        return count + sum(self._adopt(member.name) for member in begun if not member.staged)

    def unstage(self) -> None:
        """Deletes the staged entries, and their states, of streams that are not this server's: their adoption failed,
        or this server died in it."""
        for replica in self._services.replicas.all():
            if self._registry.heir(replica.home) == self._registry.name:
                before = self._registry.require(replica.home).staged
                found = [as_owned(item, str(item.get("name"))) for item in before]
                if before:
                    self._registry.stage(replica.home, ())
                for item in found:
                    artifact.delete_one(self._storage, item.name, item.handover)

    def _finish(self, adopted: Member) -> None:
        """Applies the staged entries of an adopted home, whose heir is lost for good, too."""
        if not adopted.staged:
            return
        for owned in self._ownership.all():
            if owned.home == adopted.name:
                after = staged_entry(self._core.shared, owned)
                if after is None:  # an error was its value, or it was dropped
                    self._ownership.delete(owned.name)
                else:
                    self._ownership.change(owned, after)
                    failpoint("view-finished")
                for handover in artifact.handovers(self._storage, owned.name) - (after.kept if after else set()):
                    artifact.delete_one(self._storage, owned.name, handover)

    def _take_all_views(self, home: str) -> None:
        """Makes all views of a home guests of this server. Raises what prevents that."""
        for owned in continuable_views(self._registry, self._ownership, home):
            self._claim(owned)
        require_all_taken(self._services, self._ownership, home)

    def _claim(self, owned: Owned) -> None:
        """Changes a view's entry so that this server continues it, and continues it."""
        claimed = handed_to(owned, self._registry.name)
        try:
            if claimed != owned:
                self._ownership.change(owned, claimed)
        except SqlError:
            found = self._ownership.get(owned.name)
            if found is None or found == owned:
                raise
            self._claim(found)  # another inherited it meanwhile
        else:
            failpoint("view-claimed")
            self._import.apply_entry(claimed)

    def _apply_or_delete(self, owned: Owned) -> bool:
        """Applies the entry of a view of an adopted home, or deletes it where the view is not here; whether the view is
        here."""
        is_here = any(item.shared == owned.name for item in self._core.runtimes())
        if is_here:
            self._import.apply_entry(owned)
        else:
            self._ownership.delete(owned.name)
            artifact.delete(self._storage, owned.name)
        return is_here


def continuable_views(registry: Registry, ownership: Ownership, home: str) -> list[Owned]:
    """The entries of a home's views that have states on the storage. Raises 42704, and 55000 where the server cannot be
    adopted, or not yet."""
    member = registry.require_heir(home)
    found = [owned for owned in ownership.all() if owned.home == home]
    if not found and not member.is_adopted and not any(other.heir == home for other in registry.all()):
        raise SqlError("55000", f'no view of server "{home}" has left it or is copied, and so no stream is known')
    for owned in found:
        if owned.is_suspended:
            hint = "Resume it here first, with millstream.resume()."
            raise SqlError("55000", f'view "{owned.view}" is suspended', hint=hint)
    return [owned for owned in found if _has_states(owned)]


def _has_states(owned: Owned) -> bool:
    """Whether a view has states on the storage, and no error is its value."""
    return not owned.is_at_home and owned.failure is None


def handed_to(owned: Owned, server: str) -> Owned:
    """A view's entry when a server is to continue the view."""
    if owned.owner == server:
        return owned
    giver = owned.owner if owned.taken else owned.giver
    return replace(owned, owner=server, giver=giver, taken=False, error=None)


def require_all_taken(services: MovingServices, ownership: Ownership, home: str) -> None:
    """Raises the error of a home's view that this server has not taken, and XX001 where the entry of one cannot be
    read."""
    server = services.core.registry.name
    for runtime in _guests(services, home):
        ownership.get(runtime.shared)
    for owned in ownership.all():
        if owned.home == home and _has_states(owned) and (owned.owner != server or not owned.taken):
            sqlstate, message = owned.error or ("55000", "it is being migrated")
            raise SqlError(sqlstate, f'view "{owned.view}" cannot be taken over: {message}')


def _guests(services: MovingServices, home: str) -> list[ViewRuntime]:
    replica = services.replicas.of(home)
    return [item for item in services.core.runtimes() if replica and replica_of(services.replicas, item) is replica]


@contextmanager
def closed_log(core: Core, home: str) -> Iterator[None]:
    """Closes a server's log for good, and holds its lock meanwhile: no records come to it, and no server starts with it
    or with its name. Raises 55000, 55006, 58P01."""
    log, registry = log_of(core, home), core.registry
    with logs.unused(log, home):
        registry.adopt(home)  # first, since that may be refused
        logs.close(log, registry.name)
        yield


def adopt_streams(services: MovingServices, ownership: Ownership, home: str) -> None:
    """Replaces this server's guests and replicas of a home by views and streams of its own; does nothing where there
    are none."""
    replica = services.replicas.of(home)
    if replica is None:
        return
    with definition_transaction(services.core) as transaction, replica.lock:
        replica.catch_up()
        guests = _guests(services, home)
        enums.keep(transaction, services.core.catalog, home)
        streams = {oid: _own_stream(services, transaction, oid, replica.position) for oid in replica.streams}
        services.core.sequencer.skip(replica.position)
        at = max(
            services.core.sequencer.visible, replica.position
        )  # what comes is above both, also where another goes on
        with _held(guests, at):
            found = [_own_view(services, transaction, item, streams, ownership.get(item.shared), at) for item in guests]
            services.core.registry.stage(home, [to_builtins(item) for item in found if item is not None])
            failpoint("views-staged")
            services.commit(transaction)
    replica.close()


@contextmanager
def _held(guests: Sequence[ViewRuntime], at: int) -> Iterator[None]:
    """A context in which the log keeps all records above an LSN, until the views that replace the guests do so."""
    for runtime in guests:
        runtime.location.hold(at)
    try:
        yield
    except BaseException:
        for runtime in guests:
            runtime.location.hold(None)
        raise


def _own_stream(services: MovingServices, transaction: Transaction, oid: int, at: int) -> int:
    """Creates a stream in place of a replica; the files of a followed folder that have arrived up to an LSN of the home
    are known. Its oid."""
    catalog = transaction.catalog or services.core.catalog
    rights, before = catalog.rights_of(oid), catalog.objects[oid]
    assert isinstance(before, Stream)
    catalog = recording.drop_object(transaction, catalog, oid)
    item = replace(as_own(before), oid=0, kept_since=-1)  # the rows that are kept are in the home's folder
    item = replace(item, oid=recording.free_oid(services.core, catalog, item))
    recording.add_object(transaction, catalog, item)
    set_rights(transaction, item.oid, rights)
    files = arrived_in(services.core, (before,), {oid: at}).get(oid)
    if files is not None:
        transaction.arrived[item.oid] = files
    return item.oid


def _own_view(
    services: MovingServices,
    transaction: Transaction,
    runtime: ViewRuntime,
    streams: dict[int, int],
    owned: Owned | None,
    at: int,
) -> Owned | None:
    """Creates a view in place of a guest, with its states, which are also written to the storage; the staged entry.
    None, and no view, where an error is the view's value, it was dropped, or it reads tables: these are lost with their
    home."""
    states, catalog = _states(services.core, runtime), transaction.catalog or services.core.catalog
    rights, before = catalog.rights_of(runtime.view.oid), catalog.objects[runtime.view.oid]
    assert isinstance(before, View)
    catalog = recording.drop_object(transaction, catalog, before.oid)
    if runtime.program.borrowed:
        tables = ", ".join(f'"{item.called}"' for item in runtime.program.borrowed)
        _LOGGER.warning("view %s is dropped: it reads tables of a lost server: %s", before.name, tables)
    if states is None or owned is None or runtime.program.borrowed:
        return None
    view = replace(over_streams(before, streams, lambda columns: columns), oid=0, created_lsn=0)
    view = replace(view, oid=recording.free_oid(services.core, catalog, view))
    new = continued_view(view, runtime.program, streams, runtime.runner.statics, states, owned)
    transaction.views.append(new)
    recording.add_object(transaction, catalog, view)
    set_rights(transaction, view.oid, rights)
    return _write_view(services, transaction, new, replace(owned, at=at))


def _write_view(services: MovingServices, transaction: Transaction, new: NewView, owned: Owned) -> Owned:
    """Writes the states of a view that is created here; the entry that names them."""
    catalog = transaction.catalog
    assert catalog is not None
    assert new.handover is not None
    found = (catalog.objects[oid] for oid in new.program.inputs)
    streams = tuple(item for item in found if isinstance(item, Stream))
    role, owners = role_of(catalog, new.view.oid), tuple(role_of(catalog, stream.oid) for stream in streams)
    states = new.handover.states
    arrived = {oid: files for oid, files in transaction.arrived.items() if oid in {stream.oid for stream in streams}}
    leaving = ExportedView(new.view, streams, role, owners, owned.at, new.program, states, new.statics, arrived)
    handover, server = artifact.write(services.core.shared, owned.name, leaving), services.core.registry.name
    whose = replace(owned, view=qualified(new.view), home=server, stream=streams[0].oid, owner=server, giver=server)
    return replace(whose, handover=handover, older="", taken=True, error=None, copied=True, unasked=True)


def _states(core: Core, runtime: ViewRuntime) -> Mapping[str, pa.Table] | None:
    try:
        return states_at_one_lsn(core, (runtime,))[0][0]
    except SqlError:
        if runtime.error is None:
            raise
        return None

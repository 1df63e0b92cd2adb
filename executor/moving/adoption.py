"""The streams of a server that is lost for good, and the views over them, become those of another server, where writers
continue.

Owns: the steps. A server that fails behind a step repeats it when it is asked again.

    every view of the home becomes a guest of this server, from its copy and the home's log
    the home's log is closed, and its name with it: no server writes there any more (``closed``)
    the views' states at the log's end are written, and beside the home the entries with which others could go on from
    them and this server's log                                                        (``staged``)
    guests and replicas become views and streams of this server                       (one transaction)
    the views' entries say so

The first is what heirs do. From the second on no other server inherits the views (``heirs``), since rows may come here
behind the fourth. Rows keep the places that they had at home, so this server's LSNs go on above those: what comes is
behind them.

If this server is lost for good as well, the server that adopts it continues: without the third step by adopting the
first home, too, whose heir it is then; behind it by giving the views these entries. So they are views of the server
that it adopts, whether that came to the fourth step or not: if not, no rows of theirs are in its log.
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
from executor.cluster.failpoints import failpoint
from executor.cluster.registry import Member, Registry
from executor.cluster.view_ownership import Owned, Ownership, as_owned
from executor.core.core import Core
from executor.definitions import catalog_changes as recording
from executor.definitions.roles import set_rights
from executor.moving import view_artifact as artifact
from executor.moving.checkpoints import Checkpoints
from executor.moving.entry_effects import staged
from executor.moving.exported_states import current, role_of
from executor.moving.guests import begun, defining, over
from executor.moving.services import MovingServices
from executor.moving.takeover import Taking
from executor.moving.view_artifact import LeavingView
from executor.replicas import enums
from executor.replicas.replica import arrived_in, as_own, log_of, replica_of
from executor.transactions.transaction import NewView, Transaction
from executor.views.runtime import ViewRuntime

_LOGGER = logging.getLogger(__name__)


class Adopting:
    """How a server takes all steps. For one thread at a time."""

    def __init__(
        self, services: MovingServices, ownership: Ownership, checkpoints: Checkpoints, taking: Taking
    ) -> None:
        self._services, self._core = services, services.core
        self._registry = services.core.registry
        self._storage = services.core.shared.folder
        self._ownership = ownership
        self._checkpoints = checkpoints
        self._taking = taking

    def adopt(self, home: str) -> int:
        """The streams of a server that is gone for good are this one's, with the views over them; how many views. Asked
        again it goes on where it was. Raises 42704, 55000, 55006, 58P01, and why a view cannot be taken."""
        heir = self._registry.require_heir(home).heir
        return self._adopt(home) if heir in ("", self._registry.name) else self.adopt(heir)

    def _adopt(self, home: str) -> int:
        self._gather(home)
        with closed(self._core, home):
            failpoint("home-closed")
            begun = [member for member in self._registry.all() if member.heir == home]
            for member in begun:
                self._finish(member)
            self._gather(home)  # also what another server has claimed in between, which none can from now on
            with self._checkpoints.lock:
                adopt(self._services, self._ownership, home)
        failpoint("streams-adopted")
        count = sum(self._settle_of(owned) for owned in self._ownership.all() if owned.home == home)
        return count + sum(self._adopt(member.name) for member in begun if not member.staged)

    def withdraw(self) -> None:
        """What was staged for streams that are not this server's: their adoption failed, or this server died in it."""
        for replica in self._services.replicas.all():
            if self._registry.heir(replica.home) == self._registry.name:
                before = self._registry.require(replica.home).staged
                found = [as_owned(item, str(item.get("name"))) for item in before]
                if before:
                    self._registry.stage(replica.home, ())
                for item in found:
                    artifact.delete_one(self._storage, item.name, item.handover)

    def _finish(self, adopted: Member) -> None:
        """The views of a home are the heir's, which had begun to adopt it and is gone for good, too."""
        if not adopted.staged:
            return
        for owned in self._ownership.all():
            if owned.home == adopted.name:
                after = staged(self._core.shared, owned)
                if after is None:  # an error was its value, or it was dropped
                    self._ownership.delete(owned.name)
                else:
                    self._ownership.change(owned, after)
                    failpoint("view-finished")
                for handover in artifact.handovers(self._storage, owned.name) - (after.kept if after else set()):
                    artifact.delete_one(self._storage, owned.name, handover)

    def _gather(self, home: str) -> None:
        """All views of a server are here. Raises what prevents that."""
        for owned in wanted(self._registry, self._ownership, home):
            self._claim(owned)
        require_taken(self._services, self._ownership, home)

    def _claim(self, owned: Owned) -> None:
        """Claims a view for this server, whichever server has it."""
        claimed = given(owned, self._registry.name)
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
            self._taking.settle(claimed)

    def _settle_of(self, owned: Owned) -> bool:
        """A view of a home that was adopted is here, or nowhere; whether it is here."""
        is_here = any(item.shared == owned.name for item in self._core.runtimes())
        if is_here:
            self._taking.settle(owned)
        else:
            self._ownership.delete(owned.name)
            artifact.delete(self._storage, owned.name)
        return is_here


def wanted(registry: Registry, ownership: Ownership, home: str) -> list[Owned]:
    """The views that can be continued. Raises 42704, and 55000 where the server cannot be adopted, or not yet."""
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
    """Whether there are any on the storage, and no error is the view's value."""
    return not owned.is_at_home and owned.failure is None


def given(owned: Owned, server: str) -> Owned:
    """A view's entry when a server is to go on with it."""
    if owned.owner == server:
        return owned
    giver = owned.owner if owned.taken else owned.giver
    return replace(owned, owner=server, giver=giver, taken=False, error=None)


def require_taken(services: MovingServices, ownership: Ownership, home: str) -> None:
    """All views of a home are this server's. Raises why one is not, and XX001 where the owner of one is unknown."""
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
def closed(core: Core, home: str) -> Iterator[None]:
    """Closes a server's log: no rows come to it any more, and no server starts with it or by its name. Raises 55000,
    55006, 58P01."""
    log, registry = log_of(core, home), core.registry
    with logs.unused(log, home):
        registry.adopt(home)  # first, since that may be refused
        logs.close(log, registry.name)
        yield


def adopt(services: MovingServices, ownership: Ownership, home: str) -> None:
    """This server's guests and replicas of a home are its own from now on. Where none are here they are already."""
    replica = services.replicas.of(home)
    if replica is None:
        return
    with defining(services.core) as transaction, replica.lock:
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
    """A context in which the log keeps what is above an LSN, until the views that replace the guests do so."""
    for runtime in guests:
        runtime.location.hold(at)
    try:
        yield
    except BaseException:
        for runtime in guests:
            runtime.location.hold(None)
        raise


def _own_stream(services: MovingServices, transaction: Transaction, oid: int, at: int) -> int:
    """A stream in place of a replica, which others may write, or whose folder this server follows from now on: what has
    arrived there up to an LSN of the home is known. Its oid."""
    catalog = transaction.catalog or services.core.catalog
    rights, before = catalog.rights_of(oid), catalog.objects[oid]
    assert isinstance(before, Stream)
    catalog = recording.drop_object(transaction, catalog, oid)
    item = replace(as_own(before), oid=0)
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
    """A view in place of a guest, with what that has, which is on the storage, too; its entry then. None where an error
    is its value, it was dropped, or it reads tables, which are gone with their home."""
    states, catalog = _states(services.core, runtime), transaction.catalog or services.core.catalog
    rights, before = catalog.rights_of(runtime.view.oid), catalog.objects[runtime.view.oid]
    assert isinstance(before, View)
    catalog = recording.drop_object(transaction, catalog, before.oid)
    if runtime.program.borrowed:
        tables = ", ".join(f'"{item.called}"' for item in runtime.program.borrowed)
        _LOGGER.warning("view %s is dropped: it reads tables of a lost server: %s", before.name, tables)
    if states is None or owned is None or runtime.program.borrowed:
        return None
    view = replace(over(before, streams, lambda columns: columns), oid=0, created_lsn=0)
    view = replace(view, oid=recording.free_oid(services.core, catalog, view))
    new = begun(view, runtime.program, streams, runtime.runner.statics, states, owned)
    transaction.views.append(new)
    recording.add_object(transaction, catalog, view)
    set_rights(transaction, view.oid, rights)
    return _left(services, transaction, new, replace(owned, at=at))


def _left(services: MovingServices, transaction: Transaction, new: NewView, owned: Owned) -> Owned:
    """Writes what a view that is new here has; the entry that names that."""
    catalog = transaction.catalog
    assert catalog is not None
    assert new.handover is not None
    found = (catalog.objects[oid] for oid in new.program.inputs)
    streams = tuple(item for item in found if isinstance(item, Stream))
    role, owners = role_of(catalog, new.view.oid), tuple(role_of(catalog, stream.oid) for stream in streams)
    states = new.handover.states
    arrived = {oid: files for oid, files in transaction.arrived.items() if oid in {stream.oid for stream in streams}}
    leaving = LeavingView(new.view, streams, role, owners, owned.at, new.program, states, new.statics, arrived)
    handover, server = artifact.write(services.core.shared, owned.name, leaving), services.core.registry.name
    whose = replace(owned, view=qualified(new.view), home=server, stream=streams[0].oid, owner=server, giver=server)
    return replace(whose, handover=handover, older="", taken=True, error=None, copied=True, unasked=True)


def _states(core: Core, runtime: ViewRuntime) -> Mapping[str, pa.Table] | None:
    try:
        return current(core, (runtime,))[0]
    except SqlError:
        if runtime.error is None:
            raise
        return None

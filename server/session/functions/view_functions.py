"""millstream.suspend('view'), plan_svg('view') and their kin: what a session asks of a continuous view by its name.

Owns: which view a name means, by the search path as everywhere, and the privileges needed; numbers and ids, which are
sessions' and queries', are handed on (``signals``). A suspended view can be named on any server of its storage, also
where no relation is called so. Called in a session's worker thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import View
from catalog.values.errors import SqlError
from catalog.values.identifiers import split_name
from executor.cluster.view_ownership import Owned
from executor.moving import view_artifact as artifact
from executor.separation.query_artifact import is_query_id
from executor.sql.explained_views import running_view
from planner.algebra.nodes import Value
from planner.bind.lookup.relations import find_named
from planner.explain import plan_picture
from server.session.functions import signals
from server.session.identity import is_superuser

if TYPE_CHECKING:
    from server.session.session import Session


def suspend(session: Session, name: Value) -> str | None:
    """Suspends a view, whose state stays on the storage: its name. A number is a session's, and an id a query's."""
    if is_query_id(str(name)):
        return signals.leave_by_id(session, str(name), "suspend")
    if name is None or str(name).isdecimal():
        return signals.suspend(session, _number(name))
    return session.db.database.view_migration.suspend(_own_view(session, str(name)))


def checkpoint(session: Session, name: Value) -> str | None:
    """Copies of a view's states are on the storage from now on: its name. A number is a session's, an id a query's."""
    if is_query_id(str(name)):
        return signals.leave_by_id(session, str(name), "checkpoint")
    if name is None or str(name).isdecimal():
        return signals.checkpoint(session, _number(name))
    return session.db.database.view_migration.checkpoint(_own_view(session, str(name)))


def migrate(session: Session, name: Value, server: Value) -> str | None:
    """Another server maintains a view from now on: its name. A number is a session's, and an id a query's."""
    if name is None or server is None:
        return None
    if is_query_id(str(name)):
        return signals.leave_by_id(session, str(name), "migrate", str(server))
    if str(name).isdecimal():
        return signals.migrate(session, _number(name), server)
    view = _own_view(session, str(name))
    return session.db.database.view_migration.migrate(view, str(server), session.work.is_cancelled)


def resume(session: Session, name: Value) -> str | None:
    """This server goes on with a suspended view: its name."""
    if name is None:
        return None
    schema, relation = split_name(str(name))
    if find_named(session.surroundings.context(), relation, schema) is None:
        owned = _left_by_others(session, schema, relation)
    else:
        view = _own_view(session, str(name))
        shared = session.db.database.core.view(view.oid).shared
        owned = next((item for item in session.db.database.view_migration.suspended() if item.name == shared), None)
        if owned is None:
            raise SqlError("55000", f'view "{relation}" is not suspended')
    if owned is None:
        error = session.db.catalog.missing(relation, schema)
        if is_query_id(str(name)):
            error.hint = f"SELECT * FROM millstream.resume('{name}') gives the rows of a query that has left."
        raise error
    session.db.database.view_migration.resume(owned, session.work.is_cancelled)
    return owned.view


def plan_svg(session: Session, name: Value) -> str | None:
    """How a view is maintained, as a picture."""
    if name is None:
        return None
    database = session.db.database
    return plan_picture.plan_svg(running_view(database, database.core.view(_own_view(session, str(name)).oid), False))


def forget(session: Session, name: Value) -> bool | None:
    """Deletes a separated query, or the copies of a view, which are made no longer; whether there was any."""
    if name is None or is_query_id(str(name)):
        return signals.forget(session, name)
    return session.db.database.view_migration.forget(_own_view(session, str(name)))


def _number(text: Value) -> int | None:
    return None if text is None else int(str(text))


def _own_view(session: Session, name: str) -> View:
    """A continuous view that belongs to the session's role. Raises 3F000, 42501, 42602, 42809, 42P01."""
    schema, relation = split_name(name)
    catalog = session.db.catalog
    view = find_named(session.surroundings.context(), relation, schema)
    if view is None:
        raise catalog.missing(relation, schema)
    if not isinstance(view, View) or not view.continuous:
        raise SqlError("42809", f'"{relation}" is not a continuous view')
    own = catalog.roles.find(session.user)
    if own is None or not catalog.roles.has_role(own.oid, catalog.rights_of(view.oid).owner):
        raise SqlError("42501", f"must be owner of view {relation}")
    return view


def _left_by_others(session: Session, schema: str | None, relation: str) -> Owned | None:
    """The suspended view of another server that a name means. Raises 42501, 42P09 where several are called so."""
    path = session.path if schema is None else (schema,)
    found = []
    for owned in session.db.database.view_migration.suspended():
        about = _about(session, owned)
        if about is not None and about.name == relation and about.schema in path:
            found.append((path.index(about.schema), owned, about))
    first = min((place for place, _, _ in found), default=0)
    meant = [(owned, about) for place, owned, about in found if place == first]
    if not meant:
        return None
    if len(meant) > 1:
        homes = " and ".join(sorted(owned.home for owned, _ in meant))
        raise SqlError(
            "42P09", f'suspended view "{relation}" is ambiguous', hint=f"It can be resumed on its home server: {homes}."
        )
    ((owned, about),) = meant
    if not is_superuser(session) and not _has_role(session.db.catalog, session.user, about.role):
        raise SqlError("42501", f"must be owner of view {relation}")
    return owned


def _about(session: Session, owned: Owned) -> artifact.About | None:
    """The name of a suspended view; None if it is unknown, since its state and the one before are damaged."""
    for handover in (owned.handover, owned.older):
        try:
            return artifact.read_about(session.db.database.core.shared.folder, replace(owned, handover=handover))
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
    return None


def _has_role(catalog: Catalog, user: str, role: str) -> bool:
    own, owner = catalog.roles.find(user), catalog.roles.find(role)
    return own is not None and owner is not None and catalog.roles.has_role(own.oid, owner.oid)

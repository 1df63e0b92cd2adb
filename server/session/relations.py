"""Relations that one session, or the server process, has for itself: pg_settings, pg_stat_activity and the like.

Owns: their rows, by the relation's name. Called in a worker thread while the session waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from catalog.privileges import DATABASE
from catalog.roles import READ_ALL_STATS
from catalog.system.declarations import named
from catalog.system.own_objects import DATABASE_NAME
from catalog.system.relations.time_zones import abbreviation_rows, zone_rows
from catalog.system.rows import Own, Row
from catalog.system.stored import stored
from executor.database.system_relations import system_rows
from executor.separation.running_queries import RunningQuery
from server.operations.config import ConfigError
from server.session.identity import may_examine
from server.session.lock_relations import awaited, lock_rows, sessions, wait_rows
from server.settings.parameter_types import Parameter
from server.settings.parameters import PARAMETERS

if TYPE_CHECKING:
    from server.session.session import Session


def _progress(query: RunningQuery | None) -> Row:
    """How far a query is, in the columns behind PostgreSQL's own; NULL where it does not run pipeline by pipeline."""
    return {
        "query_pipelines": None if query is None else len(query.names),
        "query_finished": None if query is None else query.finished,
        "query_progress": None if query is None else query.progress,
        "query_rows": None if query is None else query.rows,
        "query_bytes": None if query is None else query.size,
        "query_seconds_left": None if query is None else query.seconds_left,
    }


#: Contexts that pg_settings calls by another name.
_CONTEXTS: Final[Mapping[str, str]] = {"server": "postmaster"}
#: What sessions of other roles look like without the privilege to see them.
_HIDDEN: Final[Row] = {
    "query": "<insufficient privilege>",
    **dict.fromkeys(("client_addr", "client_port", "backend_start", "xact_start", "query_start", "state"), None),
    **dict.fromkeys(("wait_event_type", "wait_event"), None),
    **_progress(None),
}
_STATES: Final[Mapping[str, str]] = {
    "I": "idle",
    "T": "idle in transaction",
    "E": "idle in transaction (aborted)",
}


def own_relations(session: Session) -> Own:
    """What a session reads of itself."""
    return {
        "pg_settings": lambda: _settings(session),
        "shown_settings": lambda: _shown_settings(session),
        "pg_prepared_statements": lambda: _prepared(session),
        "pg_cursors": lambda: _cursors(session),
        "pg_stat_activity": lambda: _activity(session),
        "pg_locks": lambda: lock_rows(session),
        "lock_waits": lambda: wait_rows(session),
        "millstream.queries": lambda: _queries(session),
        "pg_stat_bgwriter": lambda: (_nothing_written(session, "pg_stat_bgwriter"),),
        "pg_stat_archiver": lambda: (_nothing_written(session, "pg_stat_archiver"),),
        "pg_stat_database": lambda: _database(session),
        "pg_stat_ssl": lambda: _encryption(session),
        "pg_hba_file_rules": lambda: _rules(session),
        "pg_timezone_names": zone_rows,
        "pg_timezone_abbrevs": abbreviation_rows,
        "listening_channels": lambda: ({"channel": name} for name in sorted(session.listening.channels)),
        "own_connection": lambda: ({"server_addr": session.connection.own_address},),
        "notification_queue": lambda: ({"usage": session.server.channels.usage()},),
    }


def _shown_settings(session: Session) -> Iterator[Row]:
    """What current_setting() gives of each parameter that the role may examine, by its name in small letters."""
    for name, value, _ in session.settings.show_all():
        if may_examine(session, name):
            yield {"name": name.lower(), "value": value}
    for name, value in session.settings.customized():
        yield {"name": name, "value": value}


def _settings(session: Session) -> Iterator[Row]:
    """PostgreSQL's list, with our values where they mean something, and what only we have."""
    left = dict(PARAMETERS)
    for row in stored("pg_settings", named("pg_settings").columns).to_pylist():
        parameter = left.pop(str(row["name"]).lower(), None)
        if not may_examine(session, str(row["name"])):
            continue
        yield row if parameter is None else {**row, **_value(session, parameter)}
    for parameter in left.values():
        if not may_examine(session, parameter.name):
            continue
        yield {
            "name": parameter.name,
            "category": "Millstream",
            "vartype": "string",
            "pending_restart": False,
            **_value(session, parameter),
        }


def _value(session: Session, parameter: Parameter) -> Row:
    value, default = session.settings.value(parameter.name), session.settings.default(parameter.name)
    return {
        "setting": value,
        "unit": parameter.unit or None,
        "short_desc": parameter.description,
        "context": _CONTEXTS.get(parameter.context, parameter.context),
        "source": session.server.chosen.source(parameter.name) if value == default else "session",
        "boot_val": parameter.default,
        "reset_val": default,
    }


def _prepared(session: Session) -> Iterator[Row]:
    for name, statement in session.statements.items():
        if name and statement.plan is not None:
            yield {
                "name": name,
                "statement": statement.written or statement.text,
                "parameter_types": [kind.oid for kind in statement.plan.types],
                "from_sql": bool(statement.written),
            }


def _cursors(session: Session) -> Iterator[Row]:
    for cursor in session.cursors.by_name.values():
        yield {
            "name": cursor.name,
            "statement": cursor.text,
            "is_holdable": cursor.hold,
            "is_binary": cursor.binary,
            "is_scrollable": cursor.scrolls,
            "creation_time": cursor.created,
        }
    for name, portal in session.portals.items():
        if name:
            text = "" if portal.plan is None else portal.plan.raw.text
            kinds = {"is_holdable": False, "is_binary": False, "is_scrollable": False}
            yield {"name": name, "statement": text, "creation_time": session.activity.transaction_time, **kinds}


def _activity(session: Session) -> Iterator[Row]:
    """The sessions there are."""
    queries = {query.client.process: query for query in session.db.database.separation.running.all()}
    for other in sessions(session.server.clients):
        row = {**_session_row(other), **_progress(queries.get(other.backend.process))}
        yield row if _may_see(session, other.backend.login) else {**row, **_HIDDEN}


def _queries(session: Session) -> Iterator[Row]:
    """Queries that can leave the server; the texts of others only for roles that may see them."""
    for row in system_rows(session.db.database.shown, "queries"):
        yield row if _may_see(session, str(row["role"] or "")) else {**row, "query": _HIDDEN["query"]}


def _may_see(session: Session, other: str) -> bool:
    """Whether a session's role may see what another role does."""
    roles = session.db.catalog.roles
    own, its = roles.find(session.user), roles.find(other)
    if own is None or own.superuser:
        return own is not None
    return bool(roles.groups(own.oid, inherited=True) & {READ_ALL_STATS, -1 if its is None else its.oid})


def _session_row(other: Session) -> Row:
    role = other.db.catalog.roles.find(other.backend.login)
    is_active = other.work.is_running or other.connection.is_busy  # it may wait for something without a thread
    state = "active" if is_active else _STATES[other.db.status]
    event = awaited(other)
    return {
        "datid": DATABASE,
        "datname": DATABASE_NAME,
        "pid": other.backend.process,
        "usesysid": None if role is None else role.oid,
        "usename": other.backend.login,
        "application_name": other.settings.value("application_name"),
        "client_addr": other.connection.peer[0],
        "client_port": other.connection.peer[1],
        "backend_start": other.backend.started,
        "xact_start": None if state == "idle" else other.activity.transaction_time,
        "query_start": other.activity.statement_time,
        "state": state,
        "wait_event_type": None if event is None else "Lock",
        "wait_event": event,
        "query": other.activity.query,
        "backend_type": "client backend",
    }


def _database(session: Session) -> Iterator[Row]:
    """pg_stat_database: what is not counted is NULL."""
    counts = session.db.database.core.tables.counts.copy().values()
    yield {
        "datid": DATABASE,
        "datname": DATABASE_NAME,
        "numbackends": sum(1 for _ in _activity(session)),
        "tup_inserted": sum(item.inserted for item in counts),
        "tup_updated": sum(item.updated for item in counts),
        "tup_deleted": sum(item.deleted for item in counts),
        "conflicts": 0,
        "deadlocks": 0,
        "checksum_failures": 0,
        "stats_reset": session.server.started,
    }


def _nothing_written(session: Session, name: str) -> Row:
    """The counts of a process that there is none of."""
    counts = {item.name: 0 for item in named(name).columns if item.type.name in ("int8", "float8")}
    return {**counts, "stats_reset": session.server.started}


def _encryption(session: Session) -> Iterator[Row]:
    """The connections with TLS."""
    for other in sessions(session.server.clients):
        tunnel = other.connection.tunnel
        if tunnel is None:
            yield {"pid": other.backend.process, "ssl": False}
            continue
        cipher, bits = tunnel.cipher
        name = f"/CN={tunnel.common_name}" if tunnel.has_certificate else None
        spoken = {"version": tunnel.version, "cipher": cipher, "bits": bits, "client_dn": name}
        yield {"pid": other.backend.process, "ssl": True, **spoken}


def _rules(session: Session) -> Iterator[Row]:
    """The table of hosts as its file says it now, whether or not that is in force."""
    try:
        table = session.server.access.read()
    except ConfigError as error:
        yield {"line_number": 0, "error": str(error)}
        return
    for rule in table.rules:
        yield {
            "line_number": rule.line,
            "type": rule.kind,
            "database": [word.text for word in rule.databases],
            "user_name": [word.text for word in rule.users],
            "address": rule.address or None,
            "netmask": rule.mask or None,
            "auth_method": rule.method,
            "options": list(rule.options) or None,
        }
    for mistake in table.mistakes:
        yield {"line_number": mistake.line, "error": mistake.message}

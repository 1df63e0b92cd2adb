"""Relations that one session, or the server process, has for itself: pg_settings, pg_stat_activity and the like.

Owns: their rows, by the relation's name. Called in a worker thread while the session waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from catalog.postgres import rows
from catalog.system.naming import DATABASE, DATABASE_NAME, ROLE, ROLE_NAME
from catalog.system.relations import named
from catalog.system.rows import Own, Row
from catalog.system.stored import stored
from server.parameters import PARAMETERS, Parameter

if TYPE_CHECKING:
    from server.session import Session

_CONTEXTS: Final[Mapping[str, str]] = {"user": "user", "internal": "internal", "server": "postmaster"}
_STATES: Final[Mapping[str, str]] = {
    "I": "idle",
    "T": "idle in transaction",
    "E": "idle in transaction (aborted)",
}


def own_relations(session: Session) -> Own:
    """What a session reads of itself."""
    return {
        "pg_settings": lambda: _settings(session),
        "shown_settings": lambda: ({"name": name.lower(), "value": value} for name, value, _ in _shown(session)),
        "pg_prepared_statements": lambda: _prepared(session),
        "pg_cursors": lambda: _cursors(session),
        "pg_stat_activity": lambda: _activity(session),
        "pg_stat_ssl": lambda: ({"pid": row["pid"], "ssl": False} for row in _activity(session)),
        "pg_timezone_names": _zones,
    }


def _shown(session: Session) -> Iterator[tuple[str, str, str]]:
    yield from session.settings.show_all()
    for row in rows("pg_settings"):
        if str(row["name"]).lower() not in PARAMETERS:
            yield str(row["name"]), str(row["setting"] or ""), ""


def _settings(session: Session) -> Iterator[Row]:
    """PostgreSQL's list, with our values where they mean something, and what only we have."""
    left = dict(PARAMETERS)
    for row in stored("pg_settings", named("pg_settings").columns).to_pylist():
        parameter = left.pop(str(row["name"]).lower(), None)
        yield row if parameter is None else {**row, **_value(session, parameter)}
    for parameter in left.values():
        yield {
            "name": parameter.name,
            "category": "Millstream",
            "vartype": "string",
            "pending_restart": False,
            **_value(session, parameter),
        }


def _value(session: Session, parameter: Parameter) -> Row:
    value = session.settings.value(parameter.name)
    return {
        "setting": value,
        "unit": parameter.unit or None,
        "short_desc": parameter.description,
        "context": _CONTEXTS[parameter.context],
        "source": "default" if value == parameter.default else "session",
        "boot_val": parameter.default,
        "reset_val": parameter.default,
    }


def _prepared(session: Session) -> Iterator[Row]:
    for name, statement in session.statements.items():
        if name and statement.plan is not None:
            yield {
                "name": name,
                "statement": statement.text,
                "parameter_types": [kind.oid for kind in statement.plan.types],
                "from_sql": False,
            }


def _cursors(session: Session) -> Iterator[Row]:
    for name in session.portals:
        yield {"name": name, "statement": "", "is_holdable": False, "is_binary": False, "is_scrollable": False}


def _activity(session: Session) -> Iterator[Row]:
    """The sessions there are."""
    for connection in tuple(session.server.connections):
        other: Any = connection.handler
        if hasattr(other, "backend"):  # it has started
            yield _session_row(other)


def _session_row(other: Session) -> Row:
    state = "active" if other.is_working else _STATES[other.db.status]
    return {
        "datid": DATABASE,
        "datname": DATABASE_NAME,
        "pid": other.backend.process,
        "usesysid": ROLE,
        "usename": ROLE_NAME,
        "application_name": other.settings.value("application_name"),
        "client_port": -1,
        "xact_start": None if state == "idle" else other.transaction_time,
        "query_start": other.transaction_time,
        "state": state,
        "query": "",
        "backend_type": "client backend",
    }


def _zones() -> Iterator[Row]:
    import zoneinfo

    for name in sorted(zoneinfo.available_timezones()):
        yield {"name": name, "is_dst": False}

"""The run-time parameters that a client may SHOW and SET: PostgreSQL's names, defaults and checks.

Owns: the one table of parameters: those that mean something here or have another default, beside all others that
PostgreSQL has (``server.settings.ignored_parameters``). Knows nothing of sessions or transactions
(``server.settings.settings``); how values are read is ``server.settings.parameter_types``. A value that PostgreSQL
would take but that would not do what it says is refused with 0A000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from protocol.values.styles import ISO_8601, SQL_STANDARD, VERBOSE
from server.operations.config import Config, stored_text
from server.settings.date_styles import DEFAULT as USUAL_DATES
from server.settings.date_styles import changed, date_style
from server.settings.ignored_parameters import INT_MAX, accepted, without_effect
from server.settings.parameter_types import (
    Parameter,
    always,
    ascii_text,
    boolean,
    encoding,
    name_list,
    number,
    one_of,
    only,
    text,
    time_zone,
)

SERVER_VERSION: Final = "15.12"
SERVER_VERSION_NUM: Final = "150012"

_LEVELS: Final = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
_HIDDEN: Final = {"debug": "debug2", "info": "info"}
#: Locales in which amounts and numbers look as in C; '' is the server's.
_LIKE_C: Final = ("C", "POSIX", "", "C.UTF-8", "C.utf8", "en_US", "en_US.UTF-8", "en_US.utf8")
_ISOLATION: Final = one_of("read committed", "read uncommitted", "repeatable read", "serializable")


def _milliseconds(name: str, default: str, description: str) -> Parameter:
    return Parameter(name, default, number(0, INT_MAX, "ms"), description, unit="ms")


def _fixed(name: str, value: str, description: str, reported: bool = False) -> Parameter:
    return Parameter(name, value, text, description, "internal", reported)


def _table(*items: Parameter) -> dict[str, Parameter]:
    return {item.name.lower(): item for item in items}


def _configured() -> Iterator[Parameter]:
    """What only an operator sets (``server.operations.config``), for SHOW."""
    for item in fields(Config):
        unit = "B" if item.metadata["size"] else "ms" if isinstance(item.default, float) else ""
        yield Parameter(item.name, stored_text(item.default), text, item.metadata["doc"], "server", unit=unit)


PARAMETERS: Final[dict[str, Parameter]] = _table(
    *accepted(),  # what means something here is below, and counts
    *_configured(),  # what a session may set as well is below, and counts
    Parameter("application_name", "", ascii_text, "The client's name.", reported=True),
    Parameter("client_encoding", "UTF8", encoding, "The client's character set.", reported=True),
    Parameter("DateStyle", USUAL_DATES, date_style, "Output style and input order of dates.", reported=True,
              onto=changed),
    Parameter("IntervalStyle", "postgres", one_of("postgres", ISO_8601, VERBOSE, SQL_STANDARD),
              "Output style of intervals, and how their signs are read.", reported=True),
    Parameter("TimeZone", "UTC", time_zone, "The zone in which timestamps with time zone are shown.", reported=True),
    Parameter("default_transaction_read_only", "off", boolean, "Whether new transactions only read.", reported=True),
    Parameter("standard_conforming_strings", "on", boolean, "Whether '...' takes backslashes literally.",
              reported=True),
    Parameter("escape_string_warning", "on", boolean, "Whether backslash escapes in '...' cause a warning."),
    _fixed("in_hot_standby", "off", "Whether the server is a standby.", True),
    _fixed("integer_datetimes", "on", "Whether timestamps are integers.", True),
    _fixed("is_superuser", "off", "Whether the user is a superuser.", True),
    _fixed("server_encoding", "UTF8", "The server's character set.", True),
    _fixed("server_version", SERVER_VERSION, "The PostgreSQL version that the server is compatible with.", True),
    Parameter("session_authorization", "millstream", text, "The session's user.", reported=True),
    _fixed("server_version_num", SERVER_VERSION_NUM, "server_version as a number."),
    _fixed("block_size", "8192", "Size of a disk block."),
    _fixed("data_checksums", "on", "Whether stored data has checksums."),
    _fixed("max_identifier_length", "63", "Longest identifier."),
    _fixed("max_index_keys", "32", "Most columns of a key."),
    _fixed("lc_collate", "C", "Collation order."),
    _fixed("lc_ctype", "C.UTF-8", "Character classes."),
    Parameter("port", "5433", text, "The port on which the server listens.", "server"),
    Parameter("listen_addresses", "127.0.0.1", text, "The addresses on which the server listens.", "server"),
    Parameter("data_directory", "", text, "The folder of all durable data.", "server"),
    Parameter("config_file", "", text, "The file of settings that was read.", "server"),
    Parameter("ssl", "off", text, "Whether the server accepts TLS.", "server"),
    Parameter("fsync", "on", text, "Whether the log is forced to disk.", "server"),
    Parameter("wal_level", "replica", text, "Level of the log.", "server"),
    Parameter("search_path", '"$user", public', name_list, "Schemas in which unqualified names are looked up."),
    Parameter("role", "none", text, "The current role."),
    Parameter("transaction_isolation", "read committed", _ISOLATION, "Isolation of the transaction."),
    Parameter("default_transaction_isolation", "read committed", _ISOLATION, "Isolation of new transactions."),
    Parameter("transaction_read_only", "off", boolean, "Whether the transaction only reads."),
    Parameter("transaction_deferrable", "off", boolean, "Whether the transaction is deferrable."),
    Parameter("default_transaction_deferrable", "off", boolean, "Whether new transactions are deferrable."),
    _milliseconds("stream_timeout", "5000", "Time without new rows after which a query of a stream ends; 0 is never."),
    _milliseconds("stream_progress", "5000", "Time between the notices of a stream's query; 0 means there are none."),
    _milliseconds("statement_timeout", "0", "Longest time of a statement; 0 is none."),
    _milliseconds("lock_timeout", "0", "Longest wait for a lock; 0 is none."),
    Parameter("synchronous_commit", "on", one_of("on", "off", "local", "remote_write", "remote_apply"),
              "Whether a commit waits for the disk."),
    Parameter("log_statement", "none", one_of("none", "ddl", "mod", "all"), "Statements that are logged.",
              "superuser"),
    Parameter("maintenance_engine", "auto", one_of("auto", "spark", "embedded"),
              "The engine that maintains continuous views."),
    Parameter("query_engine", "auto", one_of("auto", "spark", "embedded"), "The engine that runs queries."),
    Parameter("separable", "auto", one_of("auto", "on", "off"),
              "Whether queries run pipeline by pipeline, so that they can leave the server."),
    _milliseconds("checkpoint_interval", "0", "Time between copies of a separable query's state; 0 is none."),
    Parameter("client_min_messages", "notice", one_of(*_LEVELS, hidden=_HIDDEN),
              "Least level of notices that are sent."),
    Parameter("bytea_output", "hex", one_of("escape", "hex"), "Output form of bytea."),
    Parameter("extra_float_digits", "1", number(-15, 3), "Digits of floats in text; from 1 on the fewest exact ones."),
    _milliseconds("idle_in_transaction_session_timeout", "0", "Longest idle time in a transaction; 0 is none."),
    _milliseconds("idle_session_timeout", "0", "Longest idle time; 0 is none."),
    Parameter("check_function_bodies", "on", boolean, "Whether the body of a function is checked when it is created."),
    without_effect("jit", "off", boolean),
    without_effect("lc_messages", "C", text),
    without_effect("max_stack_depth", "2048", number(100, INT_MAX, "kB"), "kB"),
    without_effect("password_encryption", "scram-sha-256", one_of("scram-sha-256", refused=("md5",))),
    without_effect("restrict_nonsystem_relation_kind", "", name_list),
    without_effect("timezone_abbreviations", "Default", only("Default")),
    without_effect("backslash_quote", "safe_encoding", only("safe_encoding", "on")),
    without_effect("xmloption", "content", one_of("content", refused=("document",))),
    *(without_effect(name, "C", only(*_LIKE_C)) for name in ("lc_monetary", "lc_numeric")),
    *(without_effect(name, "off", always("off")) for name in ("exit_on_error", "transform_null_equals")),
    *(without_effect(name, "off", always("off")) for name in ("lo_compat_privileges", "quote_all_identifiers")),
    without_effect("allow_system_table_mods", "off", always("off"), context="superuser"),
    without_effect("array_nulls", "on", always("on")),
)  # fmt: skip

#: In the order in which PostgreSQL sends them at the start of a session.
REPORTED: Final = tuple(sorted((item.name for item in PARAMETERS.values() if item.reported), key=str.lower))

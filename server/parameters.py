"""The run-time parameters that a client may SHOW and SET: PostgreSQL's names, defaults and checks.

Owns: the one table of parameters and the reading of a value for each kind, as guc.c does. Knows nothing of sessions or
transactions (``server.settings``). A parameter is here when clients ask for it or when it means something to us;
a value that PostgreSQL would take but that would not do what it says is refused with 0A000.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Final, Literal

from catalog.errors import SqlError, unsupported
from catalog.names import split_list
from protocol.values.styles import ISO_8601, VERBOSE
from server.config import Config, stored_text

SERVER_VERSION: Final = "15.12"
SERVER_VERSION_NUM: Final = "150012"

#: Turns a client's text into the stored text; gets the parameter's name for its messages.
Reader = Callable[[str, str], str]
Context = Literal["user", "internal", "server"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``reported`` ones go out as ParameterStatus; ``unit`` is '', or a number's 'ms', 'kB' or 'B'."""

    name: str
    default: str
    read: Reader
    description: str
    context: Context = "user"
    reported: bool = False
    unit: str = ""


def _invalid(name: str, value: str, hint: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)


def text(name: str, value: str) -> str:
    """Any text."""
    return value


def boolean(name: str, value: str) -> str:
    """Any unique prefix of on, off, true, false, yes, no, 1, 0."""
    lowered = value.strip().lower()
    if lowered in ("on", "1") or (lowered and any(word.startswith(lowered) for word in ("true", "yes"))):
        return "on"
    if lowered in ("of", "off", "0") or (lowered and any(word.startswith(lowered) for word in ("false", "no"))):
        return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def one_of(*words: str, refused: tuple[str, ...] = ()) -> Reader:
    """One of these words; ``refused`` ones are PostgreSQL's, but not ours (0A000)."""

    def read(name: str, value: str) -> str:
        lowered = value.strip().lower()
        if lowered in refused:
            raise unsupported(f"{name} = {lowered}", f"Available values: {', '.join(words)}.")
        if lowered not in words:
            raise _invalid(name, value, f"Available values: {', '.join(words)}.")
        return lowered

    return read


_MILLISECONDS: Final[dict[str, float]] = {
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_KILOBYTES: Final[dict[str, float]] = {"B": 1 / 1024, "kB": 1, "MB": 1 << 10, "GB": 1 << 20, "TB": 1 << 30}
_BYTES: Final[dict[str, float]] = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_UNITS: Final[dict[str, dict[str, float]]] = {"": {}, "ms": _MILLISECONDS, "kB": _KILOBYTES, "B": _BYTES}
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*)\s*")


def number(least: float, greatest: float, unit: str = "", whole: bool = True) -> Reader:
    """A number within bounds, with an optional unit that is converted to the parameter's own."""

    def read(name: str, value: str) -> str:
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise _invalid(name, value)
        factor = 1.0
        if match[2]:
            units = _UNITS[unit]
            if match[2] not in units:
                hint = f"Valid units for this parameter are {', '.join(map(repr, units))}." if units else None
                raise _invalid(name, value, hint)
            factor = units[match[2]]
        result = float(match[1]) * factor
        if not least <= result <= greatest:
            suffix = f" {unit}" if unit else ""
            bounds = f"({least:.15g}{suffix} .. {greatest:.15g}{suffix})"
            message = f'{result:.15g}{suffix} is outside the valid range for parameter "{name}" {bounds}'
            raise SqlError("22023", message)
        return str(round(result)) if whole else f"{result:.15g}"

    return read


@cache
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}


def time_zone(name: str, value: str) -> str:
    """A name of the IANA database in any case, or whole hours, which go by the name that they have there."""
    if re.fullmatch(r"\s*[+-]?[\d.:]+\s*|<.*>.*", value):
        return _zone_at(value)
    lowered = value.strip().lower()
    if lowered in ("utc", "gmt"):
        return lowered.upper()
    found = _zone_names().get(lowered)
    if found is None:
        raise _invalid(name, value)
    return found


def _zone_at(value: str) -> str:
    """The zone of an offset: hours east of Greenwich, or POSIX's ``<name>hours`` west of it, as PostgreSQL shows it."""
    posix = re.fullmatch(r"<[^>]*>([+-]?\d{1,2})(?::00)?", value)
    plain = re.fullmatch(r"\s*([+-]?\d{1,2}(?:\.0*)?)\s*", value)
    hours = -int(posix[1]) if posix else int(float(plain[1])) if plain else None
    found = None if hours is None else _zone_names().get(f"etc/gmt{-hours:+d}")
    if found is None:
        raise unsupported(f"the time zone {value}", "Use whole hours, or a name such as 'Asia/Kolkata'.")
    return found if hours else "UTC"


def date_style(name: str, value: str) -> str:
    """ISO output with any field order: the other three output styles are not supported."""
    order = "MDY"
    for word in value.lower().replace(",", " ").split():
        if word in ("postgres", "sql", "german"):
            raise unsupported(f"{name} {word}", "Use ISO.")
        if word in ("mdy", "us", "noneuropean", "noneuro"):
            order = "MDY"
        elif word in ("dmy", "european", "euro"):
            order = "DMY"
        elif word == "ymd":
            order = "YMD"
        elif word not in ("iso", "default"):
            raise _invalid(name, value)
    return f"ISO, {order}"


def encoding(name: str, value: str) -> str:
    """UTF8 under its names, quoted or not (asyncpg); SQL_ASCII passes bytes as they are, which is the same here."""
    plain = re.sub(r"[^a-z0-9]", "", value.lower())
    if plain in ("utf8", "unicode"):
        return "UTF8"
    if plain == "sqlascii":
        return "SQL_ASCII"
    raise unsupported(f"{name} {value}", "Use UTF8.")


def name_list(name: str, value: str) -> str:
    """A list of names."""
    try:
        split_list(value)
    except ValueError:
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', "List syntax is invalid.") from None
    return value


def show(parameter: Parameter, value: str) -> str:
    """A stored value as SHOW prints it: in the largest unit that leaves a whole number."""
    units = _UNITS[parameter.unit]
    amount = int(value) if units else 0
    if amount <= 0:
        return value
    for unit in reversed(units):
        if units[unit] >= 1 and amount % units[unit] == 0:
            return f"{amount // int(units[unit])}{unit}"
    return value


_INT_MAX: Final = 2147483647
_LEVELS: Final = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
_ISOLATION: Final = one_of("read committed", "read uncommitted", "repeatable read", "serializable")


def _milliseconds(name: str, default: str, description: str) -> Parameter:
    return Parameter(name, default, number(0, _INT_MAX, "ms"), description, unit="ms")


def _fixed(name: str, value: str, description: str, reported: bool = False) -> Parameter:
    return Parameter(name, value, text, description, "internal", reported)


def _accepted(name: str, default: str, read: Reader, unit: str = "") -> Parameter:
    return Parameter(name, default, read, "Accepted for compatibility; has no effect.", unit=unit)


def _table(*items: Parameter) -> dict[str, Parameter]:
    return {item.name.lower(): item for item in items}


def _configured() -> Iterator[Parameter]:
    """What only an operator sets (``server.config``), for SHOW."""
    for item in fields(Config):
        unit = "B" if item.metadata["size"] else "ms" if isinstance(item.default, float) else ""
        yield Parameter(item.name, stored_text(item.default), text, item.metadata["doc"], "server", unit=unit)


PARAMETERS: Final[dict[str, Parameter]] = _table(
    *_configured(),  # what a session may set as well is below, and counts
    Parameter("application_name", "", text, "The client's name for itself.", reported=True),
    Parameter("client_encoding", "UTF8", encoding, "The client's character set.", reported=True),
    Parameter("DateStyle", "ISO, MDY", date_style, "Output style and input order of dates.", reported=True),
    Parameter("IntervalStyle", "postgres", one_of("postgres", ISO_8601, VERBOSE, refused=("sql_standard",)),
              "Output style of intervals.", reported=True),
    Parameter("TimeZone", "UTC", time_zone, "The zone in which timestamps with time zone are shown.", reported=True),
    Parameter("default_transaction_read_only", "off", boolean, "Whether new transactions only read.", reported=True),
    Parameter("standard_conforming_strings", "on", one_of("on", refused=("off",)),
              "Whether '...' takes backslashes literally.", reported=True),
    _fixed("in_hot_standby", "off", "Whether the server is a standby.", True),
    _fixed("integer_datetimes", "on", "Whether timestamps are integers.", True),
    _fixed("is_superuser", "off", "Whether the user is a superuser.", True),
    _fixed("server_encoding", "UTF8", "The server's character set.", True),
    _fixed("server_version", SERVER_VERSION, "The PostgreSQL version that the server answers like.", True),
    Parameter("session_authorization", "millstream", text, "The session's user.", reported=True),
    _fixed("server_version_num", SERVER_VERSION_NUM, "server_version as a number."),
    _fixed("block_size", "8192", "Size of a disk block."),
    _fixed("data_checksums", "on", "Whether what is stored carries checksums."),
    _fixed("max_identifier_length", "63", "Longest identifier."),
    _fixed("max_index_keys", "32", "Most columns of a key."),
    _fixed("lc_collate", "C", "Collation order."),
    _fixed("lc_ctype", "C.UTF-8", "Character classes."),
    _fixed("transaction_deferrable", "off", "Whether the transaction is deferrable."),
    Parameter("port", "5433", text, "The port on which the server listens.", "server"),
    Parameter("listen_addresses", "127.0.0.1", text, "The addresses on which the server listens.", "server"),
    Parameter("data_directory", "", text, "The folder of everything durable.", "server"),
    Parameter("config_file", "", text, "The file of settings that was read.", "server"),
    Parameter("ssl", "off", text, "Whether TLS is spoken.", "server"),
    Parameter("fsync", "on", text, "Whether the log is forced to disk.", "server"),
    Parameter("wal_level", "replica", text, "Level of the log.", "server"),
    Parameter("search_path", '"$user", public', name_list, "Schemas in which unqualified names are looked up."),
    Parameter("role", "none", text, "The current role."),
    Parameter("transaction_isolation", "read committed", _ISOLATION, "Isolation of the transaction."),
    Parameter("default_transaction_isolation", "read committed", _ISOLATION, "Isolation of new transactions."),
    Parameter("transaction_read_only", "off", boolean, "Whether the transaction only reads."),
    Parameter("default_transaction_deferrable", "off", boolean, "Whether new transactions are deferrable."),
    _milliseconds("stream_timeout", "5000", "Silence of a stream that ends a query of it; 0 means none does."),
    _milliseconds("stream_progress", "5000", "Time between the notices of a stream's query; 0 means there are none."),
    _milliseconds("statement_timeout", "0", "Longest time of a statement; 0 is none."),
    _milliseconds("lock_timeout", "0", "Longest wait for a lock; 0 is none."),
    Parameter("synchronous_commit", "on", one_of("on", "off", "local", "remote_write", "remote_apply"),
              "Whether a commit waits for the disk."),
    Parameter("maintenance_engine", "auto", one_of("auto", "spark", "embedded"), "Who maintains continuous views."),
    Parameter("query_engine", "auto", one_of("auto", "spark", "embedded"), "Who runs queries."),
    Parameter("separable", "auto", one_of("auto", "on", "off"),
              "Whether queries run pipeline by pipeline, so that they can leave the server."),
    _milliseconds("checkpoint_interval", "0", "Time between copies of a separable query's state; 0 is none."),
    Parameter("client_min_messages", "notice", one_of(*_LEVELS), "Least level of notices that are sent."),
    Parameter("bytea_output", "hex", one_of("hex", refused=("escape",)), "Output form of bytea."),
    Parameter("extra_float_digits", "1", number(-15, 3), "Digits of floating-point output: always the shortest exact."),
    _milliseconds("idle_in_transaction_session_timeout", "0", "Longest idle time in a transaction; 0 is none."),
    _milliseconds("idle_session_timeout", "0", "Longest idle time; 0 is none."),
    _accepted("backslash_quote", "safe_encoding", text),
    Parameter("check_function_bodies", "on", boolean, "Whether a function's body is looked at when it is created."),
    _accepted("constraint_exclusion", "partition", text),
    _accepted("cursor_tuple_fraction", "0.1", number(0, 1, whole=False)),
    _accepted("default_statistics_target", "100", number(1, 10000)),
    _accepted("default_table_access_method", "heap", text),
    _accepted("default_tablespace", "", text),
    _accepted("default_toast_compression", "pglz", text),
    _accepted("effective_cache_size", "524288", number(1, _INT_MAX, "kB"), "kB"),
    *(_accepted(f"enable_{name}", "on", boolean) for name in
      ("bitmapscan", "hashagg", "hashjoin", "indexonlyscan", "indexscan", "material", "mergejoin", "nestloop")),
    *(_accepted(f"enable_{name}", "on", boolean) for name in ("seqscan", "sort", "tidscan")),
    _accepted("escape_string_warning", "on", boolean),
    _accepted("force_parallel_mode", "off", text),
    _accepted("geqo", "on", boolean),
    _accepted("jit", "off", boolean),
    _accepted("lc_messages", "C", text),
    _accepted("lc_monetary", "C", text),
    _accepted("lc_numeric", "C", text),
    _accepted("lc_time", "C", text),
    _accepted("log_min_duration_statement", "-1", number(-1, _INT_MAX)),
    _accepted("log_statement", "none", text),
    _accepted("maintenance_work_mem", "65536", number(1024, _INT_MAX, "kB"), "kB"),
    _accepted("max_parallel_workers_per_gather", "2", number(0, 1024)),
    _accepted("password_encryption", "scram-sha-256", one_of("scram-sha-256", refused=("md5",))),
    _accepted("plan_cache_mode", "auto", text),
    _accepted("random_page_cost", "4", number(0, 1e308, whole=False)),
    _accepted("restrict_nonsystem_relation_kind", "", name_list),
    _accepted("row_security", "on", boolean),
    _accepted("session_replication_role", "origin", text),
    _accepted("seq_page_cost", "1", number(0, 1e308, whole=False)),
    _accepted("synchronize_seqscans", "on", boolean),
    _accepted("tcp_keepalives_idle", "0", number(0, _INT_MAX)),
    _accepted("tcp_keepalives_interval", "0", number(0, _INT_MAX)),
    _accepted("tcp_user_timeout", "0", number(0, _INT_MAX)),
    _accepted("temp_buffers", "8192", number(800, _INT_MAX, "kB"), "kB"),
    _accepted("timezone_abbreviations", "Default", text),
    _accepted("transform_null_equals", "off", one_of("off", refused=("on",))),
    _accepted("vacuum_cost_delay", "0", text),
    _accepted("work_mem", "4096", number(64, _INT_MAX, "kB"), "kB"),
    _accepted("xmlbinary", "base64", text),
    _accepted("xmloption", "content", text),
)  # fmt: skip

#: In the order in which PostgreSQL sends them at the start of a session.
REPORTED: Final = tuple(sorted((item.name for item in PARAMETERS.values() if item.reported), key=str.lower))

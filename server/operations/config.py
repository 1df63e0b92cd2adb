"""What an operator may set: one list of settings, from ``millstream.toml``, the environment and flags.

Owns: the frozen ``Config``, whose fields are that list (name, type, default and documentation), how a value is read,
and where it came from. A flag wins over ``MILLSTREAM_<NAME>`` in the environment, which wins over the file, which wins
over the default. Knows nothing of sockets or sessions; what a client may SET is in ``server.settings.settings``.
"""

from __future__ import annotations

import argparse
import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from executor.core.memory import default_limit, result_cache_share, trace_share
from executor.options import MaintenanceEngine, Options, ViewSharing, is_server_name
from planner.parse.lengths import LIMIT, MOST

CONFIG_FILE: Final = "millstream.toml"
ENVIRONMENT_PREFIX: Final = "MILLSTREAM_"
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
LogStatement = Literal["none", "ddl", "mod", "all"]
#: Where a setting's value is from, in the words of pg_settings.source.
Source = Literal["default", "configuration file", "environment variable", "command line"]

_UNITS: Final = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_TRUE: Final = frozenset(("on", "true", "yes", "1"))
_FALSE: Final = frozenset(("off", "false", "no", "0"))
_LEAST_MEMORY: Final = 512 << 20
#: Settings that earlier versions had, and what has taken their place.
_REPLACED: Final = {"ring_bytes": "trace_memory", "table_keys_bytes": "trace_memory"}


class ConfigError(Exception):
    """A setting that cannot be read or must not have this value; the message names it."""


class Address(Struct, frozen=True):
    """Where to listen; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _setting(default: Any, doc: str, *, size: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "size": size})


# ruff: noqa: RUF009 -- a field's documentation is part of its default.
@dataclass(frozen=True, slots=True)
class Config:
    """All settings. In the file a table may group those of one prefix: ``[spark] master = ...`` is spark_master."""

    data: Path = _setting(Path("data"), "folder of all durable data; created when missing")
    storage: str = _setting(
        "", "folder that several servers share to move queries and views; empty: the folder shared in data"
    )
    log_on_storage: bool = _setting(
        True, "a new server keeps its log in the folder storage, if one is set; otherwise in data"
    )
    view_copy_interval: float = _setting(
        10.0,
        "least seconds between two copies of a view in the folder storage, if one is set; 0 disables automatic copies",
    )
    server_name: str = _setting("main", "name of the server among the servers that share the storage")
    server_lease: float = _setting(
        10.0, "seconds without a heartbeat after which other servers take over the queries of a server"
    )
    listen: Address = _setting(
        Address("127.0.0.1", 5433), "host:port to listen on; addresses other than loopback require ssl"
    )
    ssl: bool = _setting(False, "accept TLS from clients that request it")
    ssl_cert_file: str = _setting("server.crt", "the server's certificate and its chain; PEM, in data")
    ssl_key_file: str = _setting(
        "server.key", "key of the certificate, readable by the server's user only; PEM, in data"
    )
    ssl_ca_file: str = _setting(
        "", "authority that signs client certificates; PEM, in data; empty: clients need no certificate"
    )
    ssl_min_protocol_version: str = _setting("TLSv1.2", "oldest TLS version accepted: TLSv1.2 or TLSv1.3")
    hba_file: str = _setting("", "table of allowed clients and addresses; default: hba.conf in data, if it exists")
    authentication_timeout: float = _setting(60.0, "seconds that a client has to authenticate")
    max_connections: int = _setting(100, "maximum number of clients; further ones are refused with 53300")
    maintenance_engine: MaintenanceEngine = _setting(
        "auto", "engine that maintains continuous views: auto, spark or embedded"
    )
    maintenance_rows: int = _setting(100_000, "auto: Spark maintains a view when this many rows have gathered")
    maintenance_idle: float = _setting(1.0, "auto: ... or when a stream has been idle for this many seconds")
    default_latency_goal: float = _setting(
        0.2, "seconds that a read of a view without a goal of its own is to find left to follow at most; 0 is no goal"
    )
    view_sharing: ViewSharing = _setting(
        "auto", "whether joins that several views have in common are kept once: auto (where that pays), on or off"
    )
    synchronous_commit: bool = _setting(True, "acknowledge rows only when they are on disk; a session may SET it")
    memory_limit: int = _setting(
        0, "memory of the server's process; 0 is three quarters of the memory of the machine or cgroup", size=True
    )
    trace_memory: int = _setting(
        0,
        "memory for rows of streams, rows of tables by key, and views; 0 is three eighths of memory_limit",
        size=True,
    )
    backlog_bytes: int = _setting(
        8 << 30, "bytes of rows that views of a stream have not processed, beyond which its writers wait", size=True
    )
    log_segment_bytes: int = _setting(64 << 20, "size of one file of the log", size=True)
    lock_timeout: float = _setting(0.0, "seconds that a statement waits for a lock; 0 waits without limit")
    statement_timeout: float = _setting(0.0, "default of statement_timeout in seconds; 0 is none")
    statement_length: int = _setting(LIMIT, "maximum number of characters of a statement; COPY data is not limited")
    shutdown_timeout: float = _setting(
        8.0, "seconds after SIGTERM at which the process exits even if a statement still runs; 0 waits without limit"
    )
    source_poll: float = _setting(0.5, "seconds between two scans of a stream's source folder")
    spark_enabled: bool = _setting(True, "start Spark as a child process if a Java runtime is found")
    spark_master: str = _setting(
        "local[*]", "local[n], spark://host:port, yarn, k8s://..., or sc://host:port (Connect)"
    )
    spark_driver_memory: str = _setting("2g", "heap of the local Spark driver")
    spark_job_timeout: float = _setting(
        600.0, "seconds after which a Spark job counts as failed and its driver is replaced"
    )
    embedded_threads: int = _setting(0, "threads of the embedded engine; 0 is one per core")
    storage_bandwidth: int = _setting(
        200 << 20, "bytes per second to and from the storage; decides what state a query leaves with", size=True
    )
    storage_latency: float = _setting(
        0.05,
        "seconds to leave and resume a query of any size; queries that end sooner are not moved",
    )
    shared_files: str = _setting(
        "",
        "folder of immutable Parquet files that all servers of the storage read; queries leave without copying them",
    )
    parse_threads: int = _setting(2, "threads that parse COPY data")
    result_cache_bytes: int = _setting(
        64 << 20, "memory for encoded rows of repeated queries; 0 caches none", size=True
    )
    drain_timeout: float = _setting(
        2.0, "seconds after SIGTERM in which running statements and transactions can finish; none after SIGINT"
    )
    metrics_listen: Address | None = _setting(
        None, "host:port of the Prometheus metrics, loopback only; empty: no metrics"
    )
    log_level: LogLevel = _setting("info", "lowest level that is logged: debug, info, warning or error")
    log_format: LogFormat = _setting("text", "text, or json: one object per line")
    log_connections: bool = _setting(False, "log connections, and the user and method of each log-in")
    log_disconnections: bool = _setting(False, "log the end and the duration of each session")
    log_statement: LogStatement = _setting(
        "none", "statements that are logged: none, ddl, mod (ddl and changes of rows) or all; superusers may SET it"
    )

    def __post_init__(self) -> None:
        if not self.ssl:
            _require_loopback(self.listen.host)
        if self.metrics_listen is not None and not is_loopback(self.metrics_listen.host):
            raise ConfigError(
                f"metrics_listen = {self.metrics_listen}: metrics ask for no password; listen on loopback"
            )
        positive = ("max_connections", "maintenance_rows", "parse_threads", "backlog_bytes")
        for name in (*positive, "log_segment_bytes", "server_lease"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1")
        if self.memory_limit and self.memory_limit < _LEAST_MEMORY:
            raise ConfigError(f"memory_limit = {self.memory_limit}: a server needs at least {_LEAST_MEMORY >> 20}MB")
        if not 1 <= self.statement_length <= MOST:
            raise ConfigError(f"statement_length must be between 1 and {MOST}")
        if not is_server_name(self.server_name):
            raise ConfigError(f"server_name = {self.server_name}: letters, digits, _ and - make a name")

    def shown(self) -> dict[str, str]:
        """Every setting as SHOW stores it: sizes in bytes, times in milliseconds, Booleans as on and off."""
        return {item.name: stored_text(getattr(self, item.name)) for item in fields(self)}

    @property
    def memory(self) -> int:
        """Bytes that the process may take."""
        return self.memory_limit or default_limit()

    @property
    def result_cache(self) -> int:
        """Bytes of encoded answers that are kept."""
        return min(self.result_cache_bytes, result_cache_share(self.memory))

    def options(self) -> Options:
        """What of this the executor takes."""
        names = set(Options.__struct_fields__) & {item.name for item in fields(Config)}
        own = {name: getattr(self, name) for name in names}
        own["memory_limit"] = memory = self.memory
        own["trace_memory"] = min(self.trace_memory or memory, trace_share(memory))
        return Options(data_directory=self.data.resolve(), address=str(self.listen), **own)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _require_loopback(host: str) -> None:
    if not is_loopback(host):
        raise ConfigError(
            f"listen = {host}: listening beyond loopback requires TLS: set ssl, ssl_cert_file and ssl_key_file,"
            " or use 127.0.0.1, ::1 or localhost"
        )


class Chosen(Struct, frozen=True):
    """A configuration, the file that was read, if one was, and whose word each setting that is not its default is."""

    config: Config
    file: Path | None = None
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])

    def source(self, name: str) -> Source:
        """Where a setting's value is from."""
        return self.sources.get(name, "default")


def choose(flags: argparse.Namespace, environment: Mapping[str, str]) -> Chosen:
    """The configuration of parsed flags, environment and file together. Raises ConfigError."""
    named = flags.config or environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    file = Path(named or CONFIG_FILE)
    values = _read_file(file, required=named is not None)
    sources: dict[str, Source] = dict.fromkeys(values or (), "configuration file")
    found = dict(values or {})
    known = {item.name: item for item in fields(Config)}
    for name in (*known, *_REPLACED):
        variable = environment.get(ENVIRONMENT_PREFIX + name.upper())
        if variable is not None:
            found[name], sources[name] = variable, "environment variable"
        flag = getattr(flags, name)
        if flag is not None:
            found[name], sources[name] = flag, "command line"
    for name in found:
        if name in _REPLACED:
            raise ConfigError(f"{name} is not a setting any more: set {_REPLACED[name]} instead")
        if name not in known:
            raise ConfigError(f"unknown setting {name}")
    config = Config(**{name: _read_value(known[name], value) for name, value in found.items()})
    return Chosen(config, None if values is None else file, sources)


def describe() -> str:
    """The list of settings as ``millstream.toml`` with every default, commented: what the documentation prints."""
    lines = []
    for item in fields(Config):
        lines += [f"# {item.metadata['doc']}", f"# {item.name} = {print_value(item.default)}"]
    return "\n".join(lines) + "\n"


def table() -> str:
    """The list as a table of Markdown: what docs/settings.md shows."""
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    for item in fields(Config):
        lines.append(f"| `{item.name}` | `{print_value(item.default)}` | {item.metadata['doc']} |")
    return "\n".join(lines) + "\n"


def stored_text(value: object) -> str:
    """A setting's value as SHOW stores it."""
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case float():
            return str(round(value * 1000))
        case _:
            return str(value)


def print_value(value: object) -> str:
    """A setting's value as ``millstream.toml`` has it."""
    match value:
        case None:
            return '""'
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return f'"{value}"'


def parser(program: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """Of a command that takes all settings as flags."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", metavar="FILE", help=f"file of settings (default: {CONFIG_FILE}, where there is one)"
    )
    for item in fields(Config):
        default = print_value(item.default).strip('"').replace("%", "%%") or "none"
        flag = "--" + item.name.replace("_", "-")
        parser.add_argument(flag, dest=item.name, metavar="VALUE", help=f"{item.metadata['doc']} (default: {default})")
    for name in _REPLACED:
        parser.add_argument("--" + name.replace("_", "-"), dest=name, help=argparse.SUPPRESS)
    return parser


def _read_file(path: Path, required: bool) -> dict[str, object] | None:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{path}: no such file") from None
        return None
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    values: dict[str, object] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            values |= {f"{name}_{inner}": below for inner, below in value.items()}
        else:
            values[name] = value
    return values


def _read_value(item: Field[Any], value: object) -> Any:
    try:
        return _convert(item, value)
    except (ValueError, TypeError):
        raise ConfigError(f"{item.name}: invalid value {value!r} ({item.metadata['doc']})") from None


def _convert(item: Field[Any], value: object) -> object:
    text = str(value).strip()
    choices = _CHOICES.get(str(item.type))
    if choices is not None:
        if text.lower() not in choices:
            raise ValueError(text)
        return text.lower()
    match item.default:
        case bool():
            return _boolean(text)
        case int():
            return _size(text) if item.metadata["size"] else int(text)
        case float():
            return float(text)
        case Path():
            return Path(text).expanduser()
        case Address():
            return _address(text)
        case None:  # the one kind of setting that may be absent
            return _address(text) if text else None
        case _:
            return text


_CHOICES: Final = {
    "MaintenanceEngine": get_args(MaintenanceEngine),
    "ViewSharing": get_args(ViewSharing),
    "LogLevel": get_args(LogLevel),
    "LogFormat": get_args(LogFormat),
    "LogStatement": get_args(LogStatement),
}


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in _TRUE | _FALSE:
        raise ValueError(text)
    return lowered in _TRUE


def _size(text: str) -> int:
    number = text.rstrip("kKmMgGtTbB ")
    unit = text[len(number) :].strip().lower()
    if unit not in _UNITS:
        raise ValueError(text)
    return int(float(number) * _UNITS[unit])


def _address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if not separator:
        host, port = ("127.0.0.1", text) if text.isdigit() else (text, "5433")
    number = int(port)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return Address(host.strip("[]"), number)

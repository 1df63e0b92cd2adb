"""What an operator may set about the executor; the server's configuration makes one of these."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

MaintenanceEngine = Literal["auto", "spark", "embedded"]
ViewSharing = Literal["auto", "on", "off"]
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}")


def is_server_name(name: str) -> bool:
    """Whether a server may be called so: its name is a file's."""
    return _SERVER_NAME.fullmatch(name) is not None


class Options(Struct, frozen=True):
    """Sizes in bytes, times in seconds. ``maintenance_*`` say when a path is due (architecture, section 1)."""

    data_directory: Path
    server_id: str = "main"
    maintenance_engine: MaintenanceEngine = "auto"
    maintenance_rows: int = 100_000
    maintenance_idle: float = 1.0
    default_latency_goal: float = 0.2  # of views without a goal of their own; 0: they have none
    view_sharing: ViewSharing = "auto"  # of parts whose rows are kept once for several views
    memory_limit: int = 0  # of the process; 0: the engine's own default
    trace_memory: int = 1536 << 20
    backlog_bytes: int = 8 << 30
    log_segment_bytes: int = 64 << 20
    lock_timeout: float = 0.0  # 0: wait for ever
    source_poll: float = 0.5
    spark_enabled: bool = True
    spark_master: str = "local[*]"
    spark_driver_memory: str = "2g"
    spark_job_timeout: float = 600.0
    embedded_threads: int = 0  # 0: one per core
    storage_bandwidth: int = 200 << 20  # bytes a second, of a query's state to the storage and back
    storage_latency: float = 0.05  # seconds that it takes a query to leave and to go on, whatever it carries
    shared_files: str = ""  # the folder of files that all servers of the storage read as they are; empty: none
    storage: str = ""  # the folder that servers share; empty: shared_directory
    log_on_storage: bool = True  # of a new server whose storage is set
    view_copy_interval: float = 0.0  # between copies that are made unasked; 0: none are
    server_name: str = "main"  # among those of the storage
    server_lease: float = 10.0
    address: str = ""

    @property
    def server_directory(self) -> Path:
        """Private to this server: log and tables."""
        return self.data_directory / "servers" / self.server_id

    @property
    def log_directory(self) -> Path:
        """Segments of the log, or a link to them on the storage (``cluster.logs``); other servers read them."""
        return self.server_directory / "log"

    @property
    def spill_directory(self) -> Path:
        """What exceeds the engine's memory, while it computes."""
        return self.server_directory / "spill"

    @property
    def shared_directory(self) -> Path:
        """Streams' sealed segments and views' states."""
        return self.data_directory / "shared"

    @property
    def storage_directory(self) -> Path:
        """What several servers share: their entries, and queries that have left a server."""
        return Path(self.storage).resolve() if self.storage else self.shared_directory

"""What an operator may set about the executor; the server's configuration makes one of these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MaintenanceEngine = Literal["auto", "spark", "embedded"]


@dataclass(frozen=True, slots=True)
class Options:
    """Sizes in bytes, times in seconds. ``maintenance_*`` are section 3 of the architecture's rule for ``auto``."""

    data_directory: Path
    server_id: str = "main"
    maintenance_engine: MaintenanceEngine = "auto"
    maintenance_rows: int = 100_000
    maintenance_idle: float = 1.0
    ring_bytes: int = 1 << 30
    table_keys_bytes: int = 512 << 20
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

    @property
    def server_directory(self) -> Path:
        """Private to this server: log and tables."""
        return self.data_directory / "servers" / self.server_id

    @property
    def shared_directory(self) -> Path:
        """Streams' sealed segments and views' states."""
        return self.data_directory / "shared"

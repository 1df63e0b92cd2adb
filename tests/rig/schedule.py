"""Which process of a run (pytest-xdist) executes which tests, and in which order.

A file's tests stay in one process, and so do the files that share one Spark: Spark takes longer to start than most of
their tests. The longest files begin first, so that no process waits for another's last file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

#: Files by the session fixture, a Spark, that their tests share.
SHARED: Final[Mapping[str, str]] = {
    "tests/compatibility/test_compatibility.py": "spark_server",
    "tests/server/test_small_files.py": "spark_server",
    "tests/sql/test_scripts.py": "spark_server",
    "tests/sql/test_tpch.py": "spark_server",
    "tests/spark/test_adhoc.py": "spark",
    "tests/spark/test_engine.py": "spark",
    "tests/spark/test_functions.py": "spark",
    "tests/spark/test_moving.py": "spark",
    "tests/spark/test_plans.py": "spark",
    "tests/spark/test_raw.py": "spark",
    "tests/spark/test_separation.py": "spark",
    "tests/spark/test_separation_slices.py": "spark",
}
#: Files that take over 20 seconds, in the order in which they begin.
LONG: Final = (
    "spark_server",
    "spark",
    "tests/law/test_tpch.py",
    "tests/spark/test_connect.py",
    "tests/cluster/test_topology.py",
    "tests/spark/test_process.py",
    "tests/spark/test_separation_failures.py",
    "tests/law/test_arrival_tables.py",
    "tests/law/test_tpch_views.py",
    "tests/law/test_kill_points.py",
    "tests/law/test_collected_streams.py",
    "tests/law/test_stream_history.py",
    "tests/spark/test_maintenance.py",
    "tests/sql/test_scripts.py",
    "tests/server/test_unreachable_storage.py",
    "tests/clients/test_pg_dump.py",
    "tests/law/test_aggregates.py",
    "tests/sql/test_tpcds.py",
    "tests/executor/test_moving_views_below.py",
    "tests/executor/test_moving_views.py",
    "tests/law/test_crash.py",
    "tests/law/test_property.py",
    "tests/executor/test_arriving.py",
    "tests/server/test_cluster.py",
    "tests/server/test_cluster_views.py",
    "tests/server/test_named_views.py",
    "tests/clients/test_psql.py",
    "tests/executor/test_folder_stories.py",
    "tests/executor/test_moving_shapes.py",
    "tests/sql/test_tpch.py",
    "tests/law/test_nexmark.py",
    "tests/law/test_tpch_changes.py",
    "tests/law/test_shapes.py",
    "tests/sql/test_tpch_stream.py",
    "tests/executor/test_join_order.py",
    "tests/server/test_hanging_storage.py",
    "tests/server/test_cluster_drain.py",
    "tests/server/test_full_disk.py",
    "tests/server/test_small_files.py",
    "tests/law/test_enums.py",
    "tests/law/test_first_rows.py",
    "tests/law/test_changing_tables.py",
    "tests/law/test_live_tables.py",
    "tests/law/test_retention.py",
    "tests/executor/test_pinned_views.py",
    "tests/executor/test_deferral.py",
    "tests/server/test_main.py",
)


class Schedule(LoadFileScheduling):
    """Files, or groups of files, that wait for a process."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._shared = SHARED if config.getoption("markexpr") == "spark" else {}

    def _split_scope(self, nodeid: str) -> str:
        """The group of a test: all tests of a group run in one process."""
        file = super()._split_scope(nodeid)
        return self._shared.get(file, file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Gives a process its next group."""
        self.workqueue.move_to_end(min(self.workqueue, key=_place), last=False)
        super()._assign_work_unit(node)


def _place(scope: str) -> int:
    return LONG.index(scope) if scope in LONG else len(LONG)

"""The Prometheus page: its numbers equal those of the system views."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.rig.process import free_port, wait_until
from tests.rig.server import Millstream

pytestmark = pytest.mark.slow  # a server of its own


@pytest.fixture(scope="module")
def measured() -> Iterator[Millstream]:
    """A server whose metrics are read."""
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_idle": 0.05}
    with Millstream(settings={**settings, "metrics_listen": f"127.0.0.1:{free_port()}"}) as server:
        yield server


def scrape(server: Millstream) -> dict[tuple[str, ...], float]:
    """Values by name and labels' values."""
    with urllib.request.urlopen(f"http://{server.settings['metrics_listen']}/metrics", timeout=60) as page:
        families = text_string_to_metric_families(page.read().decode())
    return {(item.name, *item.labels.values()): item.value for family in families for item in family.samples}


def test_metrics_follow_the_server(measured: Millstream) -> None:
    assert scrape(measured)["millstream_log_lsn",] == 0
    with measured.connect() as client:
        client.execute("CREATE FOREIGN TABLE feed (a integer) SERVER stream")
        client.execute("CREATE VIEW sums AS SELECT sum(a) FROM feed")
        client.execute("CREATE VIEW broken AS SELECT sum(1 / a) FROM feed")
        client.execute("INSERT INTO feed VALUES (0), (1), (2)")
        taken = ("millstream_maintenance_rows_total", "embedded", "done")  # counted once its view is there
        wait_until(lambda: scrape(measured).get(taken, 0) >= 3, 60, "job")
        wait_until(lambda: scrape(measured).get(("millstream_view_failing", "broken")) == 1, 60, "failed job")
        client.execute("BEGIN")
        found = scrape(measured)
    assert found["millstream_stream_rows_total", "feed"] == 3
    assert found["millstream_clients", "idle in transaction"] == 1
    assert found["millstream_clients_limit",] == 100
    assert found["millstream_view_failing", "sums"] == 0
    assert found["millstream_view_rows_behind", "sums"] == 0
    assert found["millstream_engine_available", "embedded"] == 1
    assert found["millstream_engine_available", "spark"] == 0
    assert found["process_resident_memory_bytes",] > 1 << 20


def test_what_is_done_for_views(measured: Millstream) -> None:
    with measured.connect() as client:
        client.execute("CREATE TABLE counted (a integer)")
        client.execute(
            "CREATE MATERIALIZED VIEW many WITH (method = 'incremental') AS SELECT a, count(*) FROM counted GROUP BY a"
        )
        client.execute("CREATE MATERIALIZED VIEW anew WITH (method = 'recompute') AS SELECT count(*) FROM counted")
        for number in range(3):
            client.execute(f"INSERT INTO counted VALUES ({number})")
            client.execute("SELECT * FROM many")
            client.execute("SELECT * FROM anew")
    found = scrape(measured)
    done = {kind: found["millstream_view_work_total", kind, "many"] for kind in ("evaluation", "fill", "change")}
    assert (done["evaluation"], done["fill"]) == (0, 1)
    assert done["change"] >= 2  # the background may follow one, too
    assert found["millstream_view_work_seconds_total", "change", "many"] > 0
    assert found["millstream_view_kept_rows", "many"] >= 3
    assert found["millstream_view_work_total", "evaluation", "anew"] == 3
    assert found["millstream_view_kept_rows", "anew"] == 0


def test_the_port_is_free_again_after_the_end() -> None:
    port = free_port()
    with Millstream(settings={"spark_enabled": False, "metrics_listen": f"127.0.0.1:{port}"}) as server:
        assert ("millstream_log_lsn",) in scrape(server)
        server.restart()
        assert ("millstream_log_lsn",) in scrape(server)

"""Properties of a session before it exists: its settings, and the Spark versions that it may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.spark.driver.connect_session import is_alike
from executor.spark.settings import SEMANTICS, SparkSettings, configuration, of_session


@pytest.mark.parametrize(
    ("endpoint", "alike"),
    [("4.3.0", True), ("4.3.1-vendor", True), ("4.2.0", False), ("4.30.0", False), ("3.3.0", False)],
)
def test_an_endpoint_is_of_pyspark_s_minor_version(endpoint: str, alike: bool) -> None:
    assert is_alike(endpoint, "4.3.0") == alike


def test_a_session_of_an_endpoint_computes_as_one_of_ours(tmp_path: Path) -> None:
    ours = configuration(SparkSettings(tmp_path))
    theirs = of_session(SparkSettings(tmp_path, "sc://127.0.0.1"))
    assert theirs.keys() <= ours.keys()
    assert {name: theirs[name] for name in SEMANTICS} == {name: ours[name] for name in SEMANTICS}


def test_settings_of_the_operator_win(tmp_path: Path) -> None:
    own = {"spark.sql.shuffle.partitions": "3"}
    for master in ("local[2]", "sc://127.0.0.1"):
        assert of_session(SparkSettings(tmp_path, master, extra=own))["spark.sql.shuffle.partitions"] == "3"

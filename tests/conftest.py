"""Fixtures shared by all tests: the golden files' switch, one PostgreSQL per run, and generated data."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.rig import postgres as rig
from tests.rig import sampling, spark
from tests.rig.forked import Loaded
from tests.rig.schedule import Schedule
from tests.rig.server import Millstream, java_is_there
from tests.rig.tpcds import Tpcds
from tests.rig.tpch import Tpch

# The duration of an example depends more on the machine's other work than on the code.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _PATIENT, derandomize=True, max_examples=30)
settings.register_profile("whole", _PATIENT, max_examples=100)


def pytest_configure(config: pytest.Config) -> None:
    """Property tests use the same examples each time, so that a failure depends on the code only; ``--whole`` draws new
    ones, three times as many, and starts each server as users do. All JVMs get options for a quick start."""
    whole = config.getoption("--whole")
    settings.load_profile("whole" if whole else "same")
    Millstream.loaded = None if whole else Loaded()
    os.environ.setdefault("JAVA_TOOL_OPTIONS", spark.flags())


def pytest_unconfigure() -> None:
    if Millstream.loaded is not None:
        Millstream.loaded.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="regenerate golden files instead of comparing with them")
    parser.addoption("--whole", action="store_true", help="also what a sample stands for, and new examples")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector does not look at the tests while they are collected, of which few objects are garbage, nor
    at each of its later turns."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Schedule | None:
    """The distribution of tests over processes, which keeps a file's tests together."""
    return Schedule(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips tests that the machine cannot run, and tests represented by others, with the reason and the way to run
    them."""
    if not config.getoption("--whole"):
        for item in sampling.beyond(items):
            item.add_marker(pytest.mark.skip(reason="others stand for it: --whole"))
    lacks: dict[str, str] = {}
    if rig.binaries() is None:
        lacks["postgres"] = "PostgreSQL is not installed: apt-get install postgresql postgresql-contrib"
    if not java_is_there():
        lacks["spark"] = "no Java 17 for Spark: apt-get install openjdk-17-jre-headless"
    if importlib.util.find_spec("grpc") is None:
        lacks["connect"] = "the packages of Spark Connect are not installed: make check"
    for item in items:
        for name in lacks.keys() & {mark.name for mark in item.iter_markers()}:
            item.add_marker(pytest.mark.skip(reason=lacks[name]))


@pytest.fixture(scope="session")
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten: ``--rewrite`` or MILLSTREAM_REWRITE=1 (``make rewrite``)."""
    return bool(request.config.getoption("--rewrite")) or os.environ.get("MILLSTREAM_REWRITE") == "1"


@pytest.fixture(scope="session")
def postgres() -> Iterator[rig.Postgres]:
    """A real PostgreSQL; tests that use it are marked ``postgres`` and create their own schemas."""
    server = rig.Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def spark_server() -> Iterator[Millstream]:
    """A server with Spark, for ad hoc queries on it: tests that use it are marked ``spark`` and drop their tables."""
    with Millstream(settings={"spark_master": "local[2]", "spark_driver_memory": "1g"}) as server:
        server.wait_for_spark()
        yield server


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether sampled tests run completely, mainly minutes of Spark: ``--whole``."""
    return bool(request.config.getoption("--whole"))


@pytest.fixture(scope="session")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Tpch:
    """TPC-H data by scale factor, generated once and kept between runs."""
    cache = Path(os.environ.get("MILLSTREAM_TPCH", tmp_path_factory.getbasetemp().parent / "millstream-tpch"))
    return Tpch(cache)


@pytest.fixture(scope="session")
def tpcds(tmp_path_factory: pytest.TempPathFactory) -> Tpcds:
    """TPC-DS data by scale factor, generated once and kept between runs."""
    cache = Path(os.environ.get("MILLSTREAM_TPCDS", tmp_path_factory.getbasetemp().parent / "millstream-tpcds"))
    return Tpcds(cache)

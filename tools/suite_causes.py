"""Why tests of other projects fail on Millstream: causes in words, each with the names of its tests (``*``: any)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

CAUSES: Final[dict[str, tuple[str, ...]]] = {
    "a server has one database: there is no CREATE DATABASE": (
        "TestCacheInvalidation::test_type_cache_invalidation_in_pool",
        "TestIntrospection::*",
    ),
    "there are no functions of language plpgsql": (
        "TestCodecs::test_enum_function_return",
        "TestLogListeners::test_log_listener_02",
    ),
    "notices contain no line of the server's source code": ("TestLogListeners::test_log_listener_01",),
    "closes connections while they are opened, which also fails on PostgreSQL now and then": (
        "TestPool::test_pool_config_persistence",
    ),
    "the extensions citext and isn do not exist, and hstore lacks some functions": (
        "TestCodecs::test_custom_codec_binary",
        "TestCodecs::test_custom_codec_text",
        "TestCodecs::test_extra_codec_alias",
        "TestCodecs::test_unhandled_type_fallback",
        "TestCodecs::test_unknown_type_text_fallback",
    ),
    "there is no cast of an array to anyarray": ("TestCodecs::test_arrays",),
    "numerics of more than 38 digits raise 22003": ("TestCodecs::test_standard_codecs",),
    "a numeric parameter shows no trailing zeros": ("TestCodecs::test_numeric",),
    "EXPLAIN (FORMAT JSON) shows Millstream's plans, which have other nodes": ("TestPrepare::test_prepare_14_explain",),
    "the server reads the rows of a batch before the driver receives the first row's error": (
        "TestExecuteMany::test_executemany_server_failure_during_writes",
    ),
    "the test expects rows without ORDER BY in the order that PostgreSQL's windows produce": ("WindowFunctionTest::*",),
}


def cause(name: str) -> str | None:
    """Why a test fails, where it is known."""
    bare = name.partition("[")[0]
    return next((why for why, tests in CAUSES.items() if any(fnmatchcase(bare, test) for test in tests)), None)

"""Why tests of other projects fail on Millstream: causes in words, each with the names of its tests (``*``: any)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

CAUSES: Final[dict[str, tuple[str, ...]]] = {
    "one server has one database: no CREATE DATABASE": (
        "TestCacheInvalidation::test_type_cache_invalidation_in_pool",
        "TestIntrospection::*",
    ),
    "no functions of language plpgsql": (
        "TestCodecs::test_enum_function_return",
        "TestLogListeners::test_log_listener_02",
    ),
    "notices tell no line of the server's own source": ("TestLogListeners::test_log_listener_01",),
    "closes connections while they are made, which fails on PostgreSQL, too, now and then": (
        "TestPool::test_pool_config_persistence",
    ),
    "extensions with types of their own (hstore, citext, isn) are not there": (
        "TestCodecs::test_custom_codec_binary",
        "TestCodecs::test_custom_codec_text",
        "TestCodecs::test_extra_codec_alias",
        "TestCodecs::test_unhandled_type_fallback",
        "TestCodecs::test_unknown_type_text_fallback",
    ),
    "no cast of an array to anyarray": ("TestCodecs::test_arrays",),
    "numerics of more than 38 digits are 22003": ("TestCodecs::test_standard_codecs",),
    "a numeric parameter shows no zeros at its end": ("TestCodecs::test_numeric",),
    "EXPLAIN (FORMAT JSON) tells our plans, which have other nodes": ("TestPrepare::test_prepare_14_explain",),
    "the rows of a batch are taken in faster than the driver hears of the first one's error": (
        "TestExecuteMany::test_executemany_server_failure_during_writes",
    ),
    "the test reads rows without ORDER BY in the order in which PostgreSQL's windows leave them": (
        "WindowFunctionTest::*",
    ),
}


def cause(name: str) -> str | None:
    """Why a test fails, where it is known."""
    bare = name.partition("[")[0]
    return next((why for why, tests in CAUSES.items() if any(fnmatchcase(bare, test) for test in tests)), None)

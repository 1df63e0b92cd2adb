"""Spark's error conditions as PostgreSQL's errors; conditions not caused by the data are the engine's errors."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from executor.engine import EngineRefused, EngineUnavailable
from executor.spark.failures import describe, marked, to_exception

#: A Python worker's text for an error of the kernel.
TOLD = marked(SqlError("22P02", 'bad: ]> "x"\n'))


class SparkError(Exception):
    """An error like pyspark's: a condition, parameters and a text."""

    def __init__(self, condition: str | None, parameters: dict[str, str] | None = None, text: str = "") -> None:
        super().__init__(text)
        self._answer = condition, parameters

    def getCondition(self) -> str | None:
        return self._answer[0]

    def getMessageParameters(self) -> dict[str, str] | None:
        return self._answer[1]


@pytest.mark.parametrize(
    ("error", "sqlstate", "message"),
    [
        (SparkError("DIVIDE_BY_ZERO"), "22012", "division by zero"),
        (SparkError("CAST_OVERFLOW", {"targetType": '"INT"'}), "22003", "integer out of range"),
        (SparkError("CAST_OVERFLOW", {"targetType": '"DECIMAL(5,2)"'}), "22003", "numeric field overflow"),
        (SparkError("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"), "22003", "numeric field overflow"),
        (SparkError("USER_RAISED_EXCEPTION", {"errorMessage": "22011:negative length"}), "22011", "negative length"),
        (SparkError(None, None, "Job aborted: [DIVIDE_BY_ZERO] Division by zero."), "22012", "division by zero"),
        (
            SparkError(
                None, None, 'x: [CAST_OVERFLOW] The value 1L of the type "BIGINT" cannot be cast to "SMALLINT" due'
            ),
            "22003",
            "smallint out of range",
        ),
        (SparkError("FAILED_READ_FILE.FILE_NOT_EXIST", {}), "58P01", "a file is missing"),
        (SqlError("22P04", "bad file"), "22P04", "bad file"),
        (SparkError("PYTHON_EXCEPTION", {}, f"RuntimeError: {TOLD}\n at worker"), "22P02", 'bad: ]> "x"\n'),
    ],
)
def test_errors_of_the_data(error: Exception, sqlstate: str, message: str) -> None:
    raised = to_exception(describe(error))
    assert isinstance(raised, SqlError)
    assert (raised.sqlstate, raised.message) == (sqlstate, message)


@pytest.mark.parametrize(
    "error",
    [
        SparkError("USER_RAISED_EXCEPTION", {"errorMessage": "something else"}),
        ConnectionResetError("the JVM is gone"),
        OSError(28, "No space left on device"),
    ],
)
def test_everything_else_is_the_engine_s(error: Exception) -> None:
    raised = to_exception(describe(error))
    assert isinstance(raised, EngineUnavailable)
    assert type(error).__name__ in str(raised)


@pytest.mark.parametrize(
    "error",
    [
        SparkError("UNSUPPORTED_SUBQUERY", {}, "[UNSUPPORTED_SUBQUERY] a subquery"),
        SparkError(None, None, "Caused by: java.util.NoSuchElementException: key not found: c23#120"),
        type("AnalysisException", (Exception,), {})("[UNRESOLVED_COLUMN] c3"),
    ],
)
def test_what_has_no_plan_is_refused(error: Exception) -> None:
    assert isinstance(to_exception(describe(error)), EngineRefused)


@pytest.mark.parametrize(
    "error",
    [
        SparkError(None, None, "Job 3 cancelled part of cancelled job group request-1"),
        SparkError("OPERATION_CANCELED", {}, "[OPERATION_CANCELED] Operation has been canceled."),
    ],
)
def test_a_cancelled_job_is_57014(error: Exception) -> None:
    raised = to_exception(describe(error))
    assert isinstance(raised, SqlError)
    assert raised.sqlstate == "57014"


def test_what_grpc_says_is_one_line() -> None:
    text = '<_InactiveRpcError of RPC that terminated with:\n\tstatus = X\n\tdetails = "Connection refused"\n>'
    assert describe(SparkError(None, None, text))["message"] == "SparkError: Connection refused"

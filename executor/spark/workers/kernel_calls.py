"""Functions in Spark that the embedded engine's kernel computes over Arrow batches, in Spark's Python workers.

Owns: ``define``, which registers the functions of a job in a session (child process), and ``computed``, which runs in a
worker. This is the only place where one engine calls the other. An error of the data travels in the text of the
exception, which is all that Spark passes on (``failures``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from catalog.values.errors import SqlError
from executor.spark.failures import marked
from executor.spark.frames import Frame

#: Functions that a session knows at a time.
_KNOWN: Final = 512
#: By name, those that a session knows, the latest used last.
Known = OrderedDict[str, None]


def define(spark: Any, known: Known, functions: Sequence[Frame]) -> None:
    """Makes functions known to a session; those not used for long are forgotten. Kept plans hold theirs themselves."""
    from pyspark.sql.functions import arrow_udf

    make: Any = arrow_udf  # its overloads know decorators alone
    for function in functions:
        name = function["name"]
        if name not in known:
            made = make(_function(function["document"], function["time_zone"]), function["type"])
            spark.udf.register(name, made.asNondeterministic() if function["is_volatile"] else made)
        known[name] = None
        known.move_to_end(name)
    while len(known) > max(_KNOWN, len(functions)):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {known.popitem(last=False)[0]}")


def _function(document: str, time_zone: str) -> Callable[..., pa.Array]:
    """The function of a document, which a worker gets as a reference to this module, and the document."""

    def function(*columns: pa.Array) -> pa.Array:
        return computed(document, time_zone, columns)

    return function


def computed(document: str, time_zone: str, columns: Sequence[pa.Array]) -> pa.Array:
    """A batch of values, in a worker."""
    from executor.embedded.kernel import evaluate

    try:
        return evaluate(document, columns, time_zone)
    except SqlError as error:
        raise RuntimeError(marked(error)) from None

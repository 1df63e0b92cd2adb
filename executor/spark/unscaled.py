"""A function that gives a decimal's digits as a bigint: Spark computes it, but has no name for it in SQL.

Owns: the name, and its registration in a session (in the child process only). Spark Connect has no way to register it.
"""

from __future__ import annotations

from typing import Any, Final

#: ``__unscaled(12.34)`` is 1234; of decimals of at most 18 digits.
UNSCALED: Final = "__unscaled"
_EXPRESSION: Final = "org.apache.spark.sql.catalyst.expressions.UnscaledValue"


def name_it(spark: Any) -> None:
    """Makes the function known to one classic session."""
    jvm = spark.sparkContext._jvm
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName(_EXPRESSION))
    no_version = jvm.scala.Option.empty()
    built = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase.build(UNSCALED, no_version, kind)
    registry = spark._jsparkSession.sessionState().functionRegistry()
    registry.createOrReplaceTempFunction(UNSCALED, built._2(), "scala_udf")

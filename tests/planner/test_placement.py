"""Which engine is cheaper for a query: by rows and passes, cores, and data that exceed the memory."""

from __future__ import annotations

from catalog.values.types import INT4
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Relation,
    Scan,
    Sort,
    SortKey,
)
from planner.placement import KERNEL_PASSES, SPARK_ROWS, SPARK_START, Cost, Power, Size, estimate, with_kernel

A, B, N = (Column(number, name, INT4) for number, name in enumerate("abn"))
LEFT, RIGHT = (Scan(oid, "f", "files", (column,), ("x",)) for oid, column in ((1, A), (2, B)))
MANY, FEW = Size(1_000_000_000, 8 << 30), Size(1000, 8000)
HERE, LOCAL = Power(2, 4 << 30), Power(2, 1 << 30)


def counted(below: Relation, *keys: Column) -> Relation:
    return Aggregate(below, tuple((key, ColumnRef(key)) for key in keys), ((N, AggregateCall("count_star", (), INT4)),))


def cost(relation: Relation, *sizes: Size, spark: Power = LOCAL) -> Cost:
    return estimate(relation, sizes, HERE, spark)


def test_few_rows_are_embedded_and_so_are_many_with_as_many_cores() -> None:
    assert cost(LEFT, FEW).embedded < SPARK_START <= cost(LEFT, FEW).spark
    found = cost(counted(LEFT), MANY)
    assert found.embedded < found.spark


def test_a_cluster_wins_for_many_rows_only() -> None:
    cluster = Power(64)
    assert cost(counted(LEFT), MANY, spark=cluster).spark < cost(counted(LEFT), MANY, spark=cluster).embedded
    assert cost(counted(LEFT), FEW, spark=cluster).spark > cost(counted(LEFT), FEW, spark=cluster).embedded


def test_each_breaker_is_a_pass() -> None:
    join = Join("inner", LEFT, RIGHT, Call("eq", (ColumnRef(A), ColumnRef(B)), INT4))
    plans = (LEFT, counted(LEFT), counted(join), Sort(counted(join), (SortKey(ColumnRef(N)),)))
    seconds = [cost(plan, Size(10_000_000, 0)).embedded for plan in plans]
    assert seconds == [seconds[0] * passes for passes in (1, 2, 3, 4)]
    assert cost(Filter(LEFT, Call("eq", (ColumnRef(A), ColumnRef(A)), INT4)), FEW) == cost(LEFT, FEW)


def test_what_is_held_beyond_memory_costs() -> None:
    cluster, free = Power(2), Power(2)
    join = Join("inner", LEFT, RIGHT, None)
    grouped = estimate(counted(LEFT, A), [MANY], HERE, cluster)
    assert grouped.embedded > estimate(counted(LEFT, A), [MANY], free, cluster).embedded
    assert cost(counted(LEFT), MANY) == estimate(counted(LEFT), [MANY], free, free)  # one group
    assert estimate(join, [MANY, FEW], HERE, free).embedded == estimate(join, [MANY, FEW], free, free).embedded
    assert estimate(join, [MANY, MANY], HERE, free).embedded > estimate(join, [MANY, MANY], free, free).embedded


def test_what_the_kernel_computes_is_spark_s_time() -> None:
    found = with_kernel(Cost(1.0, 0.5), 3 * SPARK_ROWS / KERNEL_PASSES, Power(2))
    assert found == Cost(1.0, 2.0, 1.5)
    assert with_kernel(Cost(1.0, 0.5), 0.0, Power(2)) == Cost(1.0, 0.5)

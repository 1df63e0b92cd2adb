"""The embedded engine: queries over bound leaves, jobs, merging, parameters, batches, threads, cancelling."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT4, INT8, TEXT, SqlType, numeric
from executor.embedded import engine as engine_module
from executor.embedded.engine import EmbeddedEngine
from executor.embedded.results import OpenRows
from executor.engine import Inputs, Job
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Limit,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    Sort,
    SortKey,
    Values,
)
from planner.incremental.programs.program import State, Statement
from tests.embedded.sql import evaluate, rows_of
from tests.rig.beside import Beside, at_once
from tests.rig.process import wait_until

PRICE = SqlType("numeric", (15, 2))
KEY, AMOUNT = Column(1, "k", TEXT), Column(2, "amount", PRICE)
OUT_KEY, TOTAL, COUNT = Column(11, "k", TEXT), Column(12, "total", numeric(38, 2)), Column(13, "n", INT8)
DELTA = Delta(7, "sales", (KEY, AMOUNT), ("k", "amount"))
GROUPED = Aggregate(
    DELTA,
    ((OUT_KEY, ColumnRef(KEY)),),
    ((TOTAL, AggregateCall("sum", (ColumnRef(AMOUNT),), TOTAL.type)), (COUNT, AggregateCall("count", (), INT8))),
)
MAIN = State(
    "main",
    "aggregate",
    (OUT_KEY, TOTAL, COUNT),
    (OUT_KEY,),
    tuple((column, AggregateCall("sum", (ColumnRef(column),), column.type)) for column in (TOTAL, COUNT)),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    found = EmbeddedEngine(threads=1)
    yield found
    found.close()


def sales(*rows: tuple[str | None, str]) -> pa.Table:
    keys, amounts = zip(*rows, strict=True)
    return pa.table({"k": pa.array(keys, pa.string()), "amount": pa.array(map(Decimal, amounts), PRICE.arrow)})


def numbers(count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(count), pa.int64())})


N = Column(3, "n", INT8)
NUMBERS = Scan(9, "numbers", "view", (N,), ("n",))


def test_types_are_exact_and_nulls_group(engine: EmbeddedEngine) -> None:
    result = engine.query(GROUPED, {"d7": sales(("a", "1.50"), (None, "2"), ("a", "0.25"), (None, "3"))})
    assert result.schema == pa.schema([("c11", pa.string()), ("c12", pa.decimal128(38, 2)), ("c13", pa.int64())])
    assert sorted(rows_of(result), key=str) == [("a", Decimal("1.75"), 2), (None, Decimal("5.00"), 2)]


def test_inputs_change_while_statements_stay(engine: EmbeddedEngine) -> None:
    for count in (1, 5, 0, 3):
        assert engine.query(NUMBERS, {"v9": numbers(count)}).num_rows == count
    wider = pa.table({"other": pa.array(["x"]), "n": pa.array([4], pa.int32())})
    assert rows_of(engine.query(NUMBERS, {"v9": wider})) == [(4,)]
    assert rows_of(engine.query(NUMBERS, {"v9": numbers(2)})) == [(0,), (1,)]


@pytest.mark.slow
def test_more_plans_than_are_kept(engine: EmbeddedEngine) -> None:
    relations = [Filter(NUMBERS, Call("eq", (ColumnRef(N), Literal(i, INT8)), BOOL)) for i in range(300)]
    for _ in range(2):
        assert [rows_of(engine.query(relation, {"v9": numbers(300)})) for relation in relations] == [
            [(i,)] for i in range(300)
        ]


def test_parameters_are_typed_values(engine: EmbeddedEngine) -> None:
    chosen = Filter(NUMBERS, Call("gt", (ColumnRef(N), Parameter(2, INT8)), BOOL))
    named = Column(20, "p", TEXT)
    relation = Project(chosen, ((named, Parameter(0, TEXT)), (Column(21, "n", INT8), ColumnRef(N))))
    text = "it's $1 \\ \n é"
    assert rows_of(engine.query(relation, {"v9": numbers(4)}, (text, "unused", 2))) == [(text, 3)]
    assert rows_of(engine.query(relation, {"v9": numbers(4)}, (None, None, None))) == []


def test_a_job_merges_what_its_statements_give(engine: EmbeddedEngine) -> None:
    statements = (Statement("main", GROUPED), Statement("main", GROUPED))
    delta = sales(("a", "1"), ("b", "2"))
    result = engine.run(Job(1, statements, (MAIN,), Inputs({7: delta}), 0, 1))
    assert result.rows == 2
    run = result.runs["main"]
    assert isinstance(run, pa.Table)
    assert run.column_names == ["c11", "c12", "c13"]
    assert sorted(rows_of(run)) == [("a", Decimal(2), 2), ("b", Decimal(4), 2)]


def test_a_job_reads_statics(engine: EmbeddedEngine) -> None:
    known = Column(30, "known", TEXT)
    static = Snapshot("names", (known,), ("c30",))
    joined = Join("semi", DELTA, static, Call("eq", (ColumnRef(KEY), ColumnRef(known)), BOOL))
    grouped = Aggregate(joined, GROUPED.keys, GROUPED.aggregates)
    inputs = Inputs({7: sales(("a", "1"), ("b", "2"))}, {"names": pa.table({"c30": ["b"]})})
    result = engine.run(Job(1, (Statement("main", grouped),), (MAIN,), inputs, 0, 1))
    assert rows_of(result.runs["main"]) == [("b", Decimal(2), 1)]


def test_merging_keeps_names_and_order_of_concatenation(engine: EmbeddedEngine) -> None:
    values = State("values", "concatenate", (KEY,), ())
    first, second = pa.table({"x": ["b", "a"]}), pa.table({"y": ["a"]})
    assert engine.merge(values, [first, second]).to_pydict() == {"x": ["b", "a", "a"]}
    distinct = State("seen", "distinct", (KEY,), (KEY,))
    assert sorted(engine.merge(distinct, [first, second]).column("x").to_pylist()) == ["a", "b"]
    assert engine.merge(MAIN, []).num_rows == 0
    assert engine.merge(MAIN, []).schema.names == ["c11", "c12", "c13"]


def test_narrow_decimals_overflow_into_wide_ones(engine: EmbeddedEngine) -> None:
    product = Call("mul", (ColumnRef(AMOUNT), ColumnRef(AMOUNT)), numeric(30, 4))
    relation = Project(DELTA, ((Column(40, "p", product.type), product),))
    assert rows_of(engine.query(relation, {"d7": sales(("a", "2.50"))})) == [(Decimal("6.2500"),)]
    large = engine.query(relation, {"d7": sales(("a", "9999999999999.99"))})
    assert rows_of(large) == [(Decimal("99999999999999800000000000.0001"),)]


def test_what_exceeds_38_digits_is_an_error(engine: EmbeddedEngine) -> None:
    with pytest.raises(SqlError, match="22003"):
        evaluate(engine, "SELECT sum(x) FROM (VALUES (99999999999999999999999999999999999999), (1)) v(x)")


def opened(engine: EmbeddedEngine, count: int, owner: object = None) -> OpenRows:
    rows = engine.open(NUMBERS, {"v9": numbers(count)}, owner=owner)
    assert isinstance(rows, OpenRows)
    return rows


def test_streaming_gives_the_same_rows_and_may_stop(engine: EmbeddedEngine) -> None:
    batches = opened(engine, 200_000)
    first = next(batches)
    assert first.schema == pa.schema([("c3", pa.int64())])
    assert first.num_rows < 200_000
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 200_000
    stopped = opened(engine, 200_000)
    next(stopped)
    stopped.close()
    assert engine.query(NUMBERS, {"v9": numbers(2)}).num_rows == 2


def test_a_stream_is_cancelled_after_its_first_rows(engine: EmbeddedEngine) -> None:
    owner = object()
    stream = opened(engine, 3_000_000, owner)
    next(stream)
    engine.interrupt(owner)
    with pytest.raises(SqlError, match="57014"):
        list(stream)
    assert engine.query(NUMBERS, {"v9": numbers(2)}).num_rows == 2


def test_many_threads_at_once(engine: EmbeddedEngine) -> None:
    total = Aggregate(
        NUMBERS, (), ((Column(50, "s", numeric(38, 0)), AggregateCall("sum", (ColumnRef(N),), numeric(38, 0))),)
    )

    def work(count: int) -> None:
        for _ in range(20):
            assert rows_of(engine.query(total, {"v9": numbers(count)})) == [(Decimal(count * (count - 1) // 2),)]

    at_once(partial(work, 100 * i + 1) for i in range(6))


def test_cancelling_reaches_only_its_owner(engine: EmbeddedEngine) -> None:
    other = Column(4, "m", INT8)
    twin = Scan(10, "twin", "view", (other,), ("n",))
    pairs = Join(
        "inner",
        NUMBERS,
        twin,
        Call(
            "ne",
            (
                Call("mod", (Call("mul", (ColumnRef(N), ColumnRef(other)), INT8), Literal(7, INT8)), INT8),
                Literal(9, INT8),
            ),
            BOOL,
        ),
    )
    endless = Aggregate(pairs, (), ((Column(60, "n", INT8), AggregateCall("count", (), INT8)),))
    owner, stranger = object(), object()
    values = {"v9": numbers(1_000_000), "v10": numbers(1_000_000)}
    running = Beside(lambda: engine.query(endless, values, owner=owner))
    engine.interrupt(stranger)

    def ended() -> bool:  # a query cannot be interrupted before it has begun
        engine.interrupt(owner)
        return running.is_over

    wait_until(ended, 60, "end of the query")
    with pytest.raises(SqlError, match="57014"):
        running.result()
    assert engine.query(NUMBERS, {"v9": numbers(2)}).num_rows == 2


def test_a_failed_query_leaves_the_connection_usable(engine: EmbeddedEngine) -> None:
    quotient = Project(NUMBERS, ((Column(70, "q", INT8), Call("div", (Literal(1, INT8), ColumnRef(N)), INT8)),))
    for _ in range(3):
        with pytest.raises(SqlError, match="22012"):
            engine.query(quotient, {"v9": numbers(3)})
    assert rows_of(engine.query(quotient, {"v9": numbers(2).slice(1)})) == [(1,)]


def test_supports_names_what_it_cannot(engine: EmbeddedEngine) -> None:
    assert engine.supports((Statement("main", GROUPED),), (MAIN,)) is None
    strange = Project(DELTA, ((Column(80, "x", INT4), Call("no_such_function", (), INT4)),))
    assert engine.supports((Statement("main", strange),), (MAIN,)) == "function no_such_function is not supported"


def test_no_columns_and_no_rows(engine: EmbeddedEngine) -> None:
    one: Relation = Values((), ((),))
    assert rows_of(engine.query(Project(one, ((Column(-1, "", INT4), Literal(5, INT4)),)), {})) == [(5,)]
    assert engine.query(Values((N,), ()), {}).num_rows == 0
    limited = Limit(Sort(NUMBERS, (SortKey(ColumnRef(N), True, True),)), Parameter(0, INT8), Literal(1, INT8))
    assert rows_of(engine.query(limited, {"v9": numbers(5)}, (2,))) == [(3,), (2,)]


def test_no_files_from_sql(engine: EmbeddedEngine) -> None:
    connection = engine._instance().acquire()
    try:
        for text in (
            "SELECT * FROM read_csv('/etc/passwd')",
            "COPY (SELECT 1) TO '/tmp/x.csv'",
            "ATTACH '/tmp/x.db'",
            "SET threads = 4",
            "INSTALL httpfs",
        ):
            with pytest.raises(SqlError):
                connection.execute(text)
    finally:
        engine._instance().release(connection)


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 1000, 5000])
def test_long_chains_print_and_run(engine: EmbeddedEngine, count: int) -> None:
    chain: Scalar = Call("eq", (ColumnRef(N), Literal(0, INT8)), BOOL)
    for i in range(1, count):
        chain = Call("or", (chain, Call("eq", (ColumnRef(N), Literal(i, INT8)), BOOL)), BOOL)
    assert engine.query(Filter(NUMBERS, chain), {"v9": numbers(count + 5)}).num_rows == count


def test_too_deep_is_54001_or_runs(engine: EmbeddedEngine) -> None:
    deep: Scalar = ColumnRef(N)
    for _ in range(6000):
        deep = Call("abs", (deep,), INT8)
    with pytest.raises(SqlError, match="54001"):
        engine.query(Project(NUMBERS, ((Column(90, "d", INT8), deep),)), {"v9": numbers(1)})


def test_results_of_few_and_many_rows(engine: EmbeddedEngine) -> None:
    doubled = Project(
        NUMBERS, ((Column(70, "d", PRICE), Cast(ColumnRef(N), PRICE)), (Column(71, "n", INT8), ColumnRef(N)))
    )
    for count in (0, 3, 31, 32, 33, 5000, 2):
        result = engine.query(doubled, {"v9": numbers(count)})
        assert result.schema == pa.schema([("c70", PRICE.arrow), ("c71", pa.int64())])
        assert rows_of(result) == [(Decimal(n), n) for n in range(count)]


def test_merges_of_few_and_many_rows_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance with one thread merges few rows."""
    found = EmbeddedEngine()
    try:
        few = found.query_few(NUMBERS, {"v9": numbers(100)})
        monkeypatch.setattr(engine_module, "FEW_ROWS", -1)
        assert found.query_few(NUMBERS, {"v9": numbers(100)}).equals(few)
        found.interrupt()
        assert found.query(NUMBERS, {"v9": numbers(100)}).equals(few)
    finally:
        found.close()

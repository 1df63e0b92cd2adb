"""Exact arithmetic against Python's decimals: quotients at PostgreSQL's scale, long products, deviations."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from executor.embedded.functions import batches
from executor.embedded.functions.numbers import numeric_macros, quotients
from tests.rig.sampling import examples

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    batches.register_columns(connection, quotients.COLUMNS, batches.Batches())
    connection.execute(numeric_macros.STATEMENTS)
    yield connection
    connection.close()


def value(duck: duckdb.DuckDBPyConnection, text: str) -> Decimal:
    row = duck.execute(f"SELECT {text}").fetchone()
    assert row is not None
    found = row[0]
    assert isinstance(found, Decimal)
    return found


def digits_of_quotient(a: Decimal, b: Decimal, least: int) -> int:
    """The decimals by numeric.c, select_div_scale, limited to 20."""

    def leading(number: Decimal) -> tuple[int, int]:
        weight = number.adjusted() // 4
        return weight, int(abs(number).scaleb(-4 * weight, EXACT))

    (weight_a, first_a), (weight_b, first_b) = leading(a), leading(b)
    weight = weight_a - weight_b - (first_a <= first_b)
    return min(20, max(16 - 4 * weight, least, 0))


def rounded(number: Decimal, digits: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits), context=EXACT)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    a=st.integers(-(10**26), 10**26),
    b=st.integers(1, 10**26),
    scale=st.sampled_from((0, 2, 6, 18)),
    negative=st.booleans(),
)
def test_quotients(duck: duckdb.DuckDBPyConnection, a: int, b: int, scale: int, negative: bool) -> None:
    assume(a != 0)
    b = -b if negative else b
    left, right = Decimal(a).scaleb(-scale, EXACT), Decimal(b).scaleb(-scale, EXACT)
    wanted = rounded(EXACT.divide(left, right), digits_of_quotient(left, right, scale))
    assume(abs(wanted) < 10**17)
    name = "ms_divide_short" if abs(b) < 10**18 else "ms_divide"
    assert value(duck, f"{name}(({a})::HUGEINT, ({b})::HUGEINT, {scale}, {scale})") == wanted


@settings(max_examples=examples(60))
@given(
    a=st.integers(-(10**28), 10**28),
    b=st.integers(-(10**28), 10**28),
    scales=st.sampled_from(((18, 18), (20, 18), (20, 20), (2, 18), (6, 20))),
)
def test_products(duck: duckdb.DuckDBPyConnection, a: int, b: int, scales: tuple[int, int]) -> None:
    left, right = Decimal(a).scaleb(-scales[0], EXACT), Decimal(b).scaleb(-scales[1], EXACT)
    wanted = rounded(EXACT.multiply(left, right), 18)
    assume(abs(wanted) < 10**17)
    assert value(duck, f"ms_product18(({a})::HUGEINT, ({b})::HUGEINT, {scales[0]}, {scales[1]})") == wanted


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=8), st.sampled_from((0, 2, 4)))
def test_deviations(duck: duckdb.DuckDBPyConnection, numbers: list[int], scale: int) -> None:
    count, total, squares = len(numbers), sum(numbers), sum(number * number for number in numbers)
    over = Decimal(count * squares - total * total).scaleb(-2 * scale, EXACT)
    assume(over > 0)
    under = Decimal(count * (count - 1))
    digits = digits_of_quotient(over, under, 2 * scale)
    variance = rounded(EXACT.divide(over, under), digits)
    assume(variance < 10**18)  # the limits of 38 digits, 20 of them decimals
    arguments = f"{count}, ({total})::HUGEINT, ({squares})::HUGEINT, {scale}, true"
    assert value(duck, f"ms_variance({arguments})") == variance
    assert value(duck, f"ms_deviation({arguments})") == rounded(variance.sqrt(EXACT), digits)


@given(
    pairs=st.lists(st.tuples(st.integers(-(10**37), 10**37), st.integers(-(10**19), 10**19)), min_size=1, max_size=20),
    scale=st.sampled_from((0, 2, 5, 18, 20)),
)
def test_decimals_of_quotients(duck: duckdb.DuckDBPyConnection, pairs: list[tuple[int, int]], scale: int) -> None:
    rows = ", ".join(f"(({a})::HUGEINT, ({b})::HUGEINT)" for a, b in pairs)
    found = duck.execute(f"SELECT quotient_decimals(a, b, {scale}, 3) FROM (VALUES {rows}) v (a, b)").fetchall()
    for (a, b), (decimals,) in zip(pairs, found, strict=True):
        left, right = (Decimal(item).scaleb(-scale, EXACT) for item in (a, b))
        assert (decimals is None) == (b == 0)
        if a and b:
            assert decimals == digits_of_quotient(left, right, 3)


@pytest.mark.parametrize(
    ("value_", "decimals", "shown"),
    [
        ("1.10", 20, "1.10000000000000000000"),
        ("-12345.5", 12, "-12345.500000000000"),
        ("7", 0, "7"),
        ("2.25", 0, "2.25"),
        ("0", None, "0.00000000000000000000"),
        ("1.5", None, "1.5000000000000000"),
        ("-10000", None, "-10000.0000000000000000"),
        (None, 4, None),
    ],
)
def test_texts_of_quotients(
    duck: duckdb.DuckDBPyConnection, value_: str | None, decimals: int | None, shown: str | None
) -> None:
    query = "SELECT quotient_shown(CAST(CAST(? AS DECIMAL(38, 20)) AS VARCHAR), CAST(? AS INTEGER))"
    assert duck.execute(query, [value_, decimals]).fetchall() == [(shown,)]

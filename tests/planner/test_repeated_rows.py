"""Many literal rows become a projection of their parameters if all have the same form."""

from __future__ import annotations

from decimal import Decimal

import pytest

from catalog.values.types import FLOAT8, INT4, INT8, NUMERIC, TEXT, SqlType, numeric
from planner.algebra.nodes import (
    Call,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Snapshot,
    Values,
)
from planner.algebra.validate import validate
from planner.lowering.repeated_rows import repeated_rows

MONEY = numeric(10, 2)


def values(*rows: tuple[Scalar, ...]) -> Values:
    columns = tuple(Column(place + 1, f"v{place}", cell.type) for place, cell in enumerate(rows[0]))
    return Values(columns, rows)


def row(number: int) -> tuple[Scalar, ...]:
    """id, price and a name, as a driver writes them."""
    first = 3 * number
    return (
        Parameter(first, INT4),
        Cast(Parameter(first + 1, FLOAT8), MONEY),
        Call("lower", (Parameter(first + 2, TEXT),), TEXT),
    )


def test_rows_that_are_made_alike_are_one_projection() -> None:
    whole = values(*(row(number) for number in range(20)))
    found = repeated_rows(whole)
    assert found is not None
    validate(found.relation)
    assert found.relation.columns == whole.columns
    assert found.parameters.rows == tuple(
        tuple(
            Parameter(index, kind) for index, kind in zip(range(3 * at, 3 * at + 3), (INT4, FLOAT8, TEXT), strict=True)
        )
        for at in range(20)
    )
    match found.relation:
        case Project(input=Snapshot(columns=(number, price, name)), outputs=outputs):
            assert [value for _, value in outputs] == [
                ColumnRef(number),
                Cast(ColumnRef(price), MONEY),
                Call("lower", (ColumnRef(name),), TEXT),
            ]
        case _:
            pytest.fail(str(found.relation))


def _subquery() -> Relation:
    column = Column(9, "x", INT4)
    return Values((column,), ((Literal(1, INT4),),))


def _counted(kind: SqlType) -> tuple[Scalar, ...]:
    return (Call("add", (Parameter(0, kind), Literal(Decimal(1), kind)), kind),)


@pytest.mark.parametrize(
    "rows",
    [
        [row(0)] * 3,  # too few rows
        [row(number) for number in range(20)] + [(Literal(1, INT4), *row(20)[1:])],  # one cell is a constant
        [row(number) for number in range(20)] + [(Cast(Parameter(60, INT8), INT4), *row(20)[1:])],  # of another type
        [(Literal(number, INT4),) for number in range(20)],  # without parameters
        [_counted(NUMERIC)] * 20,  # whose display scale counts
    ],
)
def test_other_rows_stay(rows: list[tuple[Scalar, ...]]) -> None:
    assert repeated_rows(values(*rows)) is None

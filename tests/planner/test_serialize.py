"""Programs are equal after conversion to JSON and back: those of the planner, and any literal of any type."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from catalog.values.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT8,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    array,
    numeric,
)
from planner.algebra.nodes import Call, Column, Literal, Project, Relation, Scalar, Snapshot
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.incremental.plan import plan
from planner.incremental.programs.documents import VERSION, decode_program, encode_program
from planner.incremental.programs.program import Path, Program, State, Statement
from tests.planner.builders import call, fresh, project, query, rel, stream, table
from tests.planner.test_incremental import SHAPES, Inputs


def _back(program: Program) -> Program:
    return decode_program(json.loads(json.dumps(encode_program(program), allow_nan=False)))


@pytest.mark.parametrize("name", SHAPES)
def test_programs_round_trip(name: str) -> None:
    program = plan(query(SHAPES[name](Inputs()))).program
    assert _back(program) == program
    validate(_back(program).final)


_literals = st.one_of(
    st.builds(Literal, st.booleans(), st.just(BOOL)),
    st.builds(Literal, st.integers(), st.just(INT8)),
    st.builds(Literal, st.floats(allow_nan=False), st.just(FLOAT8)),
    st.builds(Literal, st.decimals(allow_nan=False), st.just(numeric(38, 10))),
    st.builds(Literal, st.text(), st.just(TEXT)),
    st.builds(Literal, st.binary(), st.just(BYTEA)),
    st.builds(Literal, st.dates(), st.just(DATE)),
    st.builds(Literal, st.times(), st.just(TIME)),
    st.builds(Literal, st.datetimes(), st.just(TIMESTAMP)),
    st.builds(Literal, st.datetimes(timezones=st.just(dt.UTC)), st.just(TIMESTAMPTZ)),
    st.builds(Literal, st.tuples(st.integers(), st.integers(), st.integers()), st.just(INTERVAL)),
    st.builds(Literal, st.none(), st.sampled_from((TEXT, array(INT8)))),
)


def _of(relation: Relation) -> Program:
    column = Column(1, "Path", INT8, False)  # names of classes are allowed like any other
    state = State("Program", "aggregate", (column,), (column,))
    statement = Statement("State", Snapshot("Static", (column,), ("Path",)))
    return Program((), (state,), (Path(0, (7,), (statement,)),), relation, relation.columns)


@given(literals=st.lists(_literals, min_size=1, max_size=5))
def test_literals_round_trip(literals: list[Literal]) -> None:
    relation = Project(rel(table("t", "a")), tuple((fresh("x", item.type), item) for item in literals))
    program = _back(_of(relation))
    assert program == _of(relation)
    assert isinstance(program.final, Project)
    read: list[Any] = [item for _, item in program.final.outputs]
    assert [type(item.value) for item in read] == [type(item.value) for item in literals]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), Decimal("NaN")])
def test_values_that_json_lacks(value: Any) -> None:
    sql_type: SqlType = FLOAT8 if isinstance(value, float) else numeric(10, 2)
    program = _back(_of(Project(rel(table("t", "a")), ((fresh("x", sql_type), Literal(value, sql_type)),))))
    assert isinstance(program.final, Project)
    read = program.final.outputs[0][1]
    assert isinstance(read, Literal)
    assert str(read.value) == str(value)


@pytest.mark.slow
def test_deep_expressions_do_not_overflow_the_stack() -> None:
    leaf = stream("s", "k")
    value: Scalar = leaf.k
    for _ in range(3000):
        value = call("add", value, 1)
    program = _back(_of(project(leaf, x=value)))
    validate(program.final)
    assert sum(isinstance(node, Call) for node in walk(program.final)) == 3000


def test_version_1_is_read() -> None:
    """Its paths name one stream, its statements have no method, and the reader of a state may come after the statement
    that fills it."""
    program = _of(rel(table("t", "a")))
    reads = Statement("other", Snapshot("State", *_leaf_of(program)))
    fills = program.paths[0].statements[0]
    data = encode_program(replace(program, paths=(Path(0, (7,), (fills, reads)),)))
    assert data["version"] == VERSION == 2
    older = {**data, "version": 1, "program": _as_version_1(data["program"])}
    assert decode_program(older).paths == (Path(0, (7,), (reads, fills)),)


def _leaf_of(program: Program) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    leaf = program.paths[0].statements[0].relation
    assert isinstance(leaf, Snapshot)
    return leaf.columns, leaf.sources


def _as_version_1(value: Any) -> Any:
    match value:
        case {"p": ["Path", _, [stream], statements]}:
            return {"p": ["Path", stream, _as_version_1(statements)]}
        case {"p": ["Statement", target, relation, _]}:
            return {"p": ["Statement", target, relation]}
        case dict():
            return {name: _as_version_1(item) for name, item in value.items()}
        case list():
            return [_as_version_1(item) for item in value]
        case _:
            return value


def test_other_versions_are_refused() -> None:
    data = encode_program(_of(rel(table("t", "a"))))
    with pytest.raises(ValueError, match="version"):
        decode_program({**data, "version": VERSION + 1})


def test_other_classes_are_refused() -> None:
    data = encode_program(_of(rel(table("t", "a"))))
    data["nodes"][0][0] = "Popen"
    with pytest.raises(KeyError):
        decode_program(data)

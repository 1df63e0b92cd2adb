"""Traces are named by what they hold: equal traces of two views have one name, and others have others."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

import pytest
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.values.errors import SqlError
from planner.algebra.construction import rename_columns
from planner.algebra.nodes import Column
from planner.algebra.walk import produced_columns
from planner.incremental.names import stored_name
from planner.incremental.plan import plan
from planner.incremental.programs.canonical import Origin
from planner.incremental.programs.program import Program
from planner.incremental.programs.retargeting import traces_of
from planner.statements.statement import CreateView, Query
from tests.planner.bound import bound, catalog_of, query_of
from tests.planner.builders import query
from tests.planner.test_incremental import SHAPES, Inputs
from tests.rig.grouped_shapes import shape
from tests.rig.sampling import sample

RELATIONS: Final = (
    "create table t1 (item int, n int)",
    "create table t2 (item int, n int)",
    "create foreign table s1 (d int, site int, v int) server stream",
    "create foreign table s2 (d int, site int, v int) server stream",
    "create foreign table s3 (at timestamp, stamp timestamptz, site int, price numeric(12, 2), large bigint)"
    " server stream options (watermark 'at - interval ''1 min''')",
)
#: Texts of one meaning.
EQUAL: Final = [
    (
        "select site, count(*), sum(v) from s1 group by site",
        "select x.site as place, count(*) as n, sum(x.v) as total from s1 as x group by x.site",
    ),
    (
        "select site, count(*) from s1 where v > 3 group by site",
        "select p, count(*) from s1 as r (x, p, w) where w > 3 group by p",
    ),
    (
        "select t.n, max(v) from s1 join t1 t on d = item group by t.n",
        "select m.number, max(l.w) from s1 as l (k, x, w) join t1 as m (k, number) on l.k = m.k group by m.number",
    ),
    (
        "select site, count(distinct v), array_agg(d) from s1 group by site",
        "select a, count(distinct b), array_agg(c) from s1 as s (c, a, b) group by a",
    ),
    (
        "with recursive r(i) as (select 1 union all select i + 1 from r where i < 3)"
        " select i, count(*) from s1 join r on v = i group by i",
        "with recursive q(j) as (select 1 union all select j + 1 from q where j < 3)"
        " select j as k, count(*) from s1 join q on v = j group by j",
    ),
]
#: Texts that differ in one thing each.
DIFFERENT: Final = [
    "select site, count(*), sum(v) from s1 where d > 1 group by site",
    "select site, count(*), sum(v) from s1 where d > 2 group by site",
    "select site, count(*), sum(v) from s1 where d >= 1 group by site",
    "select site, count(*), sum(v) from s1 where v > 1 group by site",
    "select site, count(*), sum(v) from s1 group by site",
    "select site, count(*), max(v) from s1 group by site",
    "select site, count(v), max(v) from s1 group by site",
    "select d, count(*), sum(v) from s1 group by d",
    "select site, d, count(*) from s1 group by site, d",
    "select site, v, count(*) from s1 group by site, v",
    "select distinct site from s1",
    "select site, count(*), sum(v) from s2 group by site",
    "select site::bigint, count(*), sum(v) from s1 group by 1",
    "select site, count(*), sum(v::numeric) from s1 group by site",
    "select site, count(*), sum(v + 1) from s1 group by site",
    "select site, count(*), sum(v + 1.0) from s1 group by site",
    "select site, array_agg(v) from s1 group by site",
    "select n, count(*) from s1 join t1 on d = item group by n",
    "select n, count(*) from s1 join t2 on d = item group by n",
    "select n, count(*) from s1 join t1 on v = item group by n",
    "select n, count(*) from s1 join t1 on d = item and n > 1 group by n",
    "select site, sum(price) from s3 group by site",
    "select site, sum(large) from s3 group by site",
    "select stamp::date, count(*) from s3 group by 1",
    "select at::date, count(*) from s3 group by 1",
]


def _program(text: str, origin: Origin = Origin(), catalog: Catalog | None = None) -> Program:  # noqa: B008
    return plan(query_of(text, catalog or catalog_of(RELATIONS)), origin=origin, tables="frozen").program


def _names(program: Program) -> list[str]:
    return [item.name for item in traces_of(program)]


def _shape(program: Program) -> object:
    """What a program is but for what its columns are called."""

    def of(columns: Iterable[Column]) -> list[tuple[str, object]]:
        return [(stored_name(column), column.type) for column in columns]

    states = [(item.name, item.kind, of(item.columns), of(item.key)) for item in program.states]
    statics = [(item.name, of(item.columns)) for item in program.statics]
    return states, statics, [(path.id, path.inputs, len(path.statements)) for path in program.paths]


@pytest.mark.parametrize("name", SHAPES)
def test_the_numbers_of_columns_do_not_count(name: str) -> None:
    """Each relation by hand has numbers of its own."""
    first, second = (plan(query(SHAPES[name](Inputs()))).program for _ in "12")
    assert _shape(first) == _shape(second)
    assert first.states == second.states
    assert [path.statements for path in first.paths] == [path.statements for path in second.paths]
    assert first.statics == second.statics


@pytest.mark.parametrize("name", SHAPES)
def test_columns_of_traces_are_called_by_their_places(name: str) -> None:
    program = plan(query(SHAPES[name](Inputs()))).program
    for item in traces_of(program):
        assert list(map(stored_name, item.columns)) == [f"c{place}" for place in range(1, len(item.columns) + 1)]


@pytest.mark.parametrize("seed", sample(range(200), range(40)))
def test_neither_numbers_nor_names_of_columns_count(seed: int) -> None:
    """Of any grouping: the same relation with numbers in another order, as after other views, and with aliases."""
    given = query_of(shape(seed), catalog_of(RELATIONS))
    try:
        first = plan(given).program
    except SqlError as error:
        assert error.sqlstate == "0A000"
        return
    assert _shape(first) == _shape(plan(_other(given, random.Random(seed))).program)


def _other(given: Query, chance: random.Random) -> Query:
    columns = sorted(produced_columns(given.relation), key=lambda item: item.id)
    numbers = chance.sample(range(1000, 1000 + 10 * len(columns)), len(columns))
    pairs = zip(columns, numbers, strict=True)
    mapping = {column: replace(column, id=number, name=f"x{number}") for column, number in pairs}
    return replace(given, relation=rename_columns(given.relation, mapping))


@pytest.mark.parametrize("texts", EQUAL)
def test_texts_of_one_meaning_have_the_same_traces(texts: tuple[str, str]) -> None:
    first, second = map(_program, texts)
    assert _shape(first) == _shape(second)


def test_names_of_relations_do_not_count() -> None:
    """An input counts by its oid."""
    texts = ("create foreign table {} (d int, v int) server stream", "create table {} (item int, n int)")
    first, second = (catalog_of(text.format(f"{name}{place}") for place, text in enumerate(texts)) for name in "ab")
    assert first.objects.keys() == second.objects.keys()
    query = "select n, count(*) from {0}0 join {0}1 on d = item group by n"
    assert _shape(_program(query.format("a"), catalog=first)) == _shape(_program(query.format("b"), catalog=second))


def test_other_relations_have_other_names() -> None:
    found = [name for text in DIFFERENT for name in _names(_program(text)) if name.startswith("state_")]
    assert len(found) == len(set(found)) >= len(DIFFERENT)


def test_types_of_inputs_count() -> None:
    kinds = ("int", "bigint", "numeric(12, 2)", "numeric(12, 3)", "double precision")
    catalogs = (catalog_of((f"create foreign table s (k int, v {kind}) server stream",)) for kind in kinds)
    names = [_names(_program("select k, max(v) from s group by k", catalog=item)) for item in catalogs]
    assert len(set(map(tuple, names))) == len(kinds)


def test_the_time_zone_counts_where_the_relation_depends_on_it() -> None:
    zoned, plain = "select stamp::date, count(*) from s3 group by 1", "select site, count(*) from s1 group by 1"
    zones = [Origin(zone) for zone in ("UTC", "Asia/Tokyo")]
    assert len({tuple(_names(_program(zoned, origin))) for origin in zones}) == 2
    assert len({tuple(_names(_program(plain, origin))) for origin in zones}) == 1


def test_the_server_of_the_inputs_counts() -> None:
    text = "select n, count(*) from s1 join t1 on d = item group by n"
    first, second = (set(_names(_program(text, Origin(server=server)))) for server in "ab")
    assert first.isdisjoint(second)


def test_when_rows_expire_counts() -> None:
    text = "select tumble(at, '1 hour') as hour, count(*) from s3 group by 1"
    always, one, two = (_states(f"create view v{of} as {text}") for of in ("", _for("1 hour"), _for("2 hours")))
    assert len(always) == 1
    assert len(one) == len(two) == 2
    assert len(one & two) == 1, "the watermark is the same"
    assert always.isdisjoint(one | two)
    assert one == _states(f"create view w{_for('60 minutes')} as {text}")


def _for(length: str) -> str:
    return f" with (retention = '{length}')"


def _states(text: str) -> set[str]:
    statement = bound(text, catalog_of(RELATIONS))
    assert isinstance(statement, CreateView)
    return {state.name for state in plan(statement.query, statement.keeping).program.states}


def test_equal_states_of_one_view_are_one() -> None:
    """Both arms of a UNION ALL add the same."""
    arms = "select site, count(*) from (select site from s1 union all select site as other from s1) q group by site"
    (state,) = _program(arms).states
    assert state.kind == "aggregate"

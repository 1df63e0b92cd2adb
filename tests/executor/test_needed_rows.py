"""The rows of states that statements need beside a few rows of their inputs: views are those of all rows.

Two databases get the same rows; one chooses the rows of its states, whatever their number, the other reads all.
"""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from executor.database.database import Database
from executor.options import Options
from executor.views import needed_rows
from planner.incremental.programs.needed_rows import Leaf, Passed, Sought, needs_of
from planner.incremental.programs.program import needed_deltas
from tests.executor.client import Client
from tests.executor.test_followed_losses import ON, STREAMS, VIEWS, settle
from tests.rig.sampling import sample

MORE: Final = {
    "joined": ("", f"SELECT a.k, a.x, b.x AS y FROM a JOIN b ON {ON}"),
    "by_text": ("", "SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k::text = b.k::text AND a.at = b.at AND a.x >= b.x"),
    "by_time": ("", "SELECT a.k, b.x FROM a FULL JOIN b ON a.k IS NOT DISTINCT FROM b.k AND a.at = b.at"),
    "exists": ("", f"SELECT a.k, a.x FROM a WHERE EXISTS (SELECT FROM b WHERE {ON} AND a.x <> b.x)"),
    "itself": ("", "SELECT l.k, l.x, r.x AS y FROM a l LEFT JOIN a r ON l.k = r.k AND r.at = l.at AND l.x < r.x"),
    "three": ("", f"SELECT a.k, b.x, c.x AS y FROM a JOIN b ON {ON} JOIN a c ON c.x = b.x AND c.at = b.at"),
    "sessions": ("retention = '9 min'", "SELECT session(at, '2 min') AS s, k, count(*) FROM a GROUP BY 1, 2"),
}  # fmt: skip


def insert(clients: list[Client], drawn: random.Random, minute: int) -> None:
    """A few rows about some minute, in one transaction, in both databases; keys and times may be NULL."""
    statements = []
    for _ in range(drawn.randint(1, 4)):
        at = minute - drawn.choice((0, 0, 1, 1, 2, 3, 5, 12))
        time = "NULL" if drawn.random() < 0.05 else f"timestamp '2024-01-01' + interval '{at} min'"
        key = "NULL" if drawn.random() < 0.1 else str(drawn.randint(0, 3))
        statements.append(f"INSERT INTO {drawn.choice('ab')} SELECT {key}, {time}, {drawn.randint(0, 4)}")
    for client in clients:
        client.run("BEGIN")
        for statement in statements:
            client.run(statement)
        client.run("COMMIT")


@pytest.mark.parametrize("seed", sample(range(10), (0, 1)))
def test_views_are_those_of_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, whole: bool) -> None:
    drawn, steps, minute = random.Random(seed), 120 if whole else 50, 0
    views = {name: item for name, item in (VIEWS | MORE).items() if not item[0] or name == "sessions"}
    with (
        closing(Database(Options(tmp_path / "few", spark_enabled=False))) as few,
        closing(Database(Options(tmp_path / "all", spark_enabled=False))) as every,
    ):
        clients = [Client(few), Client(every)]
        for client in clients:
            client.run(STREAMS)
            for name, (options, query) in views.items():
                client.run(f"CREATE VIEW v_{name} {f'WITH ({options})' if options else ''} AS {query}")
        for _ in range(steps):
            minute += drawn.choice((0, 0, 1, 1, 2, 9))
            insert(clients, drawn, minute)
            if drawn.random() < 0.6:
                continue
            found = []
            is_settled = drawn.random() < 0.3
            for database, client, many in zip((few, every), clients, (0, 10**9), strict=True):
                monkeypatch.setattr(needed_rows, "MANY", many)
                if is_settled:
                    settle(database)
                found.append({name: sorted(client.run(f"SELECT * FROM v_{name}"), key=str) for name in views})
            assert found[0] == found[1]


def test_what_is_needed_of_states(tmp_path: Path) -> None:
    """Beside rows of a those of b with their keys; beside rows of b those of a with their keys, and those that pass."""
    with closing(Database(Options(tmp_path, spark_enabled=False))) as database:
        client = Client(database)
        client.run(STREAMS)
        client.run(f"CREATE VIEW v AS {VIEWS['left'][1]}")
        (runtime,) = database.core.runtimes()
        (path,) = runtime.program.paths
        a, b = (next(oid for oid, item in database.core.streams.items() if item.stream.name == name) for name in "ab")
        beside = {
            oid: needs_of(item.relation for item in path.statements if needed_deltas(item.relation) <= {oid})
            for oid in (a, b)
        }
        kept = {item.name for item in runtime.program.states if len(item.columns) > 1}
        of_a, of_b = ({name: needs for name, needs in beside[oid].items() if name in kept} for oid in (a, b))
        (needed,) = of_a.values()
        assert needed
        assert all(isinstance(need, Sought) and need.among == Leaf(a, "k") for need in needed)
        assert len(of_b) == 2
        (joined,) = (needs for needs in of_b.values() if needs and len(set(needs)) > 1)
        assert {type(need) for need in joined} == {Sought, Passed}
        assert all(need.among == Leaf(b, "k") for need in joined if isinstance(need, Sought))
        assert all(need.upto == Leaf(b, "at") for need in joined if isinstance(need, Passed))


def test_a_condition_that_keeps_other_rows_does_not_count(tmp_path: Path) -> None:
    """Without an equality of the streams' columns all rows are needed."""
    with closing(Database(Options(tmp_path, spark_enabled=False))) as database:
        client = Client(database)
        client.run(STREAMS)
        client.run("CREATE VIEW v AS SELECT a.x FROM a JOIN b ON a.k + 1 = b.k AND b.at >= a.at AND a.at >= b.at")
        (runtime,) = database.core.runtimes()
        (path,) = runtime.program.paths
        needs = needs_of(item.relation for item in path.statements)
        kept = [item.name for item in runtime.program.states if item.kind == "concatenate"]
        assert [needs[name] for name in kept if name in needs] == [None, None]

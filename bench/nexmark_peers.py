"""Nexmark beside other streaming engines: the same events in the same CSV files on each side, two cores, in one run.

What counts is the time from the first byte until the result over all events is there:

- Millstream: COPY of each file into streams with a continuous view until a client has read all rows of the view. This
  includes parsing CSV, the log that makes events durable, and sending the result, which the peers drop.
- Millstream, following: streams that follow the folder of files, from CREATE FOREIGN TABLE until a client has read all
  rows of the view. This includes reading through each file once more, which decides whether it arrives.
- Flink (SQL, PyFlink), Spark (Structured Streaming) and Pathway: from the submission of a job that reads the files to
  its end, results dropped, less the time of the job over one file of ``EPOCH`` events. They keep nothing durable.
  Flink's times have milliseconds, and Pathway's euros are doubles.

Millstream and the JVMs have the same limit of memory; Pathway has none.

Each system may take all events as one batch, and has run the query once over a small sample before. The benchmark
leaves a peer out of a query, and names it, where its result has another number of rows. Processes are warm; "cold" is
the first query from the start of the process on. The systems take turns, query by query. Since a machine with other
work gives processes with more threads more of its cores, the rates are also printed for each second of processor time
(with that of compilers and garbage collectors of JVMs, without that of Millstream's client). ``python -m bench
nexmark_peers`` installs the peers into the user's cache folder; a run of all benchmarks leaves it out.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.client import Client
from bench.harness import Rig, Row, connect, processor_time
from bench.peers.process import BYTES, MEMORY, Cost, FailedError, Peer, Running
from tests.rig.benchmarks import FOLDER, queries
from tests.rig.nexmark import EPOCH, FILL_SIDE, RELATIONS, SIDE, Nexmark, create
from tests.rig.server import Millstream

TITLE: Final = "Nexmark beside other streaming engines: events in CSV files until the result is there"
#: Events at scale factor 1, and the files in which they lie; events of the sample.
EVENTS: Final = 500_000
FILES: Final = 4
SAMPLE: Final = 5_000
CORES: Final = 2
FIRST: Final = "q0"

FLINK: Final = Peer(
    "Flink",
    "flink_sql.py",
    # Queries in SQL alone need none of the packages for functions in Python.
    install=(
        *("--no-deps", "apache-flink==2.3.0", "apache-flink-libraries==2.3.0", "py4j==0.10.9.9", "cloudpickle==3.1.3"),
        *("python-dateutil", "pytz", "ruamel.yaml", "six", "typing_extensions"),
    ),
    environment={"JAVA_TOOL_OPTIONS": f"-Xmx{MEMORY}", "_python_worker_execution_mode": "process"},
)
SPARK: Final = Peer("Spark", "spark_streaming.py", (MEMORY, str(FOLDER / "nexmark")))
PATHWAY: Final = Peer(
    "Pathway", "pathway_tables.py", install=("pathway==0.33.0",), environment={"PATHWAY_THREADS": str(CORES)}
)
PEERS: Final = (FLINK, SPARK, PATHWAY)

_NO_FRAME: Final = "an OVER window takes no rows that change"
_TWICE: Final = (
    "a join or a grouping over a grouping needs append mode, which withholds what a watermark does not close"
)
_NO_RANK: Final = "row_number() is not for streams"
_NO_DISTINCT: Final = "DISTINCT aggregates are not for streams"
_NO_FUNCTION: Final = "needs a function of texts that tables lack, thus Python for each row"
_SIMPLE: Final = "has no short form as tables and windows"
#: Why a peer does not run a query.
LEFT_OUT: Final[Mapping[str, Mapping[str, str]]] = {
    "Flink": {"q6": _NO_FRAME},
    "Spark": {
        **dict.fromkeys(("q4", "q5", "q7", "q8"), _TWICE),
        **dict.fromkeys(("q6", "q9", "q18", "q19"), _NO_RANK),
        **dict.fromkeys(("q15", "q16"), _NO_DISTINCT),
    },
    "Pathway": {
        **dict.fromkeys(("q6", "q8", "q9", "q10", "q13", "q15", "q16", "q18", "q19"), _SIMPLE),
        **dict.fromkeys(("q14", "q21", "q22"), _NO_FUNCTION),
    },
}


class Input(Struct, frozen=True):
    """Folders of files, each with a folder for each relation: of all events, of the sample, and of ``EPOCH`` events."""

    events: Path
    sample: Path
    least: Path


class Case(Struct, frozen=True):
    """A query and what its runs have taken, round by round; ``rows`` are the input's."""

    name: str
    rows: int
    ours: Sequence[Cost]
    following: Sequence[Cost]
    peers: Mapping[str, Sequence[Cost]]


def run(rig: Rig) -> list[Row]:
    """All queries, all systems one after the other in each round."""
    inputs = _inputs(rig, "plain", False)
    headed = _inputs(rig, "headed", True)
    with ExitStack() as stack:
        stack.enter_context(_on_cores())
        started = time.perf_counter()
        server = stack.enter_context(rig.millstream(spark_enabled=False, source_poll=0.1, memory_limit=BYTES))
        client = stack.enter_context(connect(server))
        _copied(server, client, FIRST, inputs.events)
        cold = time.perf_counter() - started
        rows, running = [], []
        for peer in PEERS:
            started = time.perf_counter()
            running.append(Running(peer, rig.folder / f"{peer.name}.log"))
            stack.callback(running[-1].close)
            running[-1].run(FIRST, headed.events if peer is PATHWAY else inputs.events)
            taken = time.perf_counter() - started
            rows.append(Row(f"{FIRST}, cold", cold, "s", taken, f"s {peer.name}", 1.0, "ahead", "less"))
        cases = []
        for path in queries("nexmark"):
            sources = [(each, headed if each.peer is PATHWAY else inputs) for each in running]
            cases.append(_case(rig, server, client, path.stem, inputs, sources))
            print("\n".join(map(_line, _rows(cases[-1]))), flush=True)
    return [row for case in cases for row in _rows(case)] + _means(cases) + rows + [_load()]


def _inputs(rig: Rig, name: str, header: bool) -> Input:
    folder = rig.folder / name
    counts = {"events": (int(EVENTS * rig.scale), FILES), "sample": (SAMPLE, CORES), "least": (EPOCH, 1)}
    for kind, (events, files) in counts.items():
        for relation, columns in RELATIONS.items():
            target = folder / kind / relation
            target.mkdir(parents=True)
            for number in range(files):
                data = Nexmark().csv(relation, events * number // files, events * (number + 1) // files)
                # A table of Pathway's has a column "id" of its own.
                names = ["number" if name == "id" else name for name in re.findall(r"(?:^|, )(\w+)", columns)]
                first = ",".join(names).encode() + b"\n" if header else b""
                (target / f"{number:03d}.csv").write_bytes(first + data)
    return Input(*(folder / kind for kind in counts))


@contextmanager
def _on_cores() -> Iterator[None]:
    """All that is started runs on so many cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:CORES])
    yield
    os.sched_setaffinity(0, before)


def _case(
    rig: Rig, server: Millstream, client: Client, name: str, inputs: Input, running: Sequence[tuple[Running, Input]]
) -> Case:
    expected = _rows_of_sample(client, name, inputs.sample)
    able = [
        (each, its)
        for each, its in running
        if name not in LEFT_OUT[each.peer.name] and _has_rows(each, its, name, expected)
    ]
    ours: list[Cost] = []
    following: list[Cost] = []
    peers: dict[str, list[Cost]] = {each.peer.name: [] for each, _ in able}
    for _ in range(rig.rounds):
        ours.append(_copied(server, client, name, inputs.events))
        following.append(_followed(server, client, name, inputs.events))
        for each, its in able:
            peers[each.peer.name].append(_beyond_start(each.run(name, its.events), each.run(name, its.least)))
    return Case(name, _count(inputs.events, _read_by(_query(name))), ours, following, peers)


def _has_rows(each: Running, its: Input, name: str, expected: int) -> bool:
    """Whether the peer runs the query and the sample's result has as many rows as expected; prints why not."""
    try:
        found = each.rows(name, its.sample)
    except FailedError as error:
        print(error, flush=True)
        return False
    if found != expected:
        print(f"{name} of the sample has {expected} rows, and {found} by {each.peer.name}", flush=True)
    return found == expected


def _beyond_start(whole: Cost, start: Cost) -> Cost:
    """What a run takes besides its start, but a tenth of the run at least: on a busy machine the start alone may take
    longer than all of the next run."""
    seconds = max(whole.seconds - start.seconds, whole.seconds / 10)
    return Cost(seconds, max(whole.processor - start.processor, whole.processor / 10))


def _rows(case: Case) -> list[Row]:
    """The query beside each peer, and by processor time."""
    rows = []
    for name, costs in case.peers.items():
        for ours, how in ((case.ours, ""), (case.following, ", following")):
            rows += [_row(case, f"{case.name}{how}", "seconds", "rows/s", name, ours, costs)]
        rows += [_row(case, f"{case.name}, processor", "processor", "rows/s of a core", name, case.ours, costs)]
    return rows


def _row(
    case: Case, title: str, measure: str, unit: str, name: str, ours: Sequence[Cost], theirs: Sequence[Cost]
) -> Row:
    mine, others = (tuple(case.rows / getattr(cost, measure) for cost in costs) for costs in (ours, theirs))
    return Row(title, statistics.median(mine), unit, statistics.median(others), name, 1.0, "ahead", runs=mine)


def _line(row: Row) -> str:
    """A figure as soon as it is there, since all take long."""
    return f"{row.case}: {row.ours:,.0f} {row.unit}, {row.peer_name} {row.peer:,.0f}"


def _means(cases: Sequence[Case]) -> list[Row]:
    """The geometric mean of each peer's time by ours, by the clock and by processors."""
    rows = []
    for peer in PEERS:
        for measure, unit in (("rows/s", "times faster"), ("rows/s of a core", "times less processor time")):
            ratios = [
                row.ratio
                for case in cases
                for row in _rows(case)
                if row.peer_name == peer.name and row.unit == measure and "following" not in row.case and row.ratio
            ]
            if not ratios:
                continue  # the peer has failed at all
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            rows.append(Row(f"{len(ratios)} queries beside {peer.name}, geometric mean", mean, unit, aim=1.0,
                            aim_text="ahead"))  # fmt: skip
    return rows


def _load() -> Row:
    """What else ran: two systems' threads on two cores alone give at most some three."""
    return Row("the machine's load at the end", os.getloadavg()[2], "threads in 15 minutes", better="less")


def _copied(server: Millstream, client: Client, name: str, folder: Path) -> Cost:
    """A load by COPY until the view is read."""
    query = _query(name)
    for statement in create(stream=True):
        client.query(statement)
    client.query(f"CREATE VIEW watched AS {query}")
    with _measuring(server) as cost:
        for relation in _read_by(query):
            for path in sorted((folder / relation).iterdir()):
                if data := path.read_bytes():
                    client.copy(f"COPY {relation} FROM STDIN (FORMAT csv)", data)
        client.fetch("SELECT * FROM watched")
    _drop(client)
    return cost[0]


def _followed(server: Millstream, client: Client, name: str, folder: Path) -> Cost:
    """Streams that follow a folder, until the view of all files' rows is read."""
    query = _query(name)
    client.query(f"CREATE TABLE side ({SIDE}); {FILL_SIDE}")
    expected = _count(folder, _read_by(query))
    with _measuring(server) as cost:
        for relation, columns in RELATIONS.items():
            options = f"OPTIONS (source 'files', path '{folder / relation}', format 'csv')"
            if relation not in _read_by(query):
                options = ""
            plain = columns.replace(" PRIMARY KEY", "")
            client.query(f"CREATE FOREIGN TABLE {relation} ({plain}) SERVER stream {options}")
        client.query(f"CREATE VIEW watched AS {query}")
        while not client.query(f"SELECT FROM millstream.streams HAVING sum(rows) = {expected}"):
            time.sleep(0.02)
        client.fetch("SELECT * FROM watched")
    _drop(client)
    return cost[0]


def _rows_of_sample(client: Client, name: str, folder: Path) -> int:
    """How many rows a query over tables has."""
    for statement in create(stream=False):
        client.query(statement)
    for relation in RELATIONS:
        for path in sorted((folder / relation).iterdir()):
            client.copy(f"COPY {relation} FROM STDIN (FORMAT csv)", path.read_bytes())
    rows = client.query(_query(name))
    client.query(f"DROP TABLE {', '.join(RELATIONS)}, side CASCADE")
    return rows


def _drop(client: Client) -> None:
    client.query(f"DROP FOREIGN TABLE {', '.join(RELATIONS)} CASCADE; DROP TABLE side CASCADE")


@contextmanager
def _measuring(server: Millstream) -> Iterator[list[Cost]]:
    """Yields a list that has, afterwards, what the block has taken."""
    found: list[Cost] = []
    before, started = processor_time(server.pid), time.perf_counter()
    yield found
    found.append(Cost(time.perf_counter() - started, processor_time(server.pid) - before))


def _query(name: str) -> str:
    return (FOLDER / "nexmark" / f"{name}.sql").read_text(encoding="utf-8")


def _read_by(query: str) -> list[str]:
    """The relations that a query reads, in the order of the files."""
    named = set(re.findall(r"\b(?:from|join) (\w+)", query))
    return [relation for relation in RELATIONS if relation in named]


def _count(folder: Path, relations: Sequence[str]) -> int:
    """Events of some relations."""
    return sum(path.read_bytes().count(b"\n") for name in relations for path in (folder / name).iterdir())

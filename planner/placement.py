"""Where statements run: what is known of it from a plan or a program alone.

Which engine can compute a statement exactly is for the engines to say (``executor.engine.supports``), and which one
maintains a view is the scheduler's choice (architecture, section 5). What the program tells is
how a state is spread: one group is merged in one place (DBToaster, section 4.2: the tag Local), a keyed state can be
split by its key (Dist).

An ad hoc query goes where it takes less time, by ``estimate``. Its constants are measured by ``bench/engines``: rows
that a core takes through one pass (reading is one, each pipeline breaker one more). What an engine must hold beyond its
memory is written to a disk and read again. What Spark has the embedded engine's kernel compute is only known of the
query that is made for it (``with_kernel``), so that an engine that has lost without it is not asked.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.nodes import Aggregate, Delta, Join, Relation, Scan, SetOperation, Snapshot, Sort, Window
from planner.algebra.walk import find, kinds_of, walk
from planner.incremental.programs.program import State, Statement

#: Rows a second that one core of the embedded engine takes through one pass.
EMBEDDED_ROWS: Final = 40e6
#: The same for Spark.
SPARK_ROWS: Final = 8e6
#: Passes of Spark's own that a value of the embedded engine's kernel costs, whose argument goes to a Python worker and
#: comes back. Over 1.8 million rows of lineitem on one core, max(to_hex(bigint)) took 9.5 passes longer than max() of
#: the column itself, and max(to_char(date)) 14.5.
KERNEL_PASSES: Final = 12
#: Seconds that a Spark job takes over no rows.
SPARK_START: Final = 0.15
#: Rows a second that the embedded engine reads of tables and writes to Parquet files for Spark: 4 to 14 million rows of
#: six and two columns.
WRITTEN_ROWS: Final = 5e6
#: Bytes a second that are written to a disk and read again.
SPILLED: Final = 200e6
#: What ends a pipeline, or is built before one.
BREAKERS: Final = (Join, Aggregate, Sort, Window, SetOperation)
_LEAVES: Final = kinds_of(Scan, Snapshot, Delta)


class Size(Struct, frozen=True):
    """How much a query reads of one input, about: ``size`` is in bytes."""

    rows: int
    size: int


class Power(Struct, frozen=True):
    """What an engine has: cores, and bytes of memory for what a query holds."""

    cores: int
    memory: float = inf


class Cost(Struct, frozen=True):
    """Estimated seconds of a query on each engine; of Spark's, those in the kernel."""

    embedded: float
    spark: float
    kernel: float = 0.0


def with_kernel(cost: Cost, values: float, spark: Power) -> Cost:
    """The cost where Spark has the kernel compute so many values."""
    seconds = values * KERNEL_PASSES / (SPARK_ROWS * spark.cores)
    return replace(cost, spark=cost.spark + seconds, kernel=seconds)


def with_written(cost: Cost, inputs: Collection[Size]) -> Cost:
    """The cost where inputs are written to files for Spark first."""
    return replace(cost, spark=cost.spark + sum(item.rows for item in inputs) / WRITTEN_ROWS)


def estimate(relation: Relation, inputs: Collection[Size], embedded: Power, spark: Power) -> Cost:
    """What a query costs that reads these inputs, on engines of such power."""
    passes = 1 + sum(isinstance(node, BREAKERS) for node in walk(relation))
    work = sum(item.rows for item in inputs) * passes
    held = _held(relation, inputs)
    return Cost(
        work / (EMBEDDED_ROWS * embedded.cores) + max(0.0, held - embedded.memory) / SPILLED,
        SPARK_START + work / (SPARK_ROWS * spark.cores) + max(0.0, held - spark.memory) / SPILLED,
    )


def _held(relation: Relation, inputs: Collection[Size]) -> int:
    """Bytes that a query holds at most: all it reads where it sorts, or groups by keys; else what joins build from,
    which is all but the largest input.
    """
    sizes = sorted(item.size for item in inputs)
    whole = any(
        isinstance(node, Sort | Window | SetOperation) or (isinstance(node, Aggregate) and node.keys)
        for node in walk(relation)
    )
    return sum(sizes) if whole else sum(sizes[:-1])


def spread(state: State) -> str:
    """How a state can be spread over machines."""
    if not state.key:
        return "local: one group" if state.kind == "aggregate" else "local"
    return f"distributed by {', '.join(column.name for column in state.key)}"


def builds(statement: Statement) -> tuple[str, ...]:
    """The static results that a statement's joins build their hash tables from, wherever it runs."""
    joins = (node for node in walk(statement.relation) if isinstance(node, Join))
    return tuple(dict.fromkeys(node.right.trace for node in joins if isinstance(node.right, Snapshot)))


def reads_system_alone(relation: Relation) -> bool:
    """Whether a relation reads system relations, which have few rows, and nothing else."""
    leaves = tuple(find(relation, _LEAVES))
    return bool(leaves) and all(isinstance(leaf, Scan) and leaf.kind == "system" for leaf in leaves)

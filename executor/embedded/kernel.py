"""Expressions over columns, computed for another process: the engine's interface for Spark's Python workers.

Owns: ``evaluate``, an instance of the engine for this process, created at the first call, and the relations of earlier
calls, which stay prepared. An expression arrives as a projection of it over a leaf with its arguments (``LEAF``), in
JSON (``planner.algebra.serialize``). Values are passed as ``executor.carriers`` defines.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

import pyarrow as pa

from executor.carriers import packed, unpacked
from executor.embedded.connection import Connection
from executor.embedded.instance import Instance
from executor.printing.nodes import leaf_name
from planner.algebra.nodes import Project, Snapshot
from planner.algebra.serialize import decode_relation

#: The name of the snapshot with the arguments.
LEAF: Final = "arguments"
_RELATIONS: Final = 256


def evaluate(document: str, columns: Sequence[pa.Array], time_zone: str = "UTC") -> pa.Array:
    """The expression's values for rows of its arguments. Raises SqlError.

    A call without arguments has one column, which gives the number of rows.
    """
    relation, leaf = _relation(document)
    kinds = [column.type.arrow for column in leaf.columns] or [columns[0].type]
    names = list(leaf.sources) or ["rows"]
    table = pa.Table.from_arrays(list(map(unpacked, columns, kinds)), names)
    found = _connection().query(relation, {leaf_name(leaf): table}, timezone=time_zone).column(0)
    return packed(found.combine_chunks() if found.num_chunks != 1 else found.chunk(0))


@cache
def _connection() -> Connection:
    """The connection of this process; a worker computes on one core. It is closed before the interpreter ends, which it
    needs."""
    instance = Instance(threads=1)
    atexit.register(instance.close)
    return instance.acquire()


@lru_cache(_RELATIONS)
def _relation(document: str) -> tuple[Project, Snapshot]:
    """The relation, kept as the same object so that its plan is found again, and its leaf."""
    relation = decode_relation(json.loads(document))
    assert isinstance(relation, Project)
    assert isinstance(relation.input, Snapshot)
    return relation, relation.input

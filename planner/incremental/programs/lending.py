"""A continuous view's program as it leaves its home: tables that its final relation reads are traces that stay there.

final over scan(table 9)     ->     final over snapshot(table_9), with Borrowed(table_9, 9)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from catalog.objects import Table
from planner.algebra.nodes import Column, Scan, Snapshot
from planner.algebra.walk import transform, walk
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Borrowed, Program


def lending(program: Program, tables: Mapping[int, Table]) -> Program:
    """The program whose final relation reads no tables."""
    scans = [node for node in walk(program.final) if isinstance(node, Scan) and node.kind == "table"]
    borrowed = {oid: _borrowed(tables[oid], scans) for oid in sorted({scan.oid for scan in scans})}

    def change(node: Any) -> Any:
        if not isinstance(node, Scan) or node.kind != "table":
            return node
        found = borrowed[node.oid]
        names = {column.name: stored_name(column) for column in found.columns}
        return Snapshot(found.name, node.columns, tuple(names[source] for source in node.sources))

    return replace(program, final=transform(program.final, change), borrowed=tuple(borrowed.values()))


def _borrowed(table: Table, scans: Iterable[Scan]) -> Borrowed:
    own = [scan for scan in scans if scan.oid == table.oid]
    types = {source: item.type for scan in own for item, source in zip(scan.columns, scan.sources, strict=True)}
    if not types:  # rows without columns have no number
        types = {table.columns[0].name: table.columns[0].type}
    columns = tuple(Column(place, name, kind) for place, (name, kind) in enumerate(types.items(), 1))
    return Borrowed(f"table_{table.oid}", table.oid, table.name, columns)

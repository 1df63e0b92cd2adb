"""A server's folder as a version wrote it that named traces after their view, and columns after the plan's numbers.

v16385_state_1, v16385_static_1     in the place of state_<hash>, static_<hash>
c101, c102, ...                     in the place of c1, c2, ...: each trace has numbers of its own
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from msgspec.structs import asdict, replace

from executor.traces.checked import pack, unpack
from executor.traces.manifest import MANIFEST
from executor.traces.parquet import describe_file, write_table
from planner.algebra.construction import rename_columns
from planner.algebra.nodes import Column, Relation, Snapshot
from planner.algebra.walk import produced_columns, transform
from planner.incremental.programs.documents import decode_program, encode_program
from planner.incremental.programs.program import Expiry, Program
from planner.incremental.programs.retargeting import renamed


def rewrite(server: Path, step: int = 100) -> int:
    """Makes what a server that was stopped has of its views that; how many there were. Numbers of columns become so
    much higher from one trace to the next."""
    programs = sorted(server.rglob("state/v*-static/program.json"))
    for path in programs:
        _rewrite(path.parent.parent / path.parent.name.removesuffix("-static"), path, step)
    return len(programs)


def _rewrite(view: Path, path: Path, step: int) -> None:
    document = unpack(path.read_bytes(), path.name)[1]
    program = decode_program(document["program"])
    kinds = (("static", program.statics), ("state", program.states))
    names = {item.name: f"{view.name}_{kind}_{n}" for kind, items in kinds for n, item in enumerate(items, 1)}
    first = {name: step * place for place, name in enumerate(names, 1)}
    earlier = encode_program(renamed(_numbered(program, first), names))
    statics = {
        names[name]: _moved(path.parent / file["name"], path.parent / f"{names[name]}.parquet", first[name])
        for name, file in document["statics"].items()
    }
    path.write_bytes(pack({**document, "program": earlier, "statics": statics}))
    manifest = view / MANIFEST
    content = unpack(manifest.read_bytes(), manifest.name)[1]
    kept = {name: state for name, state in content["states"].items() if name in names}  # rejected rows are newer
    states = {names[name]: _state(view, state, first[name], names[name]) for name, state in kept.items()}
    manifest.write_bytes(pack({**content, "program": earlier, "statics": statics, "states": states}))


def _numbered(program: Program, first: Mapping[str, int]) -> Program:
    """The program whose traces have columns from these numbers on."""

    def higher(column: Column, trace: str) -> Column:
        return replace(column, id=column.id + first[trace])

    def reading(node: Any) -> Any:
        if not isinstance(node, Snapshot):
            return node
        return replace(node, sources=tuple(_later(source, first[node.trace]) for source in node.sources))

    def relation(found: Relation, trace: str) -> Any:
        mapping = {column: higher(column, trace) for column in produced_columns(found)}
        return rename_columns(transform(found, reading), mapping)

    def expiry(item: Expiry) -> Expiry:
        column, *others = (higher(each, item.state) for each in (item.column, *item.others))
        return replace(item, column=column, others=tuple(others), latest=higher(item.latest, item.watermark))

    statics = tuple(
        replace(
            item,
            relation=relation(item.relation, item.name),
            columns=tuple(higher(column, item.name) for column in item.columns),
        )
        for item in program.statics
    )
    states = tuple(
        replace(
            item,
            columns=tuple(higher(column, item.name) for column in item.columns),
            key=tuple(higher(column, item.name) for column in item.key),
            merge=tuple(
                (higher(column, item.name), rename_columns(call, {column: higher(column, item.name)}))
                for column, call in item.merge
            ),
        )
        for item in program.states
    )
    paths = tuple(
        replace(
            path,
            statements=tuple(replace(each, relation=relation(each.relation, each.target)) for each in path.statements),
        )
        for path in program.paths
    )
    final: Relation = transform(program.final, reading)
    expiries = tuple(map(expiry, program.expiries))
    return replace(program, statics=statics, states=states, paths=paths, final=final, expiries=expiries)


def _state(view: Path, state: Any, first: int, name: str) -> Any:
    runs = [
        {
            **run,
            "files": [
                _in_manifest(_moved(view / file["name"], view / f"{name}-{place}-{number}.parquet", first))
                for number, file in enumerate(run["files"])
            ],
        }
        for place, run in enumerate(state["runs"])
    ]
    columns, merge = ([(_later(each, first), of) for each, of in state[part]] for part in ("columns", "merge"))
    return {**state, "columns": columns, "merge": merge, "key": [_later(k, first) for k in state["key"]], "runs": runs}


def _moved(path: Path, to: Path, first: int) -> dict[str, Any]:
    """A run's file under another name and with other columns; what documents say of it."""
    table = pq.read_table(path)
    write_table(to, table.rename_columns([_later(name, first) for name in table.column_names]))
    path.unlink()
    return asdict(describe_file(to, to.parent))


def _in_manifest(file: dict[str, Any]) -> dict[str, Any]:
    return {"name": file["name"], "size": file["size"], "crc32": file["crc"]}


def _later(name: str, first: int) -> str:
    return f"c{int(name[1:]) + first}"

"""Programs to JSON and back, as manifests and artifacts store them.

Owns the format, version 2:

    {"version": 2, "columns": ..., "nodes": ...,            as ``planner.algebra.serialize`` writes trees
     "program": {"p": ["Program", ...]}}                    a class of programs, then its fields

Version 1 is read, too: its paths have a stream's oid in the place of an id and inputs, and its statements no method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from catalog.codec import Classes, classes
from planner.algebra.serialize import Makers, Reader, Writer, checked
from planner.incremental.programs.program import (
    Borrowed,
    Expiry,
    Mark,
    Path,
    Program,
    State,
    Statement,
    Static,
    paths_of,
)

VERSION: Final = 2
_PARTS: Final[Classes] = classes(Program, Static, State, Statement, Path, Expiry, Borrowed, Mark)
_TYPED: Final = checked(*_PARTS.values())


def encode_program(program: Program) -> dict[str, Any]:
    """The JSON value of a program."""
    return {"version": VERSION, **Writer(_PARTS).document("program", program)}


def decode_program(data: Mapping[str, Any]) -> Program:
    """The program of a JSON value. Raises ValueError for a later version, KeyError for an unknown class."""
    version = data["version"]
    if version not in (1, VERSION):
        raise ValueError(f"program of version {version}, this server reads versions 1 and {VERSION}")
    makers: Makers = {**_PARTS, "Path": _path_of_version_1} if version == 1 else _PARTS
    program = Reader(data, makers, _TYPED).value(data["program"])
    assert isinstance(program, Program)
    if version == 1:
        pairs = ((path.inputs, statement) for path in program.paths for statement in path.statements)
        return replace(program, paths=paths_of(pairs))
    return program


def _path_of_version_1(stream: int, statements: tuple[Statement, ...]) -> Path:
    return Path(0, (stream,), statements)

"""Programs to JSON and back, as manifests and artifacts store them.

Owns the format, version 1:

    {"version": 1, "columns": ..., "nodes": ...,            as ``planner.algebra.serialize`` writes trees
     "program": {"p": ["Program", ...]}}                    a class of programs, then its fields
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from catalog.codec import Classes, classes
from planner.algebra.serialize import Reader, Writer, checked
from planner.incremental.programs.program import Borrowed, Expiry, Path, Program, State, Statement, Static

VERSION: Final = 1
_PARTS: Final[Classes] = classes(Program, Static, State, Statement, Path, Expiry, Borrowed)
_TYPED: Final = checked(*_PARTS.values())


def encode_program(program: Program) -> dict[str, Any]:
    """The JSON value of a program."""
    return {"version": VERSION, **Writer(_PARTS).document("program", program)}


def decode_program(data: Mapping[str, Any]) -> Program:
    """The program of a JSON value. Raises ValueError for another version, KeyError for an unknown class."""
    if data["version"] != VERSION:
        raise ValueError(f"program of version {data['version']}, this server reads version {VERSION}")
    program = Reader(data, _PARTS, _TYPED).value(data["program"])
    assert isinstance(program, Program)
    return program

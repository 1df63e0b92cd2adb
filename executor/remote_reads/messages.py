"""Questions to other servers and their answers, as bytes: of a view's home to the server that maintains the view, and
of that server to the home about tables.

Owns: both forms. A question is filters over a scan of a view, as its home knows it, or a scan of a table; no other plan
is accepted. An answer is rows with the LSN of the home that they are of, or an error. Knows nothing of
connections.

    question    {"view": its name among servers, or "" for a table, "relation": ..., "time_zone": ...}
    answer      four bytes, the length of {"at": LSN} or {"error": {...}}, that, and an Arrow stream of the rows
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.traces.checked import WRONG
from planner.algebra.allow_list import check_call
from planner.algebra.nodes import Filter, Relation, Scan
from planner.algebra.serialize import decode_relation, encode_relation
from planner.algebra.validate import validate
from planner.algebra.walk import RELATIONS, walk

#: SQLSTATE of a question about a view that the asked server does not maintain.
NOT_HERE: Final = "55N01"
_LENGTH: Final = struct.Struct(">I")


class Asking(Protocol):
    """The reader of a session, for which another server is asked."""

    time_zone: str
    is_cancelled: Callable[[], bool]


class Unwanted(Exception):
    """Raised when an answer is no longer needed."""


class Question(Struct, frozen=True):
    """The rows and columns of a view that are wanted, or of a table; ``view`` is its name among servers, or ''."""

    view: str
    relation: Relation
    time_zone: str

    @property
    def scan(self) -> Scan:
        """The scan of the view or the table."""
        relation = self.relation
        while isinstance(relation, Filter):
            relation = relation.input
        assert isinstance(relation, Scan) and relation.kind == ("view" if self.view else "table")
        return relation


class Answer(Struct, frozen=True):
    """Rows of a view, and the LSN of its home up to which all rows of its stream are in them."""

    at: int
    rows: pa.Table


def encode_question(question: Question) -> bytes:
    """A question as bytes."""
    relation = encode_relation(question.relation)
    document = {"view": question.view, "relation": relation, "time_zone": question.time_zone}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_question(data: bytes) -> Question:
    """A question, checked. Raises 08P01."""
    try:
        document = json.loads(data)
        relation = decode_relation(document["relation"])
        validate(relation)
        for node in walk(relation):
            check_call(node)
        found = Question(str(document["view"]), relation, str(document["time_zone"]))
        read = found.scan
        if [node for node in walk(relation) if isinstance(node, RELATIONS) and not isinstance(node, Filter)] != [read]:
            raise ValueError("it reads more than the view")
        return found
    except WRONG as error:
        raise SqlError("08P01", f"a request of another server is malformed: {error}") from error


def encode_answer(answer: Answer) -> bytes:
    """An answer as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.rows.schema) as writer:
        writer.write_table(answer.rows)
    found: bytes = sink.getvalue().to_pybytes()
    return _headed({"at": answer.at}) + found


def encode_error(error: SqlError) -> bytes:
    """An error as an answer's bytes."""
    told = {"sqlstate": error.sqlstate, "message": error.message, "detail": error.detail, "hint": error.hint}
    told["where"] = error.where
    return _headed({"error": told})


def _headed(document: dict[str, Any]) -> bytes:
    header = json.dumps(document).encode()
    return _LENGTH.pack(len(header)) + header


def decode_answer(data: bytes) -> Answer:
    """An answer. Raises the error that the other server answered, and 08P01."""
    try:
        start = _LENGTH.size + int.from_bytes(data[: _LENGTH.size])
        document = json.loads(data[_LENGTH.size : start])
        error = document.get("error")
        if error is not None:
            where = error.get("where")  # an earlier version sends none
            raise SqlError(error["sqlstate"], error["message"], error["detail"], error["hint"], where=where)
        with pa.ipc.open_stream(pa.py_buffer(data)[start:]) as reader:
            return Answer(int(document["at"]), reader.read_all())
    except (pa.ArrowException, *WRONG) as error:
        raise SqlError("08P01", f"the answer of another server is malformed: {error}") from error

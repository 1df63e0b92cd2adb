"""COPY: target, columns and options, in the new and the old spelling (the grammar makes them one).

Owns: PostgreSQL's rules about which option goes with which format (copy.c, ProcessCopyOptions).
"""

from __future__ import annotations

from typing import Any, Final

from catalog.errors import SqlError, unsupported
from catalog.objects import FileTable, Sequence, Stream, SystemView, Table, View
from planner.algebra import Project
from planner.bind.changes.assigning import default_of
from planner.bind.changes.dml import checks_of
from planner.bind.context import Binding
from planner.bind.definitions.generated import generated_of
from planner.bind.domains import default_text, guards
from planner.bind.relations import require_object
from planner.bind.select import bind_query
from planner.bind.sources import scan_object
from planner.bind.typenames import declared_typmod, names_of
from planner.expression import ColumnRef
from planner.statements import CopyIn, CopyOptions, CopyOut, Output, Query, Statement

_CHARACTERS: Final[tuple[str, ...]] = ("delimiter", "null", "quote", "escape")


def bind_copy(binding: Binding, node: Any) -> Statement:
    """COPY table [(columns)] FROM, COPY table or (query) TO."""
    if node.is_program:
        raise unsupported("COPY ... PROGRAM", "Use STDIN or STDOUT and a pipe.")
    if node.whereClause is not None:
        raise unsupported(
            "COPY ... WHERE", "Copy into a table and insert from there.", binding.position(node.whereClause)
        )
    options = _options(binding, node.options or ())
    if node.is_from:
        return _copy_in(binding, node, options)
    if node.query is not None:
        return CopyOut(bind_query(binding, node.query), options, node.filename)
    return CopyOut(_whole(binding, node), options, node.filename)


def _copy_in(binding: Binding, node: Any, options: CopyOptions) -> CopyIn:
    target = require_object(binding, node.relation)
    if isinstance(target, Sequence):
        raise SqlError("42809", f'cannot copy to sequence "{target.name}"')
    if isinstance(target, FileTable):
        raise SqlError(
            "0A000", f'cannot insert into foreign table "{target.name}"', hint="A foreign table of files is read-only."
        )
    if isinstance(target, View | SystemView):
        raise SqlError(
            "42809", f'cannot copy to view "{target.name}"', hint="Copy to the tables and streams that it reads."
        )
    columns = _columns(binding, target, node)
    defaults = tuple(
        (index, default_of(binding, column))
        for index, column in enumerate(target.columns)
        if index not in columns and default_text(binding, column) is not None
    )
    row = tuple(binding.column(column.name, column.type) for column in target.columns)
    checks = (*guards(binding, target.columns, row), *checks_of(binding, target, row))
    generated = generated_of(binding, target, row)
    return CopyIn(target, columns, options, node.filename, defaults, checks, row, generated)


def _columns(binding: Binding, target: Table | Stream | FileTable | View | SystemView, node: Any) -> tuple[int, ...]:
    names = [column.name for column in target.columns]
    if not node.attlist:
        return tuple(index for index, column in enumerate(target.columns) if column.generated is None)
    found: list[int] = []
    for name in names_of(node.attlist):
        if name not in names:
            raise SqlError("42703", f'column "{name}" of relation "{target.name}" does not exist')
        if target.columns[names.index(name)].generated is not None:
            detail = "Generated columns cannot be used in COPY."
            raise SqlError("42P10", f'column "{name}" is a generated column', detail)
        if names.index(name) in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        found.append(names.index(name))
    return tuple(found)


def _whole(binding: Binding, node: Any) -> Query:
    """COPY relation TO: its columns in order."""
    target = require_object(binding, node.relation)
    if isinstance(target, Sequence):
        raise SqlError("42809", f'cannot copy from sequence "{target.name}"')
    if isinstance(target, View) and not target.continuous:
        hint = "Try the COPY (SELECT ...) TO variant."
        raise SqlError("42809", f'cannot copy from view "{target.name}"', hint=hint)
    if isinstance(target, Stream):
        binding.streams.append((target.name, binding.position(node.relation)))
    scan, _ = scan_object(binding, target, None, False)
    chosen = _columns(binding, target, node)
    outputs = tuple(
        Output(
            scan.sources[index],
            scan.columns[index].type,
            declared_typmod(scan.columns[index].type),
            target.oid,
            index + 1,
        )
        for index in chosen
    )
    columns = tuple(
        (binding.column(scan.columns[index].name, scan.columns[index].type), ColumnRef(scan.columns[index]))
        for index in chosen
    )
    return Query(Project(scan, columns), outputs)


# --- options ---------------------------------------------------------------------------------------------------------


def _options(binding: Binding, items: tuple[Any, ...]) -> CopyOptions:
    given: dict[str, Any] = {}
    for item in items:
        name = item.defname.lower()
        if name in given:
            raise SqlError("42601", "conflicting or redundant options", position=binding.position(item))
        given[name] = item
    for name, item in given.items():
        # FREEZE saves a later pass over the rows, which there never is.
        if name not in ("format", "header", "encoding", "freeze", *_CHARACTERS):
            if name in ("force_quote", "force_not_null", "force_null", "default", "on_error"):
                raise unsupported(f"COPY option {name}", "Leave it out.", binding.position(item))
            raise SqlError("42601", f'option "{name}" not recognized', position=binding.position(item))
    _check_encoding(binding, given.get("encoding"))
    form = _format(binding, given.get("format"))
    header = _header(binding, given.get("header"))
    texts = {name: str(given[name].arg.sval) for name in _CHARACTERS if name in given}
    _check_texts(form, header, texts)
    return _filled(form, header, texts)


def _format(binding: Binding, item: Any) -> str:
    if item is None:
        return "text"
    form = str(item.arg.sval)
    if form not in ("text", "csv", "binary"):
        raise SqlError("22023", f'COPY format "{form}" not recognized', position=binding.position(item))
    return form


def _header(binding: Binding, item: Any) -> bool:
    if item is None:
        return False
    value = getattr(item.arg, "sval", getattr(item.arg, "ival", getattr(item.arg, "boolval", True)))
    word = str(value).lower()
    if word == "match":
        raise unsupported("HEADER MATCH", "Use HEADER.", binding.position(item))
    if word not in ("true", "false", "on", "off", "1", "0", "none"):
        raise SqlError("42601", 'header requires a Boolean value or "match"', position=binding.position(item))
    return word in ("true", "on", "1", "none")


def _check_encoding(binding: Binding, item: Any) -> None:
    if item is not None and str(item.arg.sval).upper().replace("-", "") not in ("UTF8", "UNICODE"):
        raise unsupported(f"COPY encoding {item.arg.sval}", "Convert the data to UTF8.", binding.position(item))


def _check_texts(form: str, header: bool, texts: dict[str, str]) -> None:
    if form == "binary":
        for name in ("delimiter", "null"):
            if name in texts:
                raise SqlError("42601", f"cannot specify {name.upper()} in BINARY mode")
        if header:
            raise SqlError("0A000", "cannot specify HEADER in BINARY mode")
    for name in ("quote", "escape"):
        if name in texts and form != "csv":
            raise SqlError("0A000", f"COPY {name} available only in CSV mode")
        if name in texts and len(texts[name].encode()) != 1:
            raise SqlError("0A000", f"COPY {name} must be a single one-byte character")
    if "delimiter" in texts:
        _check_delimiter(form, texts["delimiter"])
    if any(char in texts.get("null", "") for char in "\r\n"):
        raise SqlError("22023", "COPY null representation cannot use newline or carriage return")


def _check_delimiter(form: str, delimiter: str) -> None:
    if len(delimiter.encode()) != 1:
        raise SqlError("0A000", "COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if form == "text" and delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SqlError("22023", f'COPY delimiter cannot be "{delimiter}"')


def _filled(form: str, header: bool, texts: dict[str, str]) -> CopyOptions:
    """Defaults by format."""
    if form == "binary":
        return CopyOptions("binary")
    if form == "text":
        found = CopyOptions("text", texts.get("delimiter", "\t"), texts.get("null", "\\N"), header)
    else:
        quote = texts.get("quote", '"')
        found = CopyOptions(
            "csv", texts.get("delimiter", ","), texts.get("null", ""), header, quote, texts.get("escape", quote)
        )
        if found.delimiter == found.quote:
            raise SqlError("22023", "COPY delimiter and quote must be different")
        if found.quote in found.null:
            raise SqlError("22023", "CSV quote character must not appear in the NULL specification")
    if found.delimiter in found.null:
        raise SqlError("22023", "COPY delimiter character must not appear in the NULL specification")
    return found

"""COPY's options, in the new and the old spelling (the grammar makes them one).

Owns: PostgreSQL's rules about which option goes with which format and direction (copy.c, ProcessCopyOptions), and the
encodings that data may have. ``copy_statement`` has the columns.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from catalog.values.encodings import PLAIN, UTF8, encoding_named
from catalog.values.errors import SqlError, unsupported
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Binding
from planner.statements.statement import CopyOptions

#: Options that are one character, but for NULL's text.
_CHARACTERS: Final[tuple[str, ...]] = ("delimiter", "null", "quote", "escape")
#: Those that name columns, with COPY's direction: FROM or TO.
_FORCES: Final = {"force_quote": "TO", "force_not_null": "FROM", "force_null": "FROM"}


class Given(Struct, frozen=True):
    """The options of one COPY, and the columns that they name: a FORCE option's list, None for all (``*``)."""

    options: CopyOptions
    forced: dict[str, tuple[str, ...] | None]


def bind_options(binding: Binding, items: tuple[Any, ...], is_from: bool) -> Given:
    """What a COPY's options say. Raises 42601, 22023 and 0A000."""
    given: dict[str, Any] = {}
    for item in items:
        name = item.defname.lower()
        if name in given:
            raise SqlError("42601", "conflicting or redundant options", position=binding.position(item))
        given[name] = item
    for name, item in given.items():
        # FREEZE saves a later pass over the rows, which there never is.
        if name not in ("format", "header", "encoding", "freeze", *_CHARACTERS, *_FORCES):
            raise SqlError("42601", f'option "{name}" not recognized', position=binding.position(item))
    form = _format(binding, given.get("format"))
    header = _header(binding, given.get("header"), is_from)
    forced = {name: _listed(binding, given[name]) for name in _FORCES if name in given}
    encoding, codec = _encoding(binding, given.get("encoding"))
    texts = {name: str(given[name].arg.sval) for name in _CHARACTERS if name in given}
    _check_texts(form, header != "no", texts)
    for name in forced:
        _check_force(name, form, is_from)
    return Given(_filled(form, texts, header, encoding, codec), forced)


def _format(binding: Binding, item: Any) -> str:
    if item is None:
        return "text"
    form = str(item.arg.sval)
    if form not in ("text", "csv", "binary"):
        raise SqlError("22023", f'COPY format "{form}" not recognized', position=binding.position(item))
    return form


def _header(binding: Binding, item: Any, is_from: bool) -> str:
    """no, yes or match."""
    if item is None:
        return "no"
    value = getattr(item.arg, "sval", getattr(item.arg, "ival", getattr(item.arg, "boolval", True)))
    word = str(value).lower()
    if word == "match":
        if not is_from:
            raise SqlError("0A000", 'cannot use "match" with HEADER in COPY TO')
        return word
    if word not in ("true", "false", "on", "off", "1", "0", "none"):
        raise SqlError("42601", 'header requires a Boolean value or "match"')
    return "yes" if word in ("true", "on", "1", "none") else "no"


def _listed(binding: Binding, item: Any) -> tuple[str, ...] | None:
    """The columns of a FORCE option; None is all of them."""
    if type(item.arg).__name__ == "A_Star" and item.defname == "force_quote":
        return None
    if not isinstance(item.arg, tuple):
        message = f'argument to option "{item.defname}" must be a list of column names'
        raise SqlError("22023", message, position=binding.position(item))
    return tuple(names_of(item.arg))


def _encoding(binding: Binding, item: Any) -> tuple[str, str]:
    """PostgreSQL's name, '' for the client's, and Python's."""
    if item is None:
        return "", PLAIN[UTF8]
    name = encoding_named(str(item.arg.sval))
    if name is None:
        message = f'argument to option "{item.defname}" must be a valid encoding name'
        raise SqlError("22023", message, position=binding.position(item))
    if name not in PLAIN:
        raise unsupported(f"COPY encoding {name}", "Convert the data to UTF8.", binding.position(item))
    return name, PLAIN[name]


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


def check_csv(texts: dict[str, str]) -> None:
    """Raises COPY's errors of characters that CSV cannot have: texts of ``delimiter`` and ``null``, where given."""
    _check_texts("csv", False, texts)
    _filled("csv", texts, "no", UTF8, PLAIN[UTF8])


def _check_delimiter(form: str, delimiter: str) -> None:
    if len(delimiter.encode()) != 1:
        raise SqlError("0A000", "COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if form == "text" and delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SqlError("22023", f'COPY delimiter cannot be "{delimiter}"')


def _check_force(name: str, form: str, is_from: bool) -> None:
    words, direction = name.replace("_", " "), _FORCES[name]
    if form != "csv":
        raise SqlError("0A000", f"COPY {words} available only in CSV mode")
    if is_from != (direction == "FROM"):
        raise SqlError("0A000", f"COPY {words} only available using COPY {direction}")


def _filled(form: str, texts: dict[str, str], header: str, encoding: str, codec: str) -> CopyOptions:
    """Defaults by format."""
    if form == "binary":
        return CopyOptions("binary")
    csv = form == "csv"
    quote = texts.get("quote", '"')
    found = CopyOptions(
        "csv" if csv else "text",
        texts.get("delimiter", "," if csv else "\t"),
        texts.get("null", "" if csv else "\\N"),
        header != "no",
        quote,
        texts.get("escape", quote),
        match_header=header == "match",
        encoding=encoding,
        codec=codec,
    )
    if csv and found.delimiter == found.quote:
        raise SqlError("22023", "COPY delimiter and quote must be different")
    if csv and found.quote in found.null:
        raise SqlError("0A000", "CSV quote character must not appear in the NULL specification")
    if found.delimiter in found.null:
        raise SqlError("0A000", "COPY delimiter must not appear in the NULL specification")
    return found

"""Parses SQL text into PostgreSQL's raw parse trees (pglast), with positions that a client understands.

Owns: splitting a query string into statements, syntax errors, limits on size and depth. ``planner.bind`` resolves names
and types, ``planner.parse.literals`` decides which texts share a plan.

Node locations of pglast are 0-based character indexes into the whole text; PostgreSQL's error positions are those plus
one.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from copy import copy
from itertools import accumulate
from typing import Any, Final, TypeVar

from msgspec import Struct
from pglast import ast, parser

from catalog.values.errors import SqlError, syntax_error
from planner.cancellation import current
from planner.parse.explained_views import blanked, explained_views, wrapped
from planner.parse.lengths import LIMIT, MOST

#: The longest text that cannot nest deeply enough to exhaust an ordinary thread's C stack (about 350 bytes per level).
_SHALLOW: Final = 8 << 10
#: Stack size per character of a deeply nested text's thread. It is address space: only pages in use are allocated.
_STACK: Final = 1 << 9
#: pglast takes linear time to look up a position in non-ASCII text: a text's length times its number of extra bytes is
#: limited.
_WORK: Final = 1 << 31
#: Operator characters in a row, if there are many.
_OPERATORS: Final = re.compile(r"[-~!@#^&|`?+*/%<>=]{256,}")
#: The parser's depth (YYMAXDEPTH of PostgreSQL's gram.y).
_TOKENS: Final = 10_000
#: The most characters that the scanner may examine within operators and comments: a quarter of a second for
#: PostgreSQL's scanner.
_SCANNED: Final = 1 << 27
_stack_lock = threading.Lock()
_Result = TypeVar("_Result")

#: pglast's nodes check and convert each attribute on assignment, which takes half of the parsing time. The parser's
#: values need none of this, except that a constant's ``boolval`` is 0 or 1.
del ast.Node.__setattr__


class Raw(Struct, frozen=True):
    """One statement: its tree, its own text, and the index of the text's first character in the query string."""

    node: Any
    text: str
    offset: int


#: PostgreSQL's grammar errors with an SQLSTATE of their own; the one for escapes belongs to E'...' strings only.
_STATES: Final = {
    "42939": re.compile('role name "'),
    "22025": re.compile("invalid Unicode escape$"),
    "42P20": re.compile("frame (start|end)|window frame"),
    "22023": re.compile("column number must be in range|precision for type float must be"),
    "0A000": re.compile(
        "CREATE SCHEMA IF NOT EXISTS cannot include|a column list with |.*constraints cannot be (marked|altered to be) "
        "|.* not yet implemented|.* is no longer supported|WITH CHECK OPTION not supported on recursive views"
        "|current database cannot be changed|aggregates cannot have output arguments"
    ),
}


def parse(text: str, limit: int = MOST) -> tuple[Raw, ...]:
    """The statements of a query string. Raises 42601 with PostgreSQL's message and position, 54000, 54001."""
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    if len(text) > limit:
        hint = "Load rows with COPY, or raise statement_length."
        raise SqlError("54000", f"statement text is longer than {limit} characters", hint=hint)
    if len(text) > _SHALLOW and _operators_work(text) > _SCANNED:
        raise SqlError(
            "54001",
            "statement has too long a sequence of operator characters",
            hint="Separate the operators with spaces.",
        )
    if not text.isascii() and len(text) * (len(text.encode()) - len(text)) > _WORK:
        raise SqlError("54000", "statement text is too long", hint="Pass values as parameters, or load rows with COPY.")
    try:
        return tuple(_raw(text, item) for item in _parsed(text))
    except parser.ParseError as error:
        views = explained_views(text)
        if not views:
            raise _syntax_error(text, error) from None
    try:
        return tuple(_explained(text, item, views) for item in _parsed(blanked(text, views)))
    except parser.ParseError as error:
        raise _syntax_error(text, error) from None


def _parsed(text: str) -> Any:
    return parser.parse_sql(text) if len(text) <= _SHALLOW else _on_large_stack(parser.parse_sql, text)


def _explained(text: str, item: Any, views: tuple[tuple[int, int], ...]) -> Raw:
    """A statement of a text in which EXPLAIN stands before CREATE VIEW, with these words if it is one of those."""
    found = _raw(blanked(text, views), item)
    for start, end in views:
        if end == found.offset:
            words = text[start:end]
            node = wrapped(found.node, " " * start + words, _parsed)  # so that options are where they stand
            return Raw(node, words + found.text, start)
    return found


def _operators_work(text: str) -> int:
    """An estimate of the characters that the scanner examines within operators and nested comments.

    At each plus sign and each beginning of a comment, the scanner reads on while there are operator characters; the
    parser accepts at most ``_TOKENS`` signs in a row.
    """
    runs = (found[0] for found in _OPERATORS.finditer(text))
    return sum(len(run) * (run.count("/*") + min(run.count("+"), _TOKENS)) for run in runs)


def nodes(tree: Any) -> Iterator[Any]:
    """The nodes of a parse tree in the order of the text. Changes that the caller makes to a node before it takes the
    next one are followed."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple | list):
            stack += reversed(node)
        elif hasattr(node, "__slots__"):
            yield node
            stack += [getattr(node, name, None) for name in reversed(node.__slots__)]


def _raw(text: str, item: Any) -> Raw:
    """A statement with its part of the text; length 0 means the rest."""
    start, length = item.stmt_location or 0, item.stmt_len or 0
    piece = text[start : start + length] if length else text[start:]
    stripped = piece.lstrip()
    return Raw(item.stmt, stripped.rstrip().rstrip(";"), start + len(piece) - len(stripped))


def _syntax_error(text: str, error: Any) -> SqlError:
    message = str(error.args[0])
    if message.startswith("invalid byte sequence for encoding"):  # raised for the escapes of an E'...' string
        return SqlError("22021", message)
    index = error.args[1] if len(error.args) > 1 else None
    if index is None:
        return syntax_error(message, len(text) + 1)
    # pglast converts the parser's character position as if it were a byte offset: undo this.
    position = len(text[:index].encode()) + 1
    for state, own in _STATES.items():
        if own.match(message) and (state != "22025" or text[index : index + 2] in ("\\u", "\\U")):
            return SqlError(state, message, position=position)
    return syntax_error(message, position)


def _on_large_stack(function: Callable[[str], _Result], argument: str) -> _Result:
    """Runs a call in its own thread, whose stack is large enough for the deepest nesting of the longest text."""
    results: list[_Result] = []
    errors: list[BaseException] = []
    calls = current()

    def run() -> None:
        try:
            results.append(function(argument) if calls is None else calls.leave(function, argument))
        except BaseException as error:  # re-raised to the caller below
            errors.append(error)

    with _stack_lock:
        before = threading.stack_size(max(_STACK * len(argument), _STACK * LIMIT))
        try:
            thread = threading.Thread(target=run, name="parse")
            thread.start()
        except RuntimeError:  # no memory for such a stack
            raise nested_too_deep() from None
        finally:
            threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def literal_positions(raw: Raw) -> dict[int, int]:
    """The 1-based positions of the statement's constants, by the nodes' identity; pglast drops their locations.

    libpg_query's JSON has the locations, so both trees are walked in parallel; either may be of what the other one
    explains. This parses the text again, so it is for error messages only.
    """
    text = blanked(raw.text, explained_views(raw.text))
    json_text = parser.parse_sql_json(text) if len(text) <= _SHALLOW else _on_large_stack(parser.parse_sql_json, text)
    starts = None if text.isascii() else list(accumulate((len(char.encode()) for char in text), initial=0))
    found: dict[int, int] = {}
    node, document = raw.node, json.loads(json_text)["stmts"][0]["stmt"]
    if type(node).__name__ == "ExplainStmt" and "ExplainStmt" not in document:
        node = node.query
    elif type(node).__name__ != "ExplainStmt" and "ExplainStmt" in document:
        document = document["ExplainStmt"]["query"]
    stack = [(node, document)]
    while stack:
        node, shown = stack.pop()
        shown = _unwrap(shown)
        if isinstance(node, ast.A_Const):
            location = shown.get("location", 0)
            found[id(node)] = raw.offset + 1 + (location if starts is None else bisect_left(starts, location))
        elif isinstance(node, tuple) and isinstance(shown, list):
            stack += zip(node, shown, strict=False)
        elif isinstance(node, ast.Node) and isinstance(shown, dict):
            stack += [(getattr(node, name), shown[name]) for name in node if name in shown]
    return found


def first_parameter(raw: Raw) -> tuple[str, int]:
    """The first parameter as written ("$1"), and its 1-based position."""
    token = next(token for token in parser.scan(raw.text) if token.name == "PARAM")
    return raw.text[token.start : token.end + 1], raw.offset + token.start + 1


def _unwrap(node: Any) -> Any:
    """``{"A_Const": {...}}`` -> ``{...}``; ``{"List": {"items": [...]}}`` -> ``[...]``."""
    if isinstance(node, dict) and len(node) == 1:
        name, inner = next(iter(node.items()))
        if name == "List":
            return inner.get("items", [])
        if name[:1].isupper():
            return inner
    return node


def text_after_as(raw: Raw) -> str:
    """The text of the query after CREATE VIEW ... AS or PREPARE ... AS, without WITH [NO] DATA at its end."""
    tokens = [token for token in parser.scan(raw.text) if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    names = [item.name for item in tokens]
    depths = accumulate((name == "ASCII_40") - (name == "ASCII_41") for name in names)
    first = next(index for index, depth in enumerate(depths) if depth == 0 and names[index] == "AS")
    end = tokens[-1].end + 1
    for tail in (["WITH", "NO", "DATA_P"], ["WITH", "DATA_P"]):
        if names[-len(tail) :] == tail:
            end = tokens[-len(tail)].start
    return raw.text[tokens[first].end + 1 : end].strip()


#: Statements that may contain an EXECUTE.
_EXECUTING: Final = ("ExplainStmt", "CreateTableAsStmt")


def executed(node: Any) -> Any:
    """The EXECUTE in EXPLAIN or CREATE TABLE AS, or None."""
    while type(node).__name__ in _EXECUTING:
        node = node.query
        if type(node).__name__ == "ExecuteStmt":
            return node
    return None


def executing(outer: Raw, prepared: Raw) -> Raw:
    """The statement with its EXECUTE replaced by the prepared statement. Raises 42809 if CREATE TABLE AS cannot use
    that."""
    whole = copy(outer.node)
    node = whole
    while type(node.query).__name__ != "ExecuteStmt":
        node.query = copy(node.query)
        node = node.query
    if type(node).__name__ == "CreateTableAsStmt" and type(prepared.node).__name__ != "SelectStmt":
        raise SqlError("42809", "prepared statement is not a SELECT")
    node.query = prepared.node
    return Raw(whole, f"{outer.text}; {prepared.text}", outer.offset)


def schema_elements(raw: Raw) -> tuple[tuple[str, int], ...]:
    """The texts of the statements in CREATE SCHEMA, each with the index of its first character in the whole string.

    CREATE and GRANT always begin such a statement, except as privileges and in WITH GRANT OPTION.
    """
    tokens = [token for token in parser.scan(raw.text) if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    starts = [
        token.start
        for before, token in itertools.pairwise(tokens)
        if (token.name == "CREATE" and before.name not in ("GRANT", "ASCII_44"))
        or (token.name == "GRANT" and before.name != "WITH")
    ]
    ends = [*starts[1:], len(raw.text)]
    pieces = (raw.text[start:end].rstrip() for start, end in zip(starts, ends, strict=True))
    return tuple((piece, raw.offset + start) for piece, start in zip(pieces, starts, strict=True))


#: The replacement for a password.
_HIDDEN: Final = "'********'"
_PASSWORD: Final = re.compile("password", re.IGNORECASE)
_QUOTES: Final = re.compile(r"\$\w*\$|'")


def without_passwords(text: str) -> str:
    """A text with the passwords of PASSWORD clauses replaced, also within strings, which may be function bodies."""
    if not _PASSWORD.search(text):
        return text
    try:
        tokens = [token for token in parser.scan(text) if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    except parser.ParseError:
        return "<text that mentions a password>"
    pieces, end = list[str](), 0
    for before, token in itertools.pairwise([None, *tokens]):
        assert token is not None
        if token.name in ("SCONST", "USCONST"):
            written = text[token.start : token.end + 1]
            is_password = before is not None and before.name == "PASSWORD"
            pieces += (text[end : token.start], _HIDDEN if is_password else _without_passwords_in(written))
            end = token.end + 1
    return "".join((*pieces, text[end:]))


def _without_passwords_in(string: str) -> str:
    """A string constant, as written, with its passwords replaced."""
    if not _PASSWORD.search(string):
        return string
    quote = _QUOTES.match(string)
    if quote is None:  # with escapes or a prefix
        return _HIDDEN
    inner = string[quote.end() : -len(quote[0])]
    if quote[0] != "'":
        return quote[0] + without_passwords(inner) + quote[0]
    return "'" + without_passwords(inner.replace("''", "'")).replace("'", "''") + "'"


def nested_too_deep() -> SqlError:
    """The error 54001 in PostgreSQL's words."""
    return SqlError(
        "54001", "stack depth limit exceeded", hint="Split the statement, or nest its expressions less deeply."
    )


__all__ = ["Raw", "literal_positions", "nested_too_deep", "parse"]

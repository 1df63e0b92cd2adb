"""EXPLAIN of CREATE VIEW, which PostgreSQL's grammar does not have: there, a view has no plan of its own.

    EXPLAIN (FORMAT JSON) CREATE VIEW v AS SELECT 1     read as     CREATE VIEW v AS SELECT 1,  with the options of
                                                                    EXPLAIN (FORMAT JSON) SELECT 1

The words before CREATE are blanked, so that all positions stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pglast import ast, parser

#: What may stand between CREATE and VIEW.
_BEFORE_VIEW: Final = frozenset(("OR", "REPLACE", "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "RECURSIVE"))
_COMMENTS: Final = frozenset(("SQL_COMMENT", "C_COMMENT"))
_END: Final = "ASCII_59"
_OPEN, _CLOSE = "ASCII_40", "ASCII_41"


def explained_views(text: str) -> tuple[tuple[int, int], ...]:
    """Where EXPLAIN stands before CREATE VIEW, and where that CREATE stands, of each such statement in a text."""
    if "explain" not in text.lower():
        return ()
    try:
        tokens = [token for token in parser.scan(text) if token.name not in _COMMENTS]
    except parser.ParseError:
        return ()
    return tuple(_found(tokens))


def _found(tokens: list[Any]) -> Iterator[tuple[int, int]]:
    names = [token.name for token in tokens]
    for place, name in enumerate(names):
        if name == "EXPLAIN" and (place == 0 or names[place - 1] == _END):
            begin = _after_options(names, place + 1)
            after = begin + 1
            while after < len(names) and names[after] in _BEFORE_VIEW:
                after += 1
            if names[begin : begin + 1] == ["CREATE"] and names[after : after + 1] == ["VIEW"]:
                yield tokens[place].start, tokens[begin].start


def _after_options(names: list[str], place: int) -> int:
    """Behind (options), or behind ANALYZE and VERBOSE."""
    if names[place : place + 1] == [_OPEN]:
        return names.index(_CLOSE, place) + 1 if _CLOSE in names[place:] else place
    while names[place : place + 1] in (["ANALYZE"], ["ANALYSE"], ["VERBOSE"]):
        place += 1
    return place


def blanked(text: str, found: tuple[tuple[int, int], ...]) -> str:
    """The text without the words before CREATE; all else is where it was."""
    for start, end in found:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def wrapped(node: Any, words: str, parse: Callable[[str], Any]) -> Any:
    """EXPLAIN of a statement, with the options in the words before it."""
    (statement,) = parse(f"{words} SELECT 1")
    return ast.ExplainStmt(query=node, options=statement.stmt.options)

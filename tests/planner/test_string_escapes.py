"""Literals with backslash escapes become E'...', and positions are converted back to the text as sent."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from planner.parse.string_escapes import conforming


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT 'plain', 'it''s'", "SELECT 'plain', 'it''s'"),
        (r"SELECT 'a\nb', 'c'", r"SELECT  E'a\nb', 'c'"),
        (r"SELECT 'it\'s', 'x\\'", r"SELECT  E'it\'s',  E'x\\'"),
        (r"select'a\n'", r"select E'a\n'"),
        (r"SELECT E'a\n', e'\'', B'01', x'\'", r"SELECT E'a\n', e'\'', B'01', x'\'"),
        (r"""SELECT "a\n'b" , $$'\n'$$, $t$ '\n' $$ $t$""", r"""SELECT "a\n'b" , $$'\n'$$, $t$ '\n' $$ $t$"""),
        ("SELECT 1 -- '\\n'\n, '\\n'", "SELECT 1 -- '\\n'\n,  E'\\n'"),
        (r"SELECT /* '\n' /* ' */ ' */ '\n'", r"SELECT /* '\n' /* ' */ ' */  E'\n'"),
        ("SELECT 'a'\n  -- more\n 'b\\n'", "SELECT  E'a'\n  -- more\n 'b\\n'"),
        (r"SELECT a$x$ FROM t WHERE b = '\$x$'", r"SELECT a$x$ FROM t WHERE b =  E'\$x$'"),
        (r"SELECT $1, '\n'", r"SELECT $1,  E'\n'"),
        (r"SELECT 'open\'", r"SELECT  E'open\'"),
        (r"SELECT '\n' /* open", r"SELECT  E'\n' /* open"),
    ],
)
def test_literals_say_that_they_have_escapes(text: str, wanted: str) -> None:
    assert conforming(text).text == wanted


def test_positions_are_those_of_the_text_that_was_sent() -> None:
    text = r"SELECT 'a\n', nope, 'b\n', more"
    found = conforming(text)
    for word in ("SELECT", "nope", "more"):
        assert found.position(found.text.index(word) + 1) == text.index(word) + 1
    assert [(item.sqlstate, item.position) for item in found.warnings] == [("22P06", 8), ("22P06", 21)]


def test_what_is_uncertain_is_refused() -> None:
    for text in (r"SELECT U&'d\0061'", r"SELECT n'\n'"):
        with pytest.raises(SqlError) as caught:
            conforming(text)
        assert (caught.value.sqlstate, caught.value.position) == ("0A000", 8)

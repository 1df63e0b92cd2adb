"""Parses the text of a path.

Owns: the tokens (jsonpath_scan.l), the grammar, by recursive descent (jsonpath_gram.y), and 42601 for other texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from catalog.values.errors import SqlError
from catalog.values.json_documents import Number, read_number
from catalog.values.jsonpath.nodes import (
    LAST,
    PREDICATES,
    Arithmetic,
    Both,
    Chain,
    Comparison,
    Constant,
    Current,
    Descendants,
    Elements,
    Exists,
    Field,
    Fields,
    Filter,
    IsUnknown,
    Last,
    LikeRegex,
    Method,
    Not,
    Path,
    Root,
    Sign,
    StartsWith,
    Step,
    Subscripts,
    Variable,
)
from catalog.values.regex.syntax import parse as parse_pattern

_TOKEN: Final = re.compile(
    r"(?P<blank>\s+|/\*.*?\*/)"
    r"|(?P<number>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r'|(?P<variable>\$(?:"(?:[^"\\]|\\.)*"|(?:[^\s?%$.\[\]{}()|&!=<>@#,*:\-+/"\\]|\\.)+))'
    r"|(?P<symbol>\*\*|&&|\|\||==|!=|<>|<=|>=|[?%$.\[\]{}()!<>@,*\-+/])"
    r'|(?P<word>(?:[^\s?%$.\[\]{}()|&!=<>@#,*:\-+/"\\]|\\.)+)',
    re.DOTALL,
)
_JUNK: Final = re.compile(r"\w")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_COMPARISONS: Final = ("==", "!=", "<>", "<", ">", "<=", ">=")
_METHODS: Final = ("type", "size", "abs", "floor", "ceiling", "double", "keyvalue", "datetime")
#: Words that are recognized in lower case only.
_CONSTANTS: Final = {"null": None, "true": True, "false": False}
_DEPTH: Final = 200
_Token = tuple[str, Any]
_END: Final[_Token] = ("end", "")


@lru_cache(1024)
def parse_path(text: str) -> Path:
    """A path. Raises 42601, 22003, 54001 and 0A000."""
    return _Parser(_tokens(text)).path()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _wrong(text[position])
        kind, word, position = str(match.lastgroup), match.group(), match.end()
        if kind == "number" and _JUNK.match(text, position):
            raise SqlError("42601", f'trailing junk after numeric literal at or near "{word}" of jsonpath input')
        if kind == "string":
            found.append((kind, _unescaped(word[1:-1])))
        elif kind == "variable":
            found.append((kind, _unescaped(word[2:-1] if word[1] == '"' else word[1:])))
        elif kind == "word":
            found.append((kind, _unescaped(word)))
        elif kind != "blank":
            found.append((kind, word))
    return found


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1) or match.group(2) or match.group(3)
        if code is None and match.group(4) in "ux":
            raise SqlError("42601", f'invalid escape sequence at or near "{match.group()}" of jsonpath input')
        if code is None:
            return _ESCAPED.get(match.group(4), match.group(4))
        if int(code, 16) == 0:
            raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
        if int(code, 16) > sys.maxunicode:
            raise SqlError("42601", "invalid Unicode code point")
        return chr(int(code, 16))

    found = _ESCAPE.sub(one, text)
    try:  # two halves of a surrogate pair
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SqlError("22P02", "invalid input syntax for type jsonpath") from None


def _wrong(token: object) -> SqlError:
    where = f'at or near "{token}"' if token else "at end"
    return SqlError("42601", f"syntax error {where} of jsonpath input")


class _Parser:
    """Reads tokens from left to right; each method reads one construct."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0
        self._in_filter = 0
        self._in_subscript = 0

    def path(self) -> Path:
        """``[strict | lax] expression``."""
        if not self._tokens:
            raise SqlError("22P02", 'invalid input syntax for type jsonpath: ""')
        strict = self._takes_word("strict")
        if not strict:
            self._takes_word("lax")
        root = self._either()
        if self._next() != _END:
            raise _wrong(self._next()[1])
        return Path(strict, root)

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _next(self) -> _Token:
        return self._tokens[self._place] if self._place < len(self._tokens) else _END

    def _takes(self, *symbols: str) -> str:
        kind, word = self._next()
        if kind != "symbol" or word not in symbols:
            return ""
        self._place += 1
        return str(word)

    def _takes_word(self, *words: str) -> bool:
        """Takes several words that must follow each other, or none of them."""
        ahead = self._tokens[self._place : self._place + len(words)]
        found = len(ahead) == len(words) and all(
            kind == "word" and word.lower() == wanted for (kind, word), wanted in zip(ahead, words, strict=True)
        )
        self._place += len(words) if found else 0
        return found

    def _needs(self, symbol: str) -> None:
        if not self._takes(symbol):
            raise _wrong(self._next()[1])

    def _string(self) -> str:
        kind, word = self._next()
        if kind != "string":
            raise _wrong(word)
        self._place += 1
        return str(word)

    # --- conditions --------------------------------------------------------------------------------------------------

    def _either(self) -> Any:
        """``a || b``, or an operand of higher precedence."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise SqlError("54001", "stack depth limit exceeded")
        found = self._joined("||", lambda: self._joined("&&", self._condition))
        self._depth -= 1
        return found

    def _joined(self, symbol: Any, part: Callable[[], Any]) -> Any:
        found = part()
        while self._takes(symbol):
            found = Both(symbol, _predicate(found), _predicate(part()))
        return found

    def _condition(self) -> Any:
        if self._takes("!"):
            if self._next() != ("symbol", "(") and not self._is_exists():
                raise _wrong(self._next()[1])
            return Not(_predicate(self._primary()))
        starts = self._next()
        left = self._sum()
        if symbol := self._takes(*_COMPARISONS):
            return Comparison("!=" if symbol == "<>" else symbol, _value(left), _value(self._sum()))
        if self._takes_word("starts", "with"):
            return StartsWith(_value(left), self._prefix())
        if self._takes_word("like_regex"):
            pattern = self._string()
            return _like(_value(left), pattern, self._string() if self._takes_word("flag") else "")
        if starts == ("symbol", "(") and isinstance(left, PREDICATES) and self._takes_word("is", "unknown"):
            return IsUnknown(left)
        return left

    def _prefix(self) -> Constant | Variable:
        kind, word = self._next()
        if kind not in ("string", "variable"):
            raise _wrong(word)
        self._place += 1
        return Constant(word) if kind == "string" else Variable(word)

    def _is_exists(self) -> bool:
        kind, word = self._next()
        return kind == "word" and word.lower() == "exists"

    # --- expressions -------------------------------------------------------------------------------------------------

    def _sum(self) -> Any:
        return self._binary(("+", "-"), lambda: self._binary(("*", "/", "%"), self._signed))

    def _binary(self, symbols: tuple[str, ...], part: Callable[[], Any]) -> Any:
        found = part()
        while symbol := self._takes(*symbols):
            found = Arithmetic(symbol, _value(found), _value(part()))
        return found

    def _signed(self) -> Any:
        symbol = self._takes("+", "-")
        if not symbol:
            return self._primary()
        self._depth += 1
        if self._depth > _DEPTH:
            raise SqlError("54001", "stack depth limit exceeded")
        operand = _value(self._signed())
        self._depth -= 1
        if isinstance(operand, Constant) and isinstance(operand.value, Number):
            value = operand.value
            return operand if symbol == "+" or not Decimal(value) else Constant(_negative(value))
        return Sign(symbol, operand)

    def _primary(self) -> Any:
        kind, word = self._next()
        self._place += 1
        match kind:
            case "symbol" if word == "(":
                found = self._either()
                self._needs(")")
                return self._chain(found)
            case "symbol" if word == "$":
                return self._chain(Root())
            case "symbol" if word == "@":
                if not self._in_filter:
                    raise SqlError("42601", "@ is not allowed in root expressions")
                return self._chain(Current())
            case "variable":
                return self._chain(Variable(word))
            case "string":
                return self._chain(Constant(word))
            case "number":
                return self._chain(Constant(read_number(word)))
            case "word" if word in _CONSTANTS:
                return self._chain(Constant(_CONSTANTS[word]))
            case "word" if word.lower() == "last":
                if not self._in_subscript:
                    raise SqlError("42601", "LAST is allowed only in array subscripts")
                return self._chain(Last())
            case "word" if word.lower() == "exists" and self._takes("("):
                operand = _value(self._either())
                self._needs(")")
                return Exists(operand)
        raise _wrong(word)

    def _chain(self, base: Any) -> Any:
        steps = []
        while (step := self._step()) is not None:
            steps.append(step)
        if not steps:
            return base
        return Chain(base.base, (*base.steps, *steps)) if isinstance(base, Chain) else Chain(base, tuple(steps))

    def _step(self) -> Step | None:
        if self._takes("?"):
            self._needs("(")
            self._in_filter += 1
            condition = _predicate(self._either())
            self._in_filter -= 1
            self._needs(")")
            return Filter(condition)
        if self._takes("["):
            return self._subscripts()
        if not self._takes("."):
            return None
        if self._takes("*"):
            return Fields()
        if self._takes("**"):
            return self._descendants()
        kind, word = self._next()
        if kind not in ("word", "string"):
            raise _wrong(word)
        self._place += 1
        if kind == "word" and self._next() == ("symbol", "(") and word.lower() in _METHODS:
            self._needs("(")
            name = word.lower()
            template = self._string() if name == "datetime" and self._next()[0] == "string" else None
            self._needs(")")
            return Method(name, template)
        return Field(word)

    def _subscripts(self) -> Step:
        if self._takes("*"):
            self._needs("]")
            return Elements()
        ranges = []
        self._in_subscript += 1
        while True:
            first = _value(self._sum())
            ranges.append((first, _value(self._sum()) if self._takes_word("to") else None))
            if not self._takes(","):
                break
        self._in_subscript -= 1
        self._needs("]")
        return Subscripts(tuple(ranges))

    def _descendants(self) -> Step:
        if not self._takes("{"):
            return Descendants(0, LAST)
        first = self._level()
        last = self._level() if self._takes_word("to") else first
        self._needs("}")
        return Descendants(first, last)

    def _level(self) -> int:
        if self._takes_word("last"):
            return LAST
        kind, word = self._next()
        if kind != "number" or not word.isdigit():
            raise _wrong(word)
        if len(word) > 10 or int(word) >= 1 << 31:
            raise SqlError("22003", f'value "{word}" is out of range for type integer')
        self._place += 1
        return int(word)


def _negative(value: Number) -> Number:
    return Number(value[1:] if value.startswith("-") else f"-{value}")


def _predicate(node: Any) -> Any:
    if not isinstance(node, PREDICATES):
        raise _wrong("")
    return node


def _value(node: Any) -> Any:
    if isinstance(node, PREDICATES):
        raise _wrong("")
    return node


def _like(operand: Any, pattern: str, flags: str) -> LikeRegex:
    for flag in flags:
        if flag not in "ismxq":
            message = f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.'
            raise SqlError("42601", "invalid input syntax for type jsonpath", message)
    if "x" in flags and "q" not in flags:
        raise SqlError("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
    found = LikeRegex(operand, pattern, "".join(flag for flag in "ismxq" if flag in flags))
    parse_pattern(pattern, regex_flags(found.flags))
    return found


def regex_flags(flags: str) -> str:
    """The flags of PostgreSQL's own regular expressions for XQuery's flags (jspConvertRegexFlags)."""
    case = "i" if "i" in flags else ""
    if "q" in flags:
        return f"{case}q"
    return (
        case
        + {(False, False): "p", (True, False): "", (False, True): "n", (True, True): "w"}["s" in flags, "m" in flags]
    )

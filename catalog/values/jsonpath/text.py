"""A path in PostgreSQL's output form (jsonpath_out): names quoted, parentheses where precedence requires them."""

from __future__ import annotations

from typing import Any, Final

from catalog.values.json_documents import Number, quoted
from catalog.values.jsonpath.nodes import (
    LAST,
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
from catalog.values.jsonpath.syntax import parse_path

_PRIORITIES: Final = {"||": 0, "&&": 1, "+": 3, "-": 3, "*": 4, "/": 4, "%": 4}
_SIGN: Final = 5
_TIGHTEST: Final = 6


def canonical_path(text: str) -> str:
    """The output form of an input text. Raises 42601, 54001 and 0A000."""
    return path_text(parse_path(text))


def path_text(path: Path) -> str:
    """A path's text."""
    return ("strict " if path.strict else "") + _written(path.root, True)


def _priority(node: Any) -> int:
    match node:
        case Both(symbol=symbol) | Arithmetic(symbol=symbol):
            return _PRIORITIES[symbol]
        case Comparison() | StartsWith() | LikeRegex():
            return 2
        case Sign():
            return _SIGN
        case Chain(base=base):
            return _priority(base)
        case _:
            return _TIGHTEST


def _below(node: Any, parent: Any) -> str:
    return _written(node, _priority(node) <= _priority(parent))


def _written(node: Any, bracketed: bool = False) -> str:
    match node:
        case Root():
            return "$"
        case Current():
            return "@"
        case Last():
            return "last"
        case Variable(name=name):
            return f"${quoted(name)}"
        case Constant(value=value):
            return _constant(value)
        case Chain(base=base, steps=steps):
            is_number = isinstance(base, Constant) and isinstance(base.value, Number)
            start = f"({_written(base)})" if is_number else _written(base, bracketed)
            return start + "".join(map(_step, steps))
        case Not(operand=operand):
            return f"!({_written(operand)})"
        case IsUnknown(operand=operand):
            return f"({_written(operand)}) is unknown"
        case Exists(operand=operand):
            return f"exists ({_written(operand)})"
    shown = _operation(node)
    return f"({shown})" if bracketed else shown


def _operation(node: Any) -> str:
    match node:
        case Both(symbol=symbol, left=left, right=right) | Arithmetic(symbol=symbol, left=left, right=right):
            return f"{_below(left, node)} {symbol} {_below(right, node)}"
        case Comparison(symbol=symbol, left=left, right=right):
            return f"{_below(left, node)} {symbol} {_below(right, node)}"
        case Sign(symbol=symbol, operand=operand):
            return symbol + _below(operand, node)
        case StartsWith(operand=operand, prefix=prefix):
            return f"{_below(operand, node)} starts with {_below(prefix, node)}"
        case LikeRegex(operand=operand, pattern=pattern, flags=flags):
            flag = f' flag "{flags}"' if flags else ""
            return f"{_below(operand, node)} like_regex {quoted(pattern)}{flag}"
    raise AssertionError(node)


def _constant(value: Any) -> str:
    if isinstance(value, Number):
        return value
    return quoted(value) if isinstance(value, str) else {None: "null", True: "true", False: "false"}[value]


def _step(step: Step) -> str:
    match step:
        case Field(name=name):
            return f".{quoted(name)}"
        case Fields():
            return ".*"
        case Elements():
            return "[*]"
        case Subscripts(ranges=ranges):
            parts = [_written(first) + (f" to {_written(last)}" if last is not None else "") for first, last in ranges]
            return f"[{','.join(parts)}]"
        case Descendants(first=0, last=-1):
            return ".**"
        case Descendants(first=first, last=last):
            low, high = ("last" if level == LAST else str(level) for level in (first, last))
            return f".**{{{low}}}" if first == last else f".**{{{low} to {high}}}"
        case Method(name=name, template=template):
            return f".{name}({'' if template is None else quoted(template)})"
        case Filter(condition=condition):
            return f"?({_written(condition)})"

"""LIKE and BETWEEN, which are short forms of other predicates."""

from __future__ import annotations

from typing import Any, Final

from pglast import ast
from pglast.enums import A_Expr_Kind

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, BYTEA, TEXT
from planner.algebra.construction import volatility
from planner.algebra.nodes import Call, Literal, Scalar
from planner.algebra.walk import RELATION_KINDS, contains, is_larger
from planner.bind.calls.families.regex_functions import similar_pattern
from planner.bind.calls.operator_calls.operation import operate
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.rows import is_row
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Environment
from planner.parse.parser import nested_too_deep

#: Nodes that an expression may have which a predicate computes more than once.
_REPEATED: Final = 1000


def is_volatile(scalar: Scalar) -> bool:
    """Whether evaluating a scalar twice may give two values."""
    return volatility(scalar) == "volatile"


def negate(scalar: Scalar) -> Scalar:
    """NOT scalar."""
    return Call("not", (scalar,), BOOL)


def bind_like(env: Environment, node: Any) -> Scalar:
    """LIKE, ILIKE and SIMILAR TO: operators whose pattern the grammar may have put into a call (``bind_pattern``)."""
    pattern, left = env.bind(node.rexpr), env.bind(node.lexpr)
    return operate(env, names_of(node.name)[-1], left, pattern, node, (node.lexpr, node.rexpr))


def bind_pattern(env: Environment, node: Any) -> Scalar | None:
    """The pattern that ``LIKE ... ESCAPE`` and ``SIMILAR TO`` match by, which definitions show as a function's result;
    None for every other call.
    """
    *schema, name = names_of(node.funcname)
    if schema not in ([], ["pg_catalog"]):
        return None
    match name, len(node.args or ()):
        case "like_escape", 2:
            return _escaped(env, node)
        case "similar_to_escape", 1 | 2:
            found = [coerce(env.binding, env.bind(item), TEXT, "implicit", item) for item in node.args]
            return similar_pattern([item for item in found if item is not None])
    return None


def _escaped(env: Environment, node: Any) -> Scalar:
    """A pattern with ESCAPE, rewritten to the backslash that LIKE has by default."""
    pattern, escape = (env.bind(item) for item in node.args)
    if not isinstance(escape, Literal):
        raise unsupported("ESCAPE with a computed character", "Write the character.", env.binding.position(node))
    if escape.value is None or (isinstance(pattern, Literal) and pattern.value is None):
        kind = BYTEA if BYTEA in (pattern.type, escape.type) else TEXT
        coerce(env.binding, pattern, kind, "implicit", node)  # a parameter is a text even so
        return Literal(None, kind)
    if not isinstance(pattern, Literal):
        return _rewritten(env, pattern, str(escape.value), node)
    if isinstance(pattern.value, bytes):
        mark = escape.value.decode("latin-1") if isinstance(escape.value, bytes) else str(escape.value)
        text = _with_backslashes(env, pattern.value.decode("latin-1"), mark, node)
        return Literal(text.encode("latin-1"), BYTEA)
    return Literal(_with_backslashes(env, str(pattern.value), str(escape.value), node), TEXT)


def _with_backslashes(env: Environment, text: str, mark: str, node: Any) -> str:
    """A pattern escaped by a mark, by backslashes."""
    _check_mark(env, mark)
    pieces, position = [], 0
    while position < len(text):
        char = text[position]
        if mark and char == mark:
            position += 1
            if position == len(text):
                raise env.error("22025", "LIKE pattern must not end with escape character", node)
            pieces.append("\\" + text[position])
        else:
            pieces.append("\\\\" if char == "\\" else char)
        position += 1
    return "".join(pieces)


def _check_mark(env: Environment, mark: str) -> None:
    """Raises 22025 for more than a character."""
    if len(mark) > 1:
        raise env.error("22025", "invalid escape string", None, hint="Escape string must be empty or one character.")


def _rewritten(env: Environment, pattern: Scalar, mark: str, node: Any) -> Scalar:
    """A pattern that is known when the statement runs, rewritten then."""
    _check_mark(env, mark)
    found = coerce(env.binding, pattern, TEXT, "implicit", node)
    assert found is not None, "like_escape() takes texts"
    if mark == "\\":
        return found
    of_mark = ((mark * 2, "\1"), (mark, "\\"), ("\1", f"\\{mark}")) if mark else ()
    for old, new in (("\\", "\\\\"), *of_mark):
        found = Call("replace", (found, Literal(old, TEXT), Literal(new, TEXT)), TEXT)
    return found


def bind_between(env: Environment, node: Any) -> Scalar:
    """x BETWEEN a AND b is x >= a AND x <= b; SYMMETRIC tries both orders."""
    kind = node.kind
    is_symmetric = kind in (A_Expr_Kind.AEXPR_BETWEEN_SYM, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM)
    found = _rows_between(env, node, is_symmetric) if is_row(node.lexpr) else _between(env, node, is_symmetric)
    negated = kind in (A_Expr_Kind.AEXPR_NOT_BETWEEN, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM)
    return negate(found) if negated else found


def _between(env: Environment, node: Any, is_symmetric: bool) -> Scalar:
    low_node, high_node = node.rexpr
    value = env.bind(node.lexpr)
    low, high = env.bind(low_node), env.bind(high_node)

    def both(first: Scalar, second: Scalar) -> Scalar:
        lower = operate(env, ">=", again(env, value, node.lexpr), first, node, (node.lexpr, low_node))
        upper = operate(env, "<=", again(env, value, node.lexpr), second, node, (node.lexpr, high_node))
        return Call("and", (lower, upper), BOOL)

    found = both(low, high)
    if is_symmetric:
        found = Call("or", (found, both(again(env, high, high_node), again(env, low, low_node))), BOOL)
    return found


def _rows_between(env: Environment, node: Any, is_symmetric: bool) -> Scalar:
    """The same of a row constructor, whose comparisons are those of its columns."""

    def compared(name: str, bound: Any) -> Scalar:
        names = (ast.String(sval=name),)
        single = ast.A_Expr(
            kind=A_Expr_Kind.AEXPR_OP, name=names, lexpr=node.lexpr, rexpr=bound, location=node.location
        )
        found = env.bind(single)
        refuse_large(found)
        return found

    def both(low: Any, high: Any) -> Scalar:
        return Call("and", (compared(">=", low), compared("<=", high)), BOOL)

    low, high = node.rexpr
    return Call("or", (both(low, high), both(high, low)), BOOL) if is_symmetric else both(low, high)


def again(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """The scalar for another place of the tree: a subquery in it needs columns of its own there, and a parameter may
    have got its type meanwhile. Raises 54001.
    """
    refuse_large(scalar)
    if scalar.type.name == "unknown" or contains(scalar, RELATION_KINDS):
        return env.bind(node)
    return scalar


def refuse_large(scalar: Scalar) -> None:
    """Raises 54001 for what is too large to stand twice: twice in what stands twice doubles with each level."""
    if is_larger(scalar, _REPEATED):
        raise nested_too_deep()

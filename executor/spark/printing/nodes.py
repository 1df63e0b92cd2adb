"""Builders of Spark SQL that all printers of this package use: casts, constant arguments, refusals, and named values.

Owns: ``refuse``, ``cast``, ``literal_int``, ``let`` and ``once``. Spark's SQL has no way to name a value inside an
expression, so a value that an expression uses more than once is bound by a lambda over an array of one struct.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from catalog.values.errors import unsupported
from executor.printing.nodes import Expr
from planner.algebra.nodes import Call, ColumnRef, Literal


def refuse(node: Call, why: str = "") -> Exception:
    """0A000 that names a call."""
    kinds = ", ".join(str(item.type) for item in node.arguments)
    return unsupported(f"{node.function}({kinds}){' ' + why if why else ''}")


def cast(value: Expr, name: str) -> Expr:
    """CAST(value AS name)."""
    return exp.Cast(this=value, to=exp.Var(this=name))


def literal_int(node: Call, index: int) -> int:
    """A constant argument."""
    item = node.arguments[index]
    if not (isinstance(item, Literal) and isinstance(item.value, int)):
        raise refuse(node, "with an argument that is not constant")
    return item.value


def let(bindings: dict[str, str], body: str) -> str:
    """``body`` with v.<name> bound, each evaluated once."""
    fields = ", ".join(f"'{name}', {value}" for name, value in bindings.items())
    return f"TRANSFORM(ARRAY(NAMED_STRUCT({fields})), v -> {body})[0]"


def once(dialect: Any, arguments: list[Expr], node: Call, pattern: str) -> Expr:
    """A pattern of Spark's SQL with the arguments as {0}, {1}, ..., bound to names where they are not short."""
    printed = [dialect.generate(item) for item in arguments]
    if all(isinstance(item, ColumnRef | Literal) for item in node.arguments):
        return exp.Var(this=f"({pattern.format(*printed)})")
    names = [f"a{place}" for place in range(len(printed))]
    return exp.Var(this=let(dict(zip(names, printed, strict=True)), pattern.format(*(f"v.{name}" for name in names))))

"""Window functions that are not aggregates, in DuckDB's SQL.

Owns: the differences between DuckDB's and PostgreSQL's arguments and results: counts are checked (22014, 22016), and
results of type integer in PostgreSQL are cast to it.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from catalog.values.errors import unsupported
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import cast_to
from executor.printing.nodes import Expr, binary, case, function, text
from planner.algebra.functions import WINDOW_FUNCTIONS
from planner.algebra.nodes import WindowCall

#: The argument that must be positive, and PostgreSQL's error if it is not.
_POSITIVE: Final = {
    "ntile": (0, "!22014!argument of ntile must be greater than zero"),
    "nth_value": (1, "!22016!argument of nth_value must be greater than zero"),
}


def call(printer: EntryPoints, node: WindowCall, arguments: list[Expr], over: Expr) -> Expr:
    """function(arguments) OVER (...)."""
    if node.function not in WINDOW_FUNCTIONS:
        raise unsupported(f"window function {node.function}")
    if node.function in _POSITIVE:
        place, message = _POSITIVE[node.function]
        zero = exp.Literal.number(0)
        wrong = binary(exp.LTE, arguments[place].copy(), zero)
        arguments[place] = case([(wrong, function("error", text(message)))], arguments[place])
    over.set("this", function(node.function, *arguments))
    return cast_to(printer, over, node.type) if node.type.name.startswith("int") else over

"""The expressions that catalogs keep: as PostgreSQL writes them where every detail is known, else as their user did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalog.values.types import SqlType
from planner.algebra.scalars import Column
from planner.bind.context import Binding
from planner.bind.definitions.kept import kept_text
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.texts import deparsed_expression

_IN_PARENTHESES: Final = ("A_Expr", "BoolExpr", "NullTest", "BooleanTest")


def expression_text(binding: Binding, tree: Any, columns: Sequence[Column], kind: SqlType | None = None) -> str:
    """The text of a default, a check, a generated column or an index's expression over a row's columns, as
    pg_get_expr() shows it; ``kind``: what its value is assigned to.

    A text means what the expression means; users' types in it are named by oid, as in all kept texts::

        a IN ('x', 'y')   ->   ((a)::text = ANY ((ARRAY['x'::character varying, 'y'::character varying])::text[]))
    """
    try:
        return deparsed_expression(binding, tree, columns, kind)
    except AsWrittenError:
        text = kept_text(binding, tree)
        return f"({text})" if type(tree).__name__ in _IN_PARENTHESES else text

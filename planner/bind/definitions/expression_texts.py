"""Texts of the expressions that the catalog keeps: defaults, checks, generated columns and indexes' expressions.

Owns: ``expression_text``, the text as PostgreSQL's pg_get_expr() shows it where every detail is known and as its user
wrote it elsewhere, and ``kept_text``, the latter. In both, users' types are named by oid and users' functions with
their schemas, so that search_path does not change what a text means.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from pglast.ast import String
from pglast.stream import RawStream

from catalog.postgres import functions
from catalog.values.types import SqlType
from planner.algebra.nodes import Column
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.texts import deparsed_expression
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.search_path import find_functions
from planner.bind.lookup.type_names import BY_OID, find_declared
from planner.bind.state.environment import Binding
from planner.parse.parser import nodes

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


def kept_text(binding: Binding, tree: Any) -> str:
    """An expression as its user wrote it."""
    tree = copy.deepcopy(tree)
    for node in nodes(tree):
        found = find_declared(binding, names_of(node.names)) if type(node).__name__ == "TypeName" else None
        if found is not None:
            node.names = (String(BY_OID), String(str(found.oid)))
        if type(node).__name__ == "FuncCall" and (schema := _schema_of(binding, names_of(node.funcname))):
            node.funcname = (String(schema), *node.funcname)
    return str(RawStream()(tree))


def _schema_of(binding: Binding, names: tuple[str, ...]) -> str:
    """The schema of a user's function that a bare name means; '' where there is none, or PostgreSQL has one, too."""
    found = find_functions(binding, names[-1], None) if len(names) == 1 else []
    return found[0].schema if found and not functions(names[-1]) else ""

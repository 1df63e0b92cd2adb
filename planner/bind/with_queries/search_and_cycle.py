"""SEARCH and CYCLE of a recursive query: columns that tell the order and the path of the recursion.

Owns: the SQL without the two clauses that the documentation gives for them, and their errors. Over
``base UNION ALL step``, each a query in FROM::

    SEARCH DEPTH FIRST BY k SET o       SELECT *, ARRAY[ROW(k)]    step: o || ROW(k)
    SEARCH BREADTH FIRST BY k SET o     SELECT *, ROW(0, k)        step: ROW(depth of o + 1, k)
    CYCLE k SET m USING p               SELECT *, false, ARRAY[ROW(k)]
                                        step: ROW(k) = ANY (p), p || ROW(k) ... WHERE m <> true

https://www.postgresql.org/docs/15/queries-with.html#QUERIES-WITH-SEARCH
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final

from pglast import ast
from pglast.enums import A_Expr_Kind, CoercionForm, SetOperation

from catalog.values.errors import SqlError
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Binding

#: What the terms are called in FROM, which no user's names are.
_TERM: Final = "*TERM*"
BASE: Final = "*BASE*"


def added_names(node: Any) -> tuple[str, ...]:
    """The columns that a WITH query's SEARCH and CYCLE add, in their order."""
    search, cycle = node.search_clause, node.cycle_clause
    names = () if search is None else (search.search_seq_column,)
    return names if cycle is None else (*names, cycle.cycle_mark_column, cycle.cycle_path_column)


def check_tracing(binding: Binding, node: Any, recursive: bool) -> None:
    """Both clauses are a recursive query's of two SELECTs. Raises 42601 and 0A000."""
    if not added_names(node):
        return
    query = node.ctequery
    if not recursive or query.op == SetOperation.SETOP_NONE:
        raise SqlError("42601", "WITH query is not recursive", position=binding.position(node))
    for side, term, sqlstate in (("left", query.larg, "0A000"), ("right", query.rarg, "42601")):
        if term.op != SetOperation.SETOP_NONE:
            raise SqlError(sqlstate, f"with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT")


def traced(binding: Binding, node: Any, labels: Sequence[str]) -> Any:
    """The query of a WITH query without its clauses, which has their columns behind its own, called ``labels``; its
    base reads ``BASE``, which is the base without them."""
    _check_names(binding, node, labels)
    query, search, cycle = node.ctequery, node.search_clause, node.cycle_clause
    first: list[Any] = []
    later: list[Any] = []
    if search is not None:
        key, order = names_of(search.search_col_list), _column(search.search_seq_column)
        if search.search_breadth_first:
            depth = ast.A_Indirection(arg=order, indirection=(ast.String(sval="f1"),))
            first.append(_row(key, [_cast(_integer(0), "int8")]))
            later.append(_row(key, [_operation("+", depth, _integer(1))]))
        else:
            first.append(_array(_row(key)))
            later.append(_operation("||", order, _row(key)))
    if cycle is not None:
        key, path = names_of(cycle.cycle_col_list), _column(cycle.cycle_path_column)
        never = ast.A_Const(val=ast.Boolean(boolval=False))
        first += [_mark(cycle, never), _array(_row(key))]
        seen = _operation("=", _row(key), path, A_Expr_Kind.AEXPR_OP_ANY)
        later += [_mark(cycle, seen), _operation("||", path, _row(key))]
    step = _with_added(node, query.rarg)
    found = copy(query)
    read = ast.RangeVar(relname=BASE, inh=True, relpersistence="p", alias=ast.Alias(aliasname=_TERM))
    found.larg = _around(query.larg, read, labels, first)
    alias = ast.Alias(aliasname=_TERM, colnames=tuple(ast.String(sval=name) for name in (*labels, *added_names(node))))
    found.rarg = _around(step, ast.RangeSubselect(lateral=False, subquery=step, alias=alias), labels, later)
    if cycle is not None:
        goes_on = _operation("<>", _column(cycle.cycle_mark_column), cycle.cycle_mark_value)
        found.rarg.whereClause = goes_on
    return found


def _with_added(node: Any, step: Any) -> Any:
    """The step, which hands on the columns of the row that it came from. Raises 0A000."""
    itself = next((item for item in _from_items(step) if _is(item, node.ctename)), None)
    if itself is None:
        message = (
            f'with a SEARCH or CYCLE clause, the recursive reference to WITH query "{node.ctename}" must be at the top'
            " level of its right-hand SELECT"
        )
        raise SqlError("0A000", message)
    name = itself.relname if itself.alias is None else itself.alias.aliasname
    found = copy(step)
    found.targetList = (*step.targetList, *(_target(_column(name, item)) for item in added_names(node)))
    return found


def _from_items(step: Any) -> list[Any]:
    left, found = list(step.fromClause or ()), []
    while left:
        item = left.pop()
        if type(item).__name__ == "JoinExpr":
            left += [item.larg, item.rarg]
        else:
            found.append(item)
    return found


def _is(item: Any, name: str) -> bool:
    return type(item).__name__ == "RangeVar" and item.relname == name and item.schemaname is None


def _around(term: Any, item: Any, names: Sequence[str], added: list[Any]) -> Any:
    """A term's own columns, of an item of FROM, and others made of them."""
    kept = [_target(_column(_TERM, name)) for name in names]
    return ast.SelectStmt(
        targetList=(*kept, *map(_target, added)),
        fromClause=(item,),
        op=SetOperation.SETOP_NONE,
        limitOption=term.limitOption,
        all=False,
        groupDistinct=False,
    )


# --- errors ----------------------------------------------------------------------------------------------------------


def _check_names(binding: Binding, node: Any, labels: Sequence[str]) -> None:
    """Raises 42701 and 42601."""
    search, cycle = node.search_clause, node.cycle_clause
    if search is not None:
        fail = _failing(binding, search)
        _check_keys(fail, "search", names_of(search.search_col_list), labels)
        order = search.search_seq_column
        if order in labels:
            fail("42601", f'search sequence column name "{order}" already used in WITH query column list')
        if cycle is not None:
            for name, words in ((cycle.cycle_mark_column, "mark"), (cycle.cycle_path_column, "path")):
                if name == order:
                    fail("42601", f"search sequence column name and cycle {words} column name are the same")
    if cycle is None:
        return
    fail = _failing(binding, cycle)
    _check_keys(fail, "cycle", names_of(cycle.cycle_col_list), labels)
    mark, path = cycle.cycle_mark_column, cycle.cycle_path_column
    for name, words in ((mark, "mark"), (path, "path")):
        if name in labels:
            fail("42601", f'cycle {words} column name "{name}" already used in WITH query column list')
    if mark == path:
        fail("42601", "cycle mark column name and cycle path column name are the same")


def _check_keys(fail: Callable[[str, str], None], clause: str, keys: Sequence[str], labels: Sequence[str]) -> None:
    for place, name in enumerate(keys):
        if name not in labels:
            fail("42601", f'{clause} column "{name}" not in WITH query column list')
        if name in keys[:place]:
            fail("42701", f'{clause} column "{name}" specified more than once')


def _failing(binding: Binding, clause: Any) -> Callable[[str, str], None]:
    def fail(sqlstate: str, message: str) -> None:
        raise SqlError(sqlstate, message, position=binding.position(clause))

    return fail


# --- nodes of the grammar --------------------------------------------------------------------------------------------


def _column(*names: str) -> Any:
    return ast.ColumnRef(fields=tuple(ast.String(sval=name) for name in names))


def _target(value: Any) -> Any:
    return ast.ResTarget(val=value)


def _integer(value: int) -> Any:
    return ast.A_Const(val=ast.Integer(ival=value))


def _cast(value: Any, name: str) -> Any:
    names = (ast.String(sval="pg_catalog"), ast.String(sval=name))
    return ast.TypeCast(arg=value, typeName=ast.TypeName(names=names, typemod=-1))


def _row(key: Sequence[str], before: Sequence[Any] = ()) -> Any:
    return ast.RowExpr(args=(*before, *map(_column, key)), row_format=CoercionForm.COERCE_EXPLICIT_CALL)


def _array(item: Any) -> Any:
    return ast.A_ArrayExpr(elements=(item,))


def _operation(name: str, left: Any, right: Any, kind: A_Expr_Kind = A_Expr_Kind.AEXPR_OP) -> Any:
    return ast.A_Expr(kind=kind, name=(ast.String(sval=name),), lexpr=left, rexpr=right)


def _mark(cycle: Any, condition: Any) -> Any:
    """The mark's value where a condition holds, its default elsewhere."""
    when = ast.CaseWhen(expr=condition, result=cycle.cycle_mark_value)
    return ast.CaseExpr(args=(when,), defresult=cycle.cycle_mark_default)

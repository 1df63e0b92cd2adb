"""The texts 'now', 'today', 'tomorrow' and 'yesterday' as dates and times, by the transaction's time.

Owns: ``relative``. PostgreSQL reads such a text once, when it parses the statement. A stored text (a view, default or
prepared statement) would keep the moment of its creation, which is not what its author means, so there the text is left
to the input function, which raises an error.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.values.types import DATE, INT4, TIMESTAMPTZ, SqlType
from planner.algebra.nodes import Call, Cast, Literal, Scalar

_DAYS: Final = {"today": 0, "tomorrow": 1, "yesterday": -1}
_MOMENTS: Final = ("date", "timestamp", "timestamptz")
#: Statements that are over when they have run.
_PASSING: Final = ("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "ExplainStmt", "CopyStmt")


def relative(statement: Any, text: str, target: SqlType) -> Scalar | None:
    """What such a text means in a statement's tree; None for any other text, type or statement."""
    word = text.strip().lower().removesuffix("()")  # punctuation is nothing to PostgreSQL
    if type(statement).__name__ not in _PASSING:
        return None
    if word == "now" and target.name in (*_MOMENTS, "time", "timetz"):
        return _as(Call("now", (), TIMESTAMPTZ), target)
    if word not in _DAYS or target.name not in _MOMENTS:
        return None
    today: Scalar = Call("current_date", (), DATE)
    if _DAYS[word]:
        today = Call("add", (today, Literal(_DAYS[word], INT4)), DATE)
    return _as(today, target)


def _as(moment: Scalar, target: SqlType) -> Scalar:
    return moment if moment.type == target else Cast(moment, target, True)

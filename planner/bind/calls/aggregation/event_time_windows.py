"""Windows over event time in GROUP BY: tumble, hop and session. PostgreSQL has no such functions.

Owns: their arguments, and the input of a grouping by hop (``session_windows`` has that of session). A window is
identified by its start, a value of the event time's type. It ends ``size`` later, where the next window starts::

    tumble(ts, size)         date_bin(size, ts, origin)
    hop(ts, slide, size)     R x {0, 1, ...}: the start of the n-th last window that has begun at ts, if it holds ts
    session(ts, gap)         the first ts of rows of which each follows the one before within the gap

The default origin is 2001-01-01 00:00 (UTC), a Monday, so that windows of weeks begin as date_trunc's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, TypeGuard

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT4, INTERVAL, TIMESTAMP, SqlType
from planner.algebra.event_time import later, microseconds
from planner.algebra.nodes import Call, ColumnRef, Filter, Join, Literal, Relation, Scalar, Values
from planner.algebra.walk import walk
from planner.bind.calls.aggregation.session_windows import in_sessions
from planner.bind.calls.overloading.choice import NO_MATCH
from planner.bind.conversion.coercion import coerce
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Binding, Environment

#: The calls that hop() and session() are until their query's groups are known.
HOP: Final = "hop"
SESSION: Final = "session"
#: Names of this module's functions, with their least and greatest number of arguments.
EVENT_TIME: Final = {"tumble": (2, 3), HOP: (3, 4), SESSION: (2, 2)}
_ORIGIN: Final = dt.datetime(2001, 1, 1)
#: What one row may be multiplied by.
_MOST_WINDOWS: Final = 1000


def bind_event_time(env: Environment, node: Any) -> Scalar:
    """A call of tumble, hop or session. Raises 42883, 42803, 22008 and 0A000."""
    name = names_of(node.funcname)[-1]
    arguments = [env.bind(item) for item in node.args or ()]
    least, most = EVENT_TIME[name]
    kind = _kind(arguments[0].type) if least <= len(arguments) <= most else None
    lengths = least - 1
    targets = [kind, *(INTERVAL,) * lengths, kind][: len(arguments)]
    coerced = [
        None if target is None else coerce(env.binding, item, target, "implicit", place)
        for item, target, place in zip(arguments, targets, node.args or (), strict=False)
    ]
    if kind is None or None in coerced:
        signature = f"{name}({', '.join(display(item.type) for item in arguments)})"
        raise env.error("42883", f"function {signature} does not exist", node, hint=NO_MATCH)
    time, *rest = (item for item in coerced if item is not None)
    for item in rest[:lengths]:
        _check_length(env, name, item, node)
    if name == SESSION:
        return _placeholder(env, Call(SESSION, (time, rest[0]), kind), node)
    origin = rest[lengths] if len(rest) > lengths else Literal(_origin(kind), kind)
    if not isinstance(origin, Literal):
        instead = "Give the origin as a constant timestamp."
        raise unsupported(f"{name}() with a computed origin", instead, env.binding.position(node))
    if name == HOP:
        return _placeholder(env, Call(HOP, (time, *rest[:lengths], origin), kind), node)
    return Call("date_bin", (rest[0], time, origin), kind)


def _kind(given: SqlType) -> SqlType | None:
    """The type in which event time of a type is taken; None where it is no time."""
    if given.name in ("timestamp", "timestamptz"):
        return given
    return TIMESTAMP if given.name in ("date", "unknown") else None


def _origin(kind: SqlType) -> dt.datetime:
    return _ORIGIN if kind.name == "timestamp" else _ORIGIN.replace(tzinfo=dt.UTC)


def _check_length(env: Environment, name: str, length: Scalar, node: Any) -> None:
    if not isinstance(length, Literal) or not isinstance(length.value, tuple):
        instead = "Write it as a constant, such as interval '5 minutes'."
        raise unsupported(f"{name}() with an interval that is not constant", instead, env.binding.position(node))
    if length.value[0]:
        instead = "Use days and shorter units, or GROUP BY date_trunc('month', ...)."
        raise unsupported(f"{name}() with an interval of months or years", instead, env.binding.position(node))
    if microseconds(length) <= 0:
        raise env.error("22008", "window length must be greater than zero", node)


def _placeholder(env: Environment, call: Call, node: Any) -> Scalar:
    """A call that makes its query one over groups, in which it must be a key."""
    if env.clause != "GROUP BY" and (env.groups is None or env.in_aggregate):
        where = "an aggregate" if env.in_aggregate else env.clause
        raise refuse_outside(call.function, env.binding.position(node), f" in {where}")
    if env.groups is not None:
        env.groups.is_used = True
    env.binding.remember(call, node, call.function)
    return call


def refuse_outside(name: str, position: int | None, where: str = "") -> SqlError:
    """Raises for hop() or session() outside of GROUP BY."""
    return unsupported(f"{name}(){where} outside of GROUP BY", f"Group by {name}() in a subquery.", position)


# -- what a grouping's input becomes -----------------------------------------------------------------------------------


def is_placeholder(scalar: object) -> TypeGuard[Call]:
    """Whether an expression is hop() or session() itself."""
    return isinstance(scalar, Call) and scalar.function in (HOP, SESSION)


def window_key(binding: Binding, keys: Sequence[Scalar], sets: int) -> Call | None:
    """The one key that is hop() or session(), if there is one. Raises 0A000 where it cannot be told from others."""
    found = [(item, key) for key in keys for item in walk(key) if is_placeholder(item)]
    if not found:
        return None
    call, key = found[-1]
    position = binding.origin(call)[0]
    if call is not key:
        instead = f"Group by {call.function}() alone, and compute with it in the select list."
        raise unsupported(f"an expression over {call.function}() in GROUP BY", instead, position)
    if len(found) > 1 or sets > 1:
        what = "several windows" if len(found) > 1 else "several grouping sets"
        instead = f"Group by {call.function}() in a subquery first."
        raise unsupported(f"{call.function}() in a GROUP BY of {what}", instead, position)
    return call


def expand(binding: Binding, source: Relation, window: Call, others: tuple[Scalar, ...]) -> tuple[Relation, Scalar]:
    """The rows with the windows that each belongs to, and the start of the window over them.

    ``others`` are the keys beside the window. A row without a time is in the window NULL, once. Raises 0A000 for more
    windows than a row may be multiplied by.
    """
    if window.function == HOP:
        return _hops(binding, source, window)
    return in_sessions(binding, source, window, others)


def _hops(binding: Binding, source: Relation, call: Call) -> tuple[Relation, Scalar]:
    time, slide, size, origin = call.arguments
    count = -(-microseconds(size) // microseconds(slide))
    if count > _MOST_WINDOWS:
        instead = f"Use a slide that fits into the size at most {_MOST_WINDOWS} times."
        raise unsupported(f"hop() with {count} windows for each row", instead, binding.origin(call)[0])
    number = binding.column("window_number", INT4, False)
    rows = Values((number,), tuple((Literal(place, INT4),) for place in range(count)))
    start = Call("hop_start", (slide, size, time, origin, ColumnRef(number)), call.type)
    copies = Join("inner", source, rows, None)
    is_exact = microseconds(size) % microseconds(slide) == 0
    if is_exact and isinstance(time, ColumnRef) and not time.column.nullable:
        return copies, start
    holds: Scalar = Call("is_not_null", (time,), BOOL)
    if not is_exact:  # the earliest of the windows may have ended before
        holds = Call("lt", (time, later(start, microseconds(size))), BOOL)
    timeless = (Call("is_null", (time,), BOOL), Call("eq", (ColumnRef(number), Literal(0, INT4)), BOOL))
    predicate = Call("or", (holds, Call("and", timeless, BOOL)), BOOL)
    return Filter(copies, predicate), start

"""The options of views, WITH (...) and ALTER VIEW ... SET and RESET: their values, and which a view may change.

Owns: the table of options. A new option is a row of ``OPTIONS``; ``executor.sql.view_options`` has what happens when a
view that exists gets another value, where that is more than another text in the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from catalog.objects import ROW_POLICIES
from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.relations.watermarks import bind_length
from planner.bind.definitions.view_definitions.derived_views import MAINTAINED
from planner.bind.lookup.dotted_names import names_of
from planner.bind.state.environment import Binding
from planner.incremental.pace_options import (
    FINAL,
    LATENCY,
    TOTAL,
    TRIGGER,
    read_length,
    read_ratio,
    read_trigger,
    require_together,
)

Options = tuple[tuple[str, str], ...]
#: From an option's name, its value in a statement and the position of that to the text that is kept, or None where the
#: option is of the statement alone. Raises 22023 and 0A000.
Reading = Callable[[str, str, int | None], str | None]

CHECK: Final = "check_option"
#: Says what becomes of rows on which an expression fails.
ON_ERROR: Final = "on_error"
#: Says with which rows a new view starts.
START: Final = "start"
#: Says that CREATE OR REPLACE may empty a continuous view.
RESTART: Final = "restart"
_TRUE: Final = frozenset(("true", "on", "yes", "1"))
_BOOLEANS: Final = _TRUE | {"false", "off", "no", "0"}


class ViewOption(Struct, frozen=True):
    """One option: how its value is read, and what a view has without it.

    ``is_of_query``: it is part of what the view shows, so that another value needs another program. ``instead``: what
    to do instead of ALTER VIEW, which cannot change it; empty where ALTER VIEW can."""

    read: Reading
    default: str = ""
    is_of_query: bool = False
    instead: str = ""


def _boolean(name: str, value: str, position: int | None) -> str:
    if value.lower() not in _BOOLEANS:
        raise SqlError("22023", f'invalid value for boolean option "{name}": {value}')
    return value.lower()


def _truth(name: str, value: str, position: int | None) -> str:
    return "true" if _boolean(name, value, position) in _TRUE else "false"


def _of_statement(name: str, value: str, position: int | None) -> None:
    _boolean(name, value, position)


def _one_of(*values: str) -> Reading:
    def read(name: str, value: str, position: int | None) -> str:
        if value not in values:
            hint = f"Valid values are {', '.join(values)}."
            raise SqlError("22023", f'invalid value for option "{name}": "{value}"', hint=hint, position=position)
        return value

    return read


def _length(name: str, value: str, position: int | None) -> str:
    bind_length(value, name, position)
    return value


def _action(name: str, value: str, position: int | None) -> None:
    """PipelineDB's: materialize is what every continuous view does."""
    if value != "materialize":
        raise unsupported(f"WITH (action = {value})", "Use action = materialize.", position)


def _goal(name: str, value: str, position: int | None) -> str:
    read_length(name, value, position)
    return value


def _ratio(name: str, value: str, position: int | None) -> str:
    read_ratio(name, value, position)
    return value


def _trigger(name: str, value: str, position: int | None) -> str:
    read_trigger(value, position)
    return value


_ANEW: Final = "Create the view again, or write CREATE OR REPLACE VIEW ... WITH (..., restart = true)."
OPTIONS: Final[Mapping[str, ViewOption]] = {
    CHECK: ViewOption(_one_of("local", "cascaded")),
    "security_barrier": ViewOption(_boolean, "false"),
    "security_invoker": ViewOption(_boolean, "false"),
    "maintenance_engine": ViewOption(_one_of("auto", "spark", "embedded")),
    "method": ViewOption(_one_of("auto", "incremental", "higher_order", "delta", "recompute"), "auto"),
    "refresh_policy": ViewOption(_one_of("auto", "incremental"), "auto"),
    "retention": ViewOption(_length, is_of_query=True),
    "emit": ViewOption(_one_of("changes", "final"), "changes", is_of_query=True),
    "tables": ViewOption(_one_of("live", "frozen", "arrival"), is_of_query=True),
    MAINTAINED: ViewOption(
        _truth, "false", instead="Write CREATE OR REPLACE VIEW ... WITH (maintained = ...) AS and the query."
    ),
    ON_ERROR: ViewOption(_one_of(*ROW_POLICIES), "fail"),
    START: ViewOption(_one_of("history", "now"), instead=_ANEW),
    RESTART: ViewOption(_of_statement),
    "action": ViewOption(_action),
    LATENCY: ViewOption(_goal),
    FINAL: ViewOption(_ratio),
    TOTAL: ViewOption(_ratio),
    TRIGGER: ViewOption(_trigger),
}


def read_options(old: Options, items: Any, binding: Binding) -> Options:
    """A view's options with those of a statement. Raises 22023 and 0A000."""
    found, positions = dict(old), dict[str, int | None]()
    for item in items or ():
        name, position = item.defname.lower(), binding.position(item)
        if name not in OPTIONS:
            raise SqlError("22023", f'unrecognized parameter "{name}"', position=position)
        value = OPTIONS[name].read(name, _text(item.arg), position)
        if value is not None:
            found[name], positions[name] = value, position
    require_together(found, positions)
    return tuple(found.items())


def without_options(old: Options, items: Any) -> Options:
    """A view's options but for those that RESET names."""
    reset = {item.defname.lower() for item in items}
    return tuple(item for item in old if item[0] not in reset)


def restarts(items: Any) -> bool:
    """Whether the options say that the view may begin again."""
    return any(item.defname.lower() == RESTART and _text(item.arg).lower() in _TRUE for item in items or ())


def changed_options(before: Options, after: Options) -> tuple[str, ...]:
    """The names of the options with another value than before; without a value an option has its default."""
    old, new = dict(before), dict(after)
    return tuple(name for name in {**old, **new} if _value(old, name) != _value(new, name))


def _value(options: Mapping[str, str], name: str) -> str:
    return options.get(name, OPTIONS[name].default if name in OPTIONS else "")


def changes_query(before: Options, after: Options) -> bool:
    """Whether a view with other options shows other rows."""
    return any(OPTIONS[name].is_of_query for name in changed_options(before, after) if name in OPTIONS)


def require_changeable(before: Options, after: Options, items: Any, binding: Binding) -> None:
    """Raises 0A000 for an option that ALTER VIEW cannot change."""
    names = (name for name in changed_options(before, after) if name in OPTIONS)
    name = next((name for name in names if OPTIONS[name].instead), None)
    if name is not None:
        position = next((binding.position(item) for item in items if item.defname.lower() == name), None)
        raise unsupported(f"changing the view option {name}", OPTIONS[name].instead, position)


def _text(node: Any) -> str:
    """An option's value: maintenance_engine = spark parses as a type's name."""
    match type(node).__name__:
        case "NoneType":
            return "true"
        case "TypeName":
            return names_of(node.names)[-1]
        case "String":
            return str(node.sval)
        case "Boolean":
            return "true" if node.boolval else "false"
        case "Integer":
            return str(node.ival)
        case _:
            return str(getattr(node, "fval", ""))

"""Parameters and the kinds of their values: how a client's text is read, and how a value is shown, as guc.c does.

Owns: ``Parameter``, a reader for each kind, and the units. Which parameters there are is
``server.settings.parameters``.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from catalog.values.encodings import CODECS, encoding_named
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import split_list
from catalog.values.times.zones import posix_name, session_zone

#: Turns a client's text into the stored text; gets the parameter's name for its messages.
Reader = Callable[[str, str], str]
#: Who may set it and when, in pg_settings' words; "server": when the server starts.
Context = Literal["user", "superuser", "internal", "server", "sighup", "backend"]


class Parameter(Struct, frozen=True):
    """One parameter. ``reported`` ones go out as ParameterStatus; ``unit`` is '', or a number's, of ``_UNITS``."""

    name: str
    default: str
    read: Reader
    description: str
    context: Context = "user"
    reported: bool = False
    unit: str = ""
    #: Reads a text that says a part of the value, beside the present one; None: it says all of it.
    onto: Callable[[str, str, str], str] | None = None


def _invalid(name: str, value: str, hint: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)


def text(name: str, value: str) -> str:
    """Any text."""
    return value


def ascii_text(name: str, value: str) -> str:
    """Any text, in which each byte that ASCII does not print is a question mark (pg_clean_ascii)."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in value.encode())


def boolean(name: str, value: str) -> str:
    """Any unique prefix of on, off, true, false, yes, no, 1, 0."""
    lowered = value.strip().lower()
    if lowered in ("on", "1") or (lowered and any(word.startswith(lowered) for word in ("true", "yes"))):
        return "on"
    if lowered in ("of", "off", "0") or (lowered and any(word.startswith(lowered) for word in ("false", "no"))):
        return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def always(value: str) -> Reader:
    """A Boolean that has one value only: the other one is PostgreSQL's, but not ours (0A000)."""

    def read(name: str, written: str) -> str:
        if boolean(name, written) != value:
            raise unsupported(f"{name} = {boolean(name, written)}", f"Available values: {value}.")
        return value

    return read


def only(*values: str) -> Reader:
    """One of these values, which do here what they say: all others are PostgreSQL's, but not ours (0A000)."""

    def read(name: str, written: str) -> str:
        wanted = written.strip().lower()
        for value in values:
            if value.lower() == wanted:
                return value
        raise unsupported(f"{name} = {written}", f"Available values: {', '.join(filter(None, values))}.")

    return read


def enumeration(*words: str) -> Reader:
    """One of these words; where on and off are among them, what else a Boolean may be written as."""
    reads = one_of(*words)

    def read(name: str, value: str) -> str:
        if "off" in words and value.strip().lower() in ("true", "false", "yes", "no", "1", "0"):
            return boolean(name, value)
        return reads(name, value)

    return read


def one_of(*words: str, refused: tuple[str, ...] = (), hidden: Mapping[str, str] = MappingProxyType({})) -> Reader:
    """One of these words; ``refused`` ones are PostgreSQL's, but not ours (0A000). ``hidden`` ones stand for another
    or themselves, and no hint names them.
    """

    def read(name: str, value: str) -> str:
        lowered = value.strip().lower()
        if lowered in hidden:
            return hidden[lowered]
        if lowered in refused:
            raise unsupported(f"{name} = {lowered}", f"Available values: {', '.join(words)}.")
        if lowered not in words:
            raise _invalid(name, value, f"Available values: {', '.join(words)}.")
        return lowered

    return read


_TIMES: Final = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_SIZES: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def _in(unit: int, units: dict[str, int]) -> dict[str, float]:
    return {name: size / unit for name, size in units.items()}


#: What a number may be written in, for each unit that it is kept in.
_UNITS: Final[dict[str, dict[str, float]]] = {
    "": {},
    **{name: _in(_TIMES[name], _TIMES) for name in ("ms", "s", "min")},
    **{name: _in(_SIZES[name], _SIZES) for name in ("B", "kB", "MB")},
    "8kB": _in(8 * _SIZES["kB"], _SIZES),
}
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*)\s*")


def number(least: float, greatest: float, unit: str = "", whole: bool = True) -> Reader:
    """A number within bounds, with an optional unit that is converted to the parameter's own."""

    def read(name: str, value: str) -> str:
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise _invalid(name, value)
        factor = 1.0
        if match[2]:
            units = _UNITS[unit]
            if match[2] not in units:
                hint = f"Valid units for this parameter are {', '.join(map(repr, units))}." if units else None
                raise _invalid(name, value, hint)
            factor = units[match[2]]
        result = float(match[1]) * factor
        if not least <= result <= greatest:
            suffix = f" {unit}" if unit else ""
            bounds = f"({least:.15g}{suffix} .. {greatest:.15g}{suffix})"
            message = f'{result:.15g}{suffix} is outside the valid range for parameter "{name}" {bounds}'
            raise SqlError("22023", message)
        return str(round(result)) if whole else f"{result:.15g}"

    return read


#: Seconds between Greenwich and no zone any more, in PostgreSQL and here.
_FARTHEST_ZONE, _DAY_OF_SECONDS = 168 * 3600, 24 * 3600


@cache
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}


def time_zone(name: str, value: str) -> str:
    """A name of the tz database in any case, hours east of Greenwich, or a POSIX rule, as PostgreSQL shows it."""
    if re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", value):
        return _zone_at(name, float(value))
    lowered = value.strip().lower()
    if lowered in ("utc", "gmt"):
        return lowered.upper()
    found = _zone_names().get(lowered)
    if found is None:
        found = posix_name(value)
    if found is None:
        raise _invalid(name, value)
    return _without_seconds(found)


def _without_seconds(zone: str) -> str:
    """A zone whose clock shows whole minutes at the beginning of 2000 (pg_tz_acceptable)."""
    if datetime(2000, 1, 1, tzinfo=UTC).astimezone(session_zone(zone)).second:
        raise SqlError("22023", f'time zone "{zone}" appears to use leap seconds')
    return zone


def _zone_at(name: str, hours: float) -> str:
    """The zone so many hours east of Greenwich (pg_tzset_offset)."""
    seconds = round(abs(hours) * 3600)
    if seconds >= _FARTHEST_ZONE:
        raise _invalid(name, f"{hours:g}")
    if seconds >= _DAY_OF_SECONDS:
        raise unsupported(f"the time zone {hours:g}", "Use hours below 24.")
    offset = f"{seconds // 3600:02}"
    if seconds % 3600:
        offset += f":{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if seconds % 60 else "")
    return _without_seconds(f"<-{offset}>+{offset}" if hours < 0 else f"<+{offset}>-{offset}")


def encoding(name: str, value: str) -> str:
    """One of PostgreSQL's encodings in any spelling of its name; SQL_ASCII passes bytes as they are."""
    found = encoding_named(value)
    if found is None:
        raise _invalid(name, value)
    if found not in CODECS:
        raise unsupported(f"{name} {found}", "Use UTF8.")
    return found


def name_list(name: str, value: str) -> str:
    """A list of names."""
    try:
        split_list(value)
    except ValueError:
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', "List syntax is invalid.") from None
    return value


def show(parameter: Parameter, value: str) -> str:
    """A stored value as SHOW prints it: in the largest unit that leaves a whole number."""
    units = _UNITS[parameter.unit]
    amount = float(value) if units else 0
    if amount <= 0:
        return value
    for unit in reversed(units):
        count = amount / units[unit]
        if round(count) and abs(round(count) / count - 1) <= 1e-8:
            return f"{round(count)}{unit}"
    return value

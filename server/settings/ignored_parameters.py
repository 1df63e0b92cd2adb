"""PostgreSQL's parameters that mean nothing here: taken, checked and shown all the same.

Owns: what its own list says of a parameter (``pg_settings`` of ``catalog.postgres``) -> a ``Parameter``. Those that do
something, or have another default, are ``server.settings.parameters``'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from catalog.postgres import rows
from server.settings.parameter_types import Context, Parameter, Reader, boolean, enumeration, number, text

INT_MAX: Final = 2147483647
_CONTEXTS: Final[Mapping[str | None, Context]] = {
    "user": "user",
    "superuser": "superuser",
    "internal": "internal",
    "postmaster": "server",
    "sighup": "sighup",
    "backend": "backend",
    "superuser-backend": "backend",
}


def without_effect(name: str, default: str, read: Reader, unit: str = "", context: Context = "user") -> Parameter:
    """A parameter that is only kept."""
    return Parameter(name, default, read, "Accepted for compatibility; has no effect.", context, unit=unit)


def accepted() -> Iterator[Parameter]:
    """Every parameter of PostgreSQL's, with its default."""
    for row in rows("pg_settings"):
        unit = row["unit"] or ""
        yield without_effect(
            str(row["name"]), row["boot_val"] or "", _reader(row, unit), unit, _CONTEXTS[row["context"]]
        )


def _reader(row: Mapping[str, str | None], unit: str) -> Reader:
    match row["vartype"]:
        case "bool":
            return boolean
        case "integer" | "real" as kind:
            return number(float(row["min_val"] or 0), float(row["max_val"] or 0), unit, kind == "integer")
        case "enum":
            return enumeration(*_words(row["enumvals"] or "{}"))
        case _:
            return text


def _words(array: str) -> list[str]:
    """The elements of a text array without commas in them."""
    return [word.strip('"') for word in array.strip("{}").split(",")]

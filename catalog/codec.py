"""Structs to JSON values and back, by an allow-list of classes.

Owns: the encoding shared by log records, the stored catalog and manifests. A struct becomes an object whose ``"$"``
names its class; tuples become lists; scalars that JSON lacks are tagged. Decoding executes no code.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from catalog.default_privileges import DefaultRights
from catalog.extensions import BaseType, Extension
from catalog.objects import (
    Check,
    ColumnDefinition,
    Domain,
    FileTable,
    ForeignKey,
    Index,
    Schema,
    Sequence,
    Stream,
    SystemView,
    Table,
    UniqueKey,
    View,
)
from catalog.privileges import Grant, Rights
from catalog.roles import Membership, Role, Roles, RoleSetting
from catalog.routines import Argument, Function
from catalog.values.types import Composite, Enumeration, SqlType

Classes = Mapping[str, type]


def classes(*items: type) -> dict[str, type]:
    """An allow-list by class name."""
    return {item.__name__: item for item in items}


CATALOG_CLASSES: Classes = classes(
    *(SqlType, Enumeration, Composite, Domain, ColumnDefinition, UniqueKey, ForeignKey, Check, Index),
    *(Schema, Table, Stream, FileTable, View, SystemView, Sequence),
    *(Roles, Role, RoleSetting, Membership, Rights, Grant, DefaultRights, Function, Argument),
    *(Extension, BaseType),
)


def encode(value: Any) -> Any:
    """A JSON value. Raises TypeError for a value without an encoding."""
    if value is None or isinstance(value, bool | int | str | float):
        return value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Struct):
        body = {name: encode(getattr(value, name)) for name in value.__struct_fields__}
        return {"$": type(value).__name__, **body}
    return {"$": _tag(value), "v": value.hex() if isinstance(value, bytes) else _text(value)}


def _tag(value: Any) -> str:
    for kind in (Decimal, dt.datetime, dt.date, dt.time, bytes):
        if isinstance(value, kind):
            return kind.__name__.lower()
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else str(value.isoformat())


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "bytes": bytes.fromhex,
}


def decode(data: Any, allowed: Classes) -> Any:
    """The value that ``encode`` was given. Raises KeyError for a class outside the allow-list."""
    if isinstance(data, list):
        return tuple(decode(item, allowed) for item in data)
    if not isinstance(data, dict):
        return data
    tag = data["$"]
    if tag in _SCALARS:
        return _SCALARS[tag](data["v"])
    return allowed[tag](**{name: decode(item, allowed) for name, item in data.items() if name != "$"})

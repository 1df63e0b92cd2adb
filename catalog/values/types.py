"""SQL types as PostgreSQL names them, and the Arrow type that carries each.

Owns: the closed list of types that Millstream stores, their oids, and the one mapping from an SQL type to the
Arrow type in which every layer passes its values. Knows nothing of wire formats (protocol/) or of an engine's
own types (executor/).

An enum's values are carried as the ``places`` of its labels: bigints that compare as the labels are declared, so that
every layer orders, groups and stores them like any number, and renaming or adding a label changes no stored value. A
row is carried as a struct whose fields are named by their places (f1, f2, ...): PostgreSQL lets two fields have the
same name, and renaming a field changes no stored value.

A ``numeric`` always has a precision and a scale here, since both engines compute in 38 decimal digits. What the
client sees as its type modifier is said apart, by the column's declaration (``SqlType.typmod``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.identifiers import quote_name
from catalog.values.interval_fields import fields_text
from catalog.values.oids import row_oid

MAX_PRECISION: Final = 38
#: Storage of a numeric without a declared precision: 20 digits before the point and 18 after it.
UNCONSTRAINED: Final = (38, 18)
#: Scale of quotients and averages: PostgreSQL computes at least 16 significant digits (numeric.c, select_div_scale).
QUOTIENT: Final = (38, 20)
#: Type of variances and deviations: like a quotient, except that a zero is not the result of a division
#: (numeric_stddev_internal) and shows no decimals. Precision, scale, and the decimals of zero.
SPREAD: Final = (*QUOTIENT, 0)
#: Type of quotients of which some may have more digits before the point, and none is between -1 and 1 except zero: such
#: a value shows 16 decimals at most. Precision, scale, and the least value's digits before the point.
LARGE_QUOTIENT: Final = (38, 16, 1)


class TypeInfo(Struct, frozen=True):
    """PostgreSQL's pg_type fields of one type."""

    oid: int
    array_oid: int
    length: int  # bytes, -1 if it varies
    category: str  # pg_type.typcategory
    preferred: bool = False


TYPES: Final[dict[str, TypeInfo]] = {
    "bool": TypeInfo(16, 1000, 1, "B", True),
    "bytea": TypeInfo(17, 1001, -1, "U"),
    "int8": TypeInfo(20, 1016, 8, "N"),
    "int2": TypeInfo(21, 1005, 2, "N"),
    "int4": TypeInfo(23, 1007, 4, "N"),
    "text": TypeInfo(25, 1009, -1, "S", True),
    "oid": TypeInfo(26, 1028, 4, "N", True),
    "json": TypeInfo(114, 199, -1, "U"),
    "float4": TypeInfo(700, 1021, 4, "N"),
    "float8": TypeInfo(701, 1022, 8, "N", True),
    "unknown": TypeInfo(705, 0, -2, "X"),
    "bpchar": TypeInfo(1042, 1014, -1, "S"),
    "varchar": TypeInfo(1043, 1015, -1, "S"),
    "name": TypeInfo(19, 1003, 64, "S"),
    "date": TypeInfo(1082, 1182, 4, "D"),
    "time": TypeInfo(1083, 1183, 8, "D"),
    "timestamp": TypeInfo(1114, 1115, 8, "D"),
    "timestamptz": TypeInfo(1184, 1185, 8, "D", True),
    "timetz": TypeInfo(1266, 1270, 12, "D"),
    "interval": TypeInfo(1186, 1187, 16, "T", True),
    "numeric": TypeInfo(1700, 1231, -1, "N"),
    "void": TypeInfo(2278, 0, 4, "P"),
    "uuid": TypeInfo(2950, 2951, 16, "U"),
    "jsonb": TypeInfo(3802, 3807, -1, "U"),
    "jsonpath": TypeInfo(4072, 4073, -1, "U"),
    "int4range": TypeInfo(3904, 3905, -1, "R"),
    "int8range": TypeInfo(3926, 3927, -1, "R"),
    "numrange": TypeInfo(3906, 3907, -1, "R"),
    "daterange": TypeInfo(3912, 3913, -1, "R"),
    "tsrange": TypeInfo(3908, 3909, -1, "R"),
    "tstzrange": TypeInfo(3910, 3911, -1, "R"),
    "int4multirange": TypeInfo(4451, 6150, -1, "R"),
    "int8multirange": TypeInfo(4536, 6157, -1, "R"),
    "nummultirange": TypeInfo(4532, 6151, -1, "R"),
    "datemultirange": TypeInfo(4535, 6155, -1, "R"),
    "tsmultirange": TypeInfo(4533, 6152, -1, "R"),
    "tstzmultirange": TypeInfo(4534, 6153, -1, "R"),
    # Types that only system catalogs use.
    "char": TypeInfo(18, 1002, 1, "Z"),
    "regproc": TypeInfo(24, 1008, 4, "N"),
    "regprocedure": TypeInfo(2202, 2207, 4, "N"),
    "regoper": TypeInfo(2203, 2208, 4, "N"),
    "regoperator": TypeInfo(2204, 2209, 4, "N"),
    "regclass": TypeInfo(2205, 2210, 4, "N"),
    "regtype": TypeInfo(2206, 2211, 4, "N"),
    "regconfig": TypeInfo(3734, 3735, 4, "N"),
    "regdictionary": TypeInfo(3769, 3770, 4, "N"),
    "regnamespace": TypeInfo(4089, 4090, 4, "N"),
    "regrole": TypeInfo(4096, 4097, 4, "N"),
    "regcollation": TypeInfo(4191, 4192, 4, "N"),
    "xid": TypeInfo(28, 1011, 4, "U"),
    "cid": TypeInfo(29, 1012, 4, "U"),
    "tid": TypeInfo(27, 1010, 6, "U"),
    "pg_lsn": TypeInfo(3220, 3221, 8, "U"),
    "inet": TypeInfo(869, 1041, -1, "I", True),
    "cidr": TypeInfo(650, 651, -1, "I"),
    "macaddr": TypeInfo(829, 1040, 6, "U"),
    "macaddr8": TypeInfo(774, 775, 8, "U"),
    "bit": TypeInfo(1560, 1561, -1, "V"),
    "varbit": TypeInfo(1562, 1563, -1, "V", True),
    "money": TypeInfo(790, 791, 8, "N"),
    "point": TypeInfo(600, 1017, 16, "G"),
    "lseg": TypeInfo(601, 1018, 32, "G"),
    "path": TypeInfo(602, 1019, -1, "G"),
    "box": TypeInfo(603, 1020, 32, "G"),
    "polygon": TypeInfo(604, 1027, -1, "G"),
    "line": TypeInfo(628, 629, 24, "G"),
    "circle": TypeInfo(718, 719, 24, "G"),
    "tsvector": TypeInfo(3614, 3643, -1, "U"),
    "tsquery": TypeInfo(3615, 3645, -1, "U"),
    "xml": TypeInfo(142, 143, -1, "U"),
    "xid8": TypeInfo(5069, 271, 8, "U"),
    "pg_snapshot": TypeInfo(5038, 5039, -1, "U"),
    "txid_snapshot": TypeInfo(2970, 2949, -1, "U"),
    "refcursor": TypeInfo(1790, 2201, -1, "U"),
    "gtsvector": TypeInfo(3642, 3644, -1, "U"),
    "aclitem": TypeInfo(1033, 1034, 12, "U"),
    "pg_node_tree": TypeInfo(194, 0, -1, "Z"),
    "pg_ndistinct": TypeInfo(3361, 0, -1, "Z"),
    "pg_dependencies": TypeInfo(3402, 0, -1, "Z"),
    "pg_mcv_list": TypeInfo(5017, 0, -1, "Z"),
    "pg_brin_bloom_summary": TypeInfo(4600, 0, -1, "Z"),
    "pg_brin_minmax_multi_summary": TypeInfo(4601, 0, -1, "Z"),
    "anyarray": TypeInfo(2277, 0, -1, "P"),
    "hstore": TypeInfo(536_871_013, 536_871_012, -1, "U"),
    "int2vector": TypeInfo(22, 1006, -1, "A"),
    "oidvector": TypeInfo(30, 1013, -1, "A"),
}

#: Types of extensions, which exist once the extension is created (``catalog.extensions``).
OF_EXTENSIONS: Final = frozenset(("hstore",))
#: Types whose oids are shown as the names of objects.
NAMED_OIDS: Final = frozenset(name for name in TYPES if name.startswith("reg"))
#: Types whose values are oids.
OIDS: Final = NAMED_OIDS | {"oid"}
GEOMETRIC: Final = frozenset(("point", "lseg", "path", "box", "polygon", "line", "circle"))
#: Types that only PostgreSQL writes: they have no input.
INTERNAL: Final = frozenset(
    (
        *("pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "gtsvector"),
        *("pg_brin_bloom_summary", "pg_brin_minmax_multi_summary"),
    )
)
#: Types that Arrow carries as texts in one form (``catalog.values.opaque``).
OPAQUE: Final = (
    frozenset(("tid", "pg_lsn", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "tsvector", "tsquery", "xml"))
    | frozenset(("pg_snapshot", "txid_snapshot", "refcursor", "aclitem", "anyarray"))
    | OF_EXTENSIONS
    | GEOMETRIC
    | INTERNAL
)
#: Types whose modifier is the length of a bit string.
BITS: Final = frozenset(("bit", "varbit"))
#: Vectors: arrays from index 0 with their own text form, and their element types.
VECTORS: Final = {"int2vector": "int2", "oidvector": "oid"}
#: Ranges, and the types of their bounds (``catalog.values.ranges``).
RANGES: Final = {
    "int4range": "int4",
    "int8range": "int8",
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp",
    "tstzrange": "timestamptz",
}
#: Multiranges, and the types of their ranges (``catalog.values.multiranges``).
MULTIRANGES: Final = {name.replace("range", "multirange"): name for name in RANGES}
#: Types carried as bytes that sort as their values do.
SPANS: Final = RANGES.keys() | MULTIRANGES.keys()

#: Types whose modifier rounds or truncates values that are stored or cast.
ROUNDED: Final = frozenset(("time", "timetz", "timestamp", "timestamptz", "interval"))
#: The digits of a second that these types keep without a modifier.
MICROSECONDS: Final = 6
#: In place of an interval's digits if only its fields are declared (INTERVAL_FULL_PRECISION).
FULL_PRECISION: Final = 0xFFFF

#: Names of array types: of one dimension with the lower bound 1, and of those with a shape
#: (``catalog.values.array_shapes``).
ARRAYS: Final = ("array", "shaped")

_ARROW: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "unknown": pa.string(),
    "void": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "jsonpath": pa.string(),
    "uuid": pa.string(),  # canonical lower-case text, which compares as the 16 bytes do
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timetz": pa.int64(),  # a number that compares as the times do: catalog.values.times.timetz
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": pa.month_day_nano_interval(),
    "char": pa.string(),
    **dict.fromkeys(NAMED_OIDS | {"xid", "cid"}, pa.int64()),
    "money": pa.int64(),  # cents
    "xid8": pa.int64(),
    **dict.fromkeys(OPAQUE, pa.string()),
    **dict.fromkeys(SPANS, pa.binary()),
    "enum": pa.int64(),
}


class Enumeration(Struct, frozen=True):
    """A type of CREATE TYPE ... AS ENUM: its labels in order, each with its place, which is the stored value.

    ``oid`` is odd; the one before it belongs to the array type. ``home`` is set for a type that came with another
    server's continuous view: that server, and the type's oid there.
    """

    oid: int
    name: str
    labels: tuple[str, ...]
    places: tuple[int, ...]
    schema: str = "public"
    comment: str | None = None
    home: tuple[str, int] = ("", 0)

    def __post_init__(self) -> None:
        assert len(self.labels) == len(self.places) == len(set(self.labels)), "each label has a place"
        assert all(low < high for low, high in pairwise(self.places)), "places are in the labels' order"

    def __str__(self) -> str:
        """The name as format_type() prints it."""
        return quote_name(self.name)


#: The oids of ``record``, the type of rows without a declared type, and of its array type.
RECORD_OID: Final = 2249
_RECORDS_OID: Final = 2287


class Composite(Struct, frozen=True):
    """A row type: the names and types of the fields. It is a type of CREATE TYPE ... AS (...), the type of a relation's
    rows, or, without a name, the type of ROW(...).

    ``oid`` is the one in pg_class, and odd for a declared type. ``domains`` are those of the fields, in the form of a
    column's (``catalog.objects.ColumnDefinition``), empty if no field has one; ``comments`` are on fields, by name.
    """

    oid: int
    name: str
    fields: tuple[tuple[str, SqlType], ...]
    schema: str = "public"
    comment: str | None = None
    domains: tuple[int, ...] = ()
    comments: tuple[tuple[str, str], ...] = ()

    @property
    def type_oid(self) -> int:
        """The oid in pg_type. It is odd; the one before it belongs to the array type."""
        return row_oid(self.oid) if self.oid else RECORD_OID

    @property
    def array_oid(self) -> int:
        """The oid of its array type."""
        return self.type_oid - 1 if self.oid else _RECORDS_OID

    def domain(self, place: int) -> int:
        """The domain of a field, by its place from 0."""
        return self.domains[place] if self.domains else 0

    def over(self, change: Callable[[SqlType], SqlType]) -> Composite:
        """This row type with other types for its fields."""
        fields = tuple((name, change(kind)) for name, kind in self.fields)
        return self if fields == self.fields else replace(self, fields=fields)

    def __str__(self) -> str:
        """The name as format_type() prints it."""
        return quote_name(self.name) if self.oid else "record"


class SqlType(Struct, frozen=True):
    """One SQL type.

    ``modifiers`` are (precision, scale) of a numeric, never empty; (length,) of varchar, bpchar, bit and varbit or ();
    (digits,) of times and (fields, digits) of intervals or (), which only the types of stored values and of casts have
    (``catalog.values.times.precision.expressed``); else (). ``element`` is the element type of an array, whose ``name``
    is then ``"array"``, or that of a vector. An array that may have several dimensions, or a lower bound other than 1,
    is ``"shaped"``; to clients it is the same type. ``enum`` is the user-defined enum if ``name`` is ``"enum"``;
    ``row`` are the fields if ``name`` is ``"record"``.
    """

    name: str
    modifiers: tuple[int, ...] = ()
    element: SqlType | None = None
    enum: Enumeration | None = None
    row: Composite | None = None

    def __post_init__(self) -> None:
        is_array = self.name in ARRAYS and self.element is not None
        is_user = (self.name == "enum" and self.enum is not None) or (self.name == "record" and self.row is not None)
        assert self.name in TYPES or is_array or is_user, self.name
        assert (self.name in VECTORS) <= (self.element is not None), "a vector has elements"
        if self.name == "numeric":
            is_special = self.modifiers in (SPREAD, LARGE_QUOTIENT)
            assert len(self.modifiers) == 2 or is_special, "a numeric has precision and scale"
            assert 0 <= self.scale <= self.precision <= MAX_PRECISION, "a numeric has that many digits"

    @property
    def oid(self) -> int:
        """PostgreSQL's type oid."""
        if self.enum is not None:
            return self.enum.oid
        if self.row is not None:
            return self.row.type_oid
        if self.element is not None and self.name in ARRAYS:
            return self.element.array_oid
        return TYPES[self.name].oid

    @property
    def array_oid(self) -> int:
        """The oid of its array type."""
        if self.enum is not None:
            return self.enum.oid - 1
        if self.element is not None and self.name in ARRAYS:
            return self.oid
        return TYPES[self.name].array_oid if self.row is None else self.row.array_oid

    @property
    def length(self) -> int:
        """pg_type.typlen: bytes, or -1 if it varies."""
        if self.enum is not None:
            return 4
        return -1 if self.element is not None or self.row is not None else TYPES[self.name].length

    @property
    def category(self) -> str:
        """pg_type.typcategory ('N' numeric, 'S' string, 'D' date and time, 'A' array, ...)."""
        if self.enum is not None:
            return "E"
        if self.row is not None:
            return "C" if self.row.oid else "P"
        return "A" if self.element is not None else TYPES[self.name].category

    @property
    def typmod(self) -> int:
        """The modifier in PostgreSQL's encoding; -1 if none is declared."""
        if self.name == "numeric":
            if self.is_loose:
                return -1
            return (self.modifiers[0] << 16 | self.modifiers[1]) + 4
        if self.name in ("varchar", "bpchar") and self.modifiers:
            return self.modifiers[0] + 4
        if self.name in BITS and self.modifiers:
            return self.modifiers[0]
        if self.name in ROUNDED and self.modifiers:
            return self.modifiers[0] << 16 | self.modifiers[1] if self.name == "interval" else self.modifiers[0]
        return -1

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that carries values of this type in every layer."""
        if self.element is not None:
            items = pa.list_(self.element.arrow)
            return pa.struct([("items", items), ("shape", pa.list_(pa.int32()))]) if self.name == "shaped" else items
        if self.row is not None:
            kinds = [kind.arrow for _, kind in self.row.fields]
            return pa.struct([(f"f{place}", kind) for place, kind in enumerate(kinds, 1)])
        if self.name == "numeric":
            return pa.decimal128(self.precision, self.scale)
        return _ARROW[self.name]

    @property
    def precision(self) -> int:
        """The number of digits of a numeric."""
        return self.modifiers[0]

    @property
    def scale(self) -> int:
        """The number of digits after the point of a numeric."""
        return self.modifiers[1]

    @property
    def is_loose(self) -> bool:
        """Whether a numeric has no declared precision, so that its scale is that of its storage."""
        return self.name == "numeric" and self.modifiers in (UNCONSTRAINED, QUOTIENT, SPREAD, LARGE_QUOTIENT)

    def __str__(self) -> str:
        """The name as format_type() prints it."""
        if self.element is not None and self.name in ARRAYS:
            return f"{self.element}[]"
        if self.enum is not None or self.row is not None:
            return str(self.enum or self.row)
        name = DISPLAY.get(self.name, self.name)
        if self.typmod == -1:
            return name
        if self.name == "interval":
            return _shown_interval(*self.modifiers)
        inner = ",".join(map(str, self.modifiers))
        if self.name in ROUNDED:
            head, rest = name.split(" ", 1)
            return f"{head}({inner}) {rest}"
        return f"{name}({inner})"


def _shown_interval(fields: int, digits: int) -> str:
    words = fields_text(fields)
    return ("interval " + words if words else "interval") + ("" if digits == FULL_PRECISION else f"({digits})")


#: PostgreSQL's display names that differ from pg_type.typname (format_type()).
DISPLAY: Final[dict[str, str]] = {
    "bool": "boolean",
    "char": '"char"',
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bpchar": "character",
    "varchar": "character varying",
    "varbit": "bit varying",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}

BOOL: Final = SqlType("bool")
INT2: Final = SqlType("int2")
INT4: Final = SqlType("int4")
INT8: Final = SqlType("int8")
OID: Final = SqlType("oid")
FLOAT4: Final = SqlType("float4")
FLOAT8: Final = SqlType("float8")
NUMERIC: Final = SqlType("numeric", UNCONSTRAINED)
TEXT: Final = SqlType("text")
VARCHAR: Final = SqlType("varchar")
BYTEA: Final = SqlType("bytea")
BIT: Final = SqlType("bit")
MONEY: Final = SqlType("money")
INET: Final = SqlType("inet")
DATE: Final = SqlType("date")
TIME: Final = SqlType("time")
TIMETZ: Final = SqlType("timetz")
TIMESTAMP: Final = SqlType("timestamp")
TIMESTAMPTZ: Final = SqlType("timestamptz")
INTERVAL: Final = SqlType("interval")
UUID: Final = SqlType("uuid")
JSON: Final = SqlType("json")
JSONB: Final = SqlType("jsonb")
JSONPATH: Final = SqlType("jsonpath")
UNKNOWN: Final = SqlType("unknown")


def numeric(precision: int, scale: int) -> SqlType:
    """A numeric of at most 38 digits. If precision and scale do not both fit, the scale is kept and the precision
    reduced."""
    return SqlType("numeric", (min(max(precision, scale, 1), MAX_PRECISION), min(scale, MAX_PRECISION)))


def array(element: SqlType) -> SqlType:
    """The array type of an element type."""
    return SqlType("array", element=element)


def shaped(element: SqlType) -> SqlType:
    """The type of arrays with any number of dimensions."""
    return SqlType("shaped", element=element)


_BY_OID: Final[dict[int, str]] = {info.oid: name for name, info in TYPES.items()}
_BY_ARRAY_OID: Final[dict[int, str]] = {info.array_oid: name for name, info in TYPES.items() if info.array_oid}


def enum(declared: Enumeration) -> SqlType:
    """The type of an enum's values."""
    return SqlType("enum", enum=declared)


def row(declared: Composite) -> SqlType:
    """The type of rows."""
    return SqlType("record", row=declared)


def record(*fields: tuple[str, SqlType]) -> SqlType:
    """The type of rows without a declared type."""
    return row(Composite(0, "record", fields))


def plain(kind: SqlType) -> SqlType:
    """The type without modifiers."""
    if kind.element is not None:
        return array(plain(kind.element)) if kind.name != "shaped" else shaped(plain(kind.element))
    return kind if kind.name not in TYPES else by_name(kind.name)


def by_name(name: str) -> SqlType:
    """The type with a pg_type name, without modifiers. Raises KeyError for a name outside ``TYPES``."""
    TYPES[name]
    if name in VECTORS:
        return SqlType(name, element=SqlType(VECTORS[name]))
    return NUMERIC if name == "numeric" else SqlType(name)


def is_known(oid: int) -> bool:
    """Whether Millstream has the type with a pg_type oid."""
    return oid in _BY_OID or oid in _BY_ARRAY_OID


def by_oid(oid: int) -> SqlType:
    """The type with a pg_type oid (also of an array). Raises KeyError if Millstream lacks it."""
    if oid in _BY_OID:
        return by_name(_BY_OID[oid])
    return array(by_name(_BY_ARRAY_OID[oid]))

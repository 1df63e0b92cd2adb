"""What Spark prints for a query, beyond what it prints for the paths of a view.

Owns: ``QueryPrinter``. Both engines compute a view's states in turn, so only queries may use what can differ in a last
bit (``functions.floats``), what reads the session's time zone, and what fails for some values with 0A000. Windows,
ordered aggregates and expressions of the embedded engine's (``delegation``) are for queries alone, too. Where the
session's zone is not UTC, which Spark's session always is, everything that asks for local time is delegated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from sqlglot import exp

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.precision import is_fitted
from catalog.values.types import SqlType
from executor.printing.nodes import Build, Expr, function, reference
from executor.printing.printer import Printer
from executor.printing.selects import Block
from executor.spark.printing import set_functions, windows
from executor.spark.printing.aggregates.ordered import GATHERED
from executor.spark.printing.aggregates.pair_statistics import PAIRS, of_reals
from executor.spark.printing.aggregates.sums import Around, sum_of_intervals
from executor.spark.printing.carried_types import constant, holds_interval, is_struct, printed_length, spark_name
from executor.spark.printing.delegation import DELEGATED, delegated, printed
from executor.spark.printing.dialect import STRINGS, SparkPrinter, distinct, is_ordered, spark_type, string
from executor.spark.printing.functions.arrays import ARRAYS, ordered, require_plain
from executor.spark.printing.functions.floats import FLOATS
from executor.spark.printing.functions.temporal import ZONED
from executor.spark.printing.functions.textual import TEXTUAL
from executor.spark.printing.nodes import cast, once, refuse
from planner.algebra.construction import SUBQUERIES
from planner.algebra.functions import AGGREGATES
from planner.algebra.nodes import AggregateCall, Call, Cast, Literal, Relation, Scalar, SortKey, Unnest, WindowCall
from planner.algebra.walk import children

#: Conversions between times in UTC.
_TIMES: Final = frozenset(("date", "timestamp", "timestamptz"))
#: Comparisons of arrays; their order treats NULL otherwise.
_EQUALITY: Final = frozenset(("eq", "ne", "is_distinct", "is_not_distinct"))
#: What takes intervals as they are carried, comparing none.
_OF_INTERVALS: Final = frozenset(
    (DELEGATED, "interval_length", "is_null", "is_not_null", "coalesce", "array", "subscript", "cardinality")
)
#: What takes rows and arrays of several dimensions as they are carried.
_OF_STRUCTS: Final = frozenset((DELEGATED, "coalesce", "array"))
#: What does not ask which local time a moment is.
_ZONELESS: Final = (
    _OF_INTERVALS
    | _EQUALITY
    | {"lt", "le", "gt", "ge", "in", "any", "all", "nullif", "greatest", "least", "isfinite", "array_length"}
)
#: An integer as PostgreSQL 15 reads it, and a number.
_INTEGER: Final = r"^[ \\t\\n\\r\\f\\x0B]*[+-]?[0-9]+[ \\t\\n\\r\\f\\x0B]*$"
_CASES: Final = "ARRAY_JOIN(TRANSFORM(SPLIT({0}, ''), c -> IF(CHAR_LENGTH({1}(c)) = 1, {1}(c), c)), '')"


def _like(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """ILIKE as LIKE, which checks the pattern."""
    found = TEXTUAL["like"](dialect, arguments, node)
    return exp.ILike(this=found.this, expression=found.expression)


#: What a pattern may have for both to read it alike: no escapes, no classes but plain ones, no lazy quantifiers.
_SIMPLE: Final = re.compile(
    r"(?:[A-Za-z0-9 _,;:@%&='\"<>/~`!#.^$()|-]|\[\^?[A-Za-z0-9 _.,-]+\]|[*+?](?![*+?])|\{[0-9,]+\}(?![*+?]))*"
)

_DANGLING: Final = re.compile(r"(?:^|[(|^])[*+?{]")


def _matched(flags: str) -> Build:
    """A constant regular expression of what PostgreSQL's and Java's have in common; $ is the end of the text alone."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        pattern = node.arguments[1]
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or "(?" in pattern.value:
            raise refuse(node, "with this pattern")
        if not _SIMPLE.fullmatch(pattern.value) or _DANGLING.search(pattern.value):
            raise refuse(node, "with this pattern")
        ended = re.sub(r"(\[[^]]*\])|\$", lambda match: match[1] or r"\z", pattern.value)
        return exp.Var(this=f"({dialect.generate(arguments[0])} RLIKE {string('(?' + flags + ')' + ended).this})")

    return build


def _case_mapped(name: str) -> Build:
    """By characters: PostgreSQL maps each to one."""

    def build(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
        if any(item.type.name not in STRINGS for item in node.arguments):
            raise refuse(node)
        other = _CASES.format("{0}", name)
        return once(dialect, arguments, node, f"IF({{0}} RLIKE '^[\\\\x00-\\\\x7F]*$', {name}({{0}}), {other})")

    return build


def _error(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """An error of the data: an SQLSTATE and a message."""
    state, message = node.arguments
    assert isinstance(state, Literal)
    assert isinstance(message, Literal)
    return cast(function("RAISE_ERROR", string(f"{state.value}:{message.value}")), spark_type(node.type))


def _is_pair(kind: SqlType) -> bool:
    """Whether a row is a value and what stands beside it: states of min_by and max_by, without a NULL in front."""
    return kind.row is not None and all(is_ordered(each) for _, each in kind.row.fields)


def _takes_structs(node: Call) -> bool:
    """Whether Spark computes a function of rows: of those of the same types it finds equal what is, NULLs as well."""
    alike = len({spark_name(item.type) for item in node.arguments}) == 1
    return node.function in _OF_STRUCTS or (node.function in _EQUALITY and alike)


class QueryPrinter(SparkPrinter):
    """Prints one query."""

    functions: ClassVar[Mapping[str, Build]] = {
        **SparkPrinter.functions,
        **FLOATS,
        **ZONED,
        **ARRAYS,
        "error": _error,
        "upper": _case_mapped("UPPER"),
        "lower": _case_mapped("LOWER"),
        "ilike": _like,
        "regex_match": _matched("s"),
        "regex_imatch": _matched("siu"),
        DELEGATED: printed,
        "interval_length": printed_length,
    }

    of_arrays: ClassVar[frozenset[str]] = (
        SparkPrinter.of_arrays | ARRAYS.keys() | _EQUALITY | {DELEGATED, "interval_length"}
    )
    of_intervals: ClassVar[frozenset[str]] = SparkPrinter.of_intervals | _OF_INTERVALS

    def __init__(self, *, has_unscaled: bool = True, has_kernel: bool = True, time_zone: str = "UTC") -> None:
        """``has_kernel``: whether Spark's Python workers can import the embedded engine's. Spark's own is UTC."""
        super().__init__(has_unscaled=has_unscaled)
        self.has_kernel = has_kernel
        self.time_zone = time_zone

    def prepared(self, relation: Relation) -> Relation:
        """With calls of the kernel in it, where there is one."""
        return SparkPrinter.prepared(
            self, delegated(relation, self._takes, self.time_zone) if self.has_kernel else relation
        )

    def _takes(self, node: Scalar) -> bool:
        """Whether Spark prints a node over what it prints."""
        if isinstance(node, SUBQUERIES):
            return True
        if self.shows(node):
            return False
        try:
            self._scalar(node, [exp.Var(this="x") for _ in children(node)])
        except SqlError as error:
            if error.sqlstate != "0A000":
                raise
            return False
        return True

    def shows(self, node: object) -> bool:
        """The kernel knows an enum's labels."""
        return SparkPrinter.shows(self, node) and not (isinstance(node, Call) and node.function == DELEGATED)

    def require(self, kind: SqlType) -> None:
        """Arrays, too."""
        require_plain(kind)
        if kind.name != "interval":
            self.name_of(kind)

    def name_of(self, kind: SqlType) -> str:
        """Also of a carrier, where something computes with its values."""
        return spark_name(kind) if self.has_kernel else spark_type(kind)

    def literal(self, literal: Literal) -> Expr:
        """A carrier's, too."""
        if literal.value is not None and is_struct(literal.type):
            raise unsupported(f"a constant of type {literal.type}")
        carried = constant(literal) if self.has_kernel else None
        if carried is not None:
            return exp.Var(this=carried)
        if literal.value is None and self.has_kernel:
            return cast(exp.null(), self.name_of(literal.type))
        return SparkPrinter.literal(self, literal)

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """No comparison of intervals, which are not equal as their carriers are."""
        if node.function not in _ZONELESS:
            self._require_utc(node, node.arguments)
        if any(is_struct(item.type) for item in node.arguments) and not _takes_structs(node):
            raise refuse(node)
        if node.function in self.of_intervals or not any(holds_interval(item.type) for item in node.arguments):
            return SparkPrinter.call(self, node, arguments)
        raise refuse(node)

    def _require_utc(self, node: Scalar | WindowCall, arguments: Sequence[Scalar]) -> None:
        """Raises 0A000 where local time counts that is not Spark's."""
        kinds = [(item.type.element or item.type).name for item in (node, *arguments)]
        if self.time_zone != "UTC" and "timestamptz" in kinds:
            raise unsupported(f"type timestamp with time zone where TimeZone is {self.time_zone}")

    def unnest(self, items: Expr) -> Expr:
        """EXPLODE(list)."""
        return function("EXPLODE", items)

    def _unnest(self, node: Unnest, block: Block, items: list[Expr]) -> Block:
        """Spark has one generator in a select list: several arrays become columns first, and then rows in step."""
        rows = set_functions.rows(self, node)
        if rows is not None:
            return Block(node.columns, self._derived(rows))
        if len(items) == 1 and node.ordinality is None:
            return SparkPrinter._unnest(self, node, block, items)
        passed = [reference(column) for column in node.input.columns]
        names = [f"`__array{place}`" for place in range(len(items))]
        block = self._below_output(block)
        block.output = [
            *passed,
            *(exp.Var(this=f"{self.generate(item)} AS {name}") for item, name in zip(items, names, strict=True)),
        ]
        block.order = ()
        columns = [column for column, _ in node.items]
        output = [*(item.copy() for item in passed), set_functions.in_step(self, names, columns, node.ordinality)]
        select = self._clauses(output, self._derived(self._select(block)))
        return Block(node.columns, self._derived(select), depth=block.depth + 2)

    def _sort_key(self, key: SortKey, value: Expr) -> Expr:
        """Arrays and rows with their NULLs last, as PostgreSQL has them."""
        kind = key.expression.type
        if kind.element is None and kind.row is None:
            return SparkPrinter._sort_key(self, key, value)
        found = Printer._sort_key(self, key, value)
        found.set("this", exp.Var(this=ordered(self.generate(found.this), kind)))
        return found

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """Also between times in UTC, to real, and of texts to integers."""
        source, target = node.argument.type, node.type
        if is_fitted(target):
            return SparkPrinter.cast(self, argument, node)
        if source != target:
            self._require_utc(node, (node.argument,))
        if source.name in _TIMES and target.name in _TIMES:
            return cast(argument, spark_type(target))
        if source.name in ("int2", "int4", "int8", "numeric") and target.name == "float4":
            return cast(argument, "FLOAT")
        if source.name in STRINGS and target.name in ("int2", "int4", "int8"):
            return self._integer(argument, node)
        return SparkPrinter.cast(self, argument, node)

    def _integer(self, argument: Expr, node: Cast) -> Expr:
        """A text as an integer: Spark's own cast takes more, and calls what is too large malformed."""
        kind = spark_type(node.type)
        words = f"CONCAT('22P02:invalid input syntax for type {node.type}: \"', {{0}}, '\"')"
        pattern = (
            f"CASE WHEN {{0}} NOT RLIKE '{_INTEGER}' THEN CAST(RAISE_ERROR({words}) AS {kind})"
            f" ELSE CAST(CAST({{0}} AS DECIMAL(38,0)) AS {kind}) END"
        )
        return once(self, [argument], Call("", (node.argument,), node.type), pattern)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """Also aggregates over an order."""
        around = Around(where)
        if node.function in GATHERED:
            return GATHERED[node.function](self, node, arguments, order, around)
        return self.aggregated(node, arguments, around)

    def aggregated(self, node: AggregateCall, arguments: list[Expr], around: Around) -> Expr:
        """Also what may differ in a last bit, and what no view keeps."""
        if node.function in PAIRS and not node.distinct:
            return PAIRS[node.function](self, arguments, around)
        kind = node.arguments[0].type.name if node.arguments else ""
        match node.function, kind:
            case ("stddev_samp" | "stddev_pop" | "var_samp" | "var_pop", "float4" | "float8"):
                values = [cast(item, "DOUBLE") for item in arguments]
                return around.call(node.function.upper(), *distinct(values, node.distinct))
            case ("sum" | "avg", "float4"):
                return of_reals(self, node, arguments[0], around)
            case ("sum", "interval") if not node.distinct:
                return sum_of_intervals(self, arguments[0], around)
            case ("min" | "max", "time") | ("min_by" | "max_by", _):
                return around.call(node.function.upper(), *arguments)
            case ("min" | "max", "record") if _is_pair(node.arguments[0].type):
                return around.call(node.function.upper(), *arguments)
            case ("min" | "max", "bool"):
                return around.call("BOOL_AND" if node.function == "min" else "BOOL_OR", *arguments)
            case ("bool_and" | "bool_or" | "bit_and" | "bit_or", _):
                return around.call(node.function.upper(), *arguments)  # of a value twice as of one
            case ("bit_xor", _) if node.distinct:
                return around.call("BIT_XOR", *distinct(arguments, node.distinct))
            case _:
                return SparkPrinter.aggregated(self, node, arguments, around)

    def window(self, node: WindowCall, arguments: list[Expr], where: Expr | None, over: Expr) -> Expr:
        """An aggregate over a window is made of the same calls; ``windows`` has the other functions."""
        if node.offsets:
            self._require_utc(node, [key.expression for key in node.order_by])
        over = windows.framed(node, over)
        if node.function not in AGGREGATES:
            return windows.call(node, arguments, over, self.name_of(node.type))
        whole = AggregateCall(node.function, node.arguments, node.type)
        around = Around(where, over)
        if node.function in GATHERED:
            return GATHERED[node.function](self, whole, arguments, [], around)
        return self.aggregated(whole, arguments, around)

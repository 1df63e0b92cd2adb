"""The parts of a path: its start, its steps, and the conditions of its filters."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Values that a path may contain as constants: a string, a ``Number``, true, false or null.
Scalar = str | bool | None
#: ``last`` in ``.**{1 to last}``: no limit.
LAST = -1


class Root(Struct, frozen=True):
    """``$``: the document."""


class Current(Struct, frozen=True):
    """``@``: the item that a filter checks."""


class Last(Struct, frozen=True):
    """``last``: the last index of the array that is subscripted."""


class Variable(Struct, frozen=True):
    """``$name``: a field of the variables."""

    name: str


class Constant(Struct, frozen=True):
    """A constant."""

    value: Scalar


class Field(Struct, frozen=True):
    """``.name``: an object's field."""

    name: str


class Fields(Struct, frozen=True):
    """``.*``: all fields of an object."""


class Elements(Struct, frozen=True):
    """``[*]``: all elements of an array."""


class Subscripts(Struct, frozen=True):
    """``[0, 2 to last]``: elements by index; the second item of a pair is None for a single index."""

    ranges: tuple[tuple[Expression, Expression | None], ...]


class Descendants(Struct, frozen=True):
    """``.**{first to last}``: descendants at these levels; level 0 is the item itself."""

    first: int
    last: int


class Method(Struct, frozen=True):
    """``.size()`` and similar; ``template`` is the argument of .datetime()."""

    name: str
    template: str | None = None


class Filter(Struct, frozen=True):
    """``? (condition)``: the items for which the condition is true."""

    condition: Predicate


Step = Field | Fields | Elements | Subscripts | Descendants | Method | Filter


class Chain(Struct, frozen=True):
    """An item, and the steps from it."""

    base: Expression | Predicate
    steps: tuple[Step, ...]


class Arithmetic(Struct, frozen=True):
    """The sum, difference, product, quotient or remainder of two numbers."""

    symbol: str
    left: Expression
    right: Expression


class Sign(Struct, frozen=True):
    """``+`` or ``-`` applied to each number of an expression."""

    symbol: str
    operand: Expression


Expression = Root | Current | Last | Variable | Constant | Chain | Arithmetic | Sign


class Comparison(Struct, frozen=True):
    """True if it is true for any pair of items from both sides."""

    symbol: str
    left: Expression
    right: Expression


class Both(Struct, frozen=True):
    """``&&`` or ``||`` in three-valued logic."""

    symbol: Literal["&&", "||"]
    left: Predicate
    right: Predicate


class Not(Struct, frozen=True):
    """``!``; unknown remains unknown."""

    operand: Predicate


class IsUnknown(Struct, frozen=True):
    """Whether a condition is neither true nor false."""

    operand: Predicate


class Exists(Struct, frozen=True):
    """Whether an expression has an item."""

    operand: Expression


class StartsWith(Struct, frozen=True):
    """Whether a string begins with another."""

    operand: Expression
    prefix: Constant | Variable


class LikeRegex(Struct, frozen=True):
    """Whether a string matches a regular expression; ``flags`` are from i, s, m, q, in this order."""

    operand: Expression
    pattern: str
    flags: str


Predicate = Comparison | Both | Not | IsUnknown | Exists | StartsWith | LikeRegex
PREDICATES = (Comparison, Both, Not, IsUnknown, Exists, StartsWith, LikeRegex)


class Path(Struct, frozen=True):
    """A whole path; ``strict``: parts that a document lacks are errors."""

    strict: bool
    root: Expression | Predicate

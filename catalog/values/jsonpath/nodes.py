"""The parts of a path: where it begins, its steps, and the conditions of its filters."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Values of documents that a path may write: a string, a ``Number``, true, false or null.
Scalar = str | bool | None
#: ``last`` of ``.**{1 to last}``: no limit.
LAST = -1


class Root(Struct, frozen=True):
    """``$``: the document."""


class Current(Struct, frozen=True):
    """``@``: the item that a filter looks at."""


class Last(Struct, frozen=True):
    """``last``: the last index of the array whose subscript it stands in."""


class Variable(Struct, frozen=True):
    """``$name``: a field of the variables."""

    name: str


class Constant(Struct, frozen=True):
    """A value of its own."""

    value: Scalar


class Field(Struct, frozen=True):
    """``.name``: an object's field."""

    name: str


class Fields(Struct, frozen=True):
    """``.*``: all fields of an object."""


class Elements(Struct, frozen=True):
    """``[*]``: all elements of an array."""


class Subscripts(Struct, frozen=True):
    """``[0, 2 to last]``: elements by their indexes; of each pair the second is None where it is one index."""

    ranges: tuple[tuple[Expression, Expression | None], ...]


class Descendants(Struct, frozen=True):
    """``.**{first to last}``: what is so many levels below, at 0 the item itself."""

    first: int
    last: int


class Method(Struct, frozen=True):
    """``.size()`` and its kin; ``template`` is what .datetime() may have."""

    name: str
    template: str | None = None


class Filter(Struct, frozen=True):
    """``? (condition)``: the items of which it is true."""

    condition: Predicate


Step = Field | Fields | Elements | Subscripts | Descendants | Method | Filter


class Chain(Struct, frozen=True):
    """An item and the steps from it on."""

    base: Expression | Predicate
    steps: tuple[Step, ...]


class Arithmetic(Struct, frozen=True):
    """Two numbers' sum, difference, product, quotient or rest."""

    symbol: str
    left: Expression
    right: Expression


class Sign(Struct, frozen=True):
    """``+`` or ``-`` before each of an expression's numbers."""

    symbol: str
    operand: Expression


Expression = Root | Current | Last | Variable | Constant | Chain | Arithmetic | Sign


class Comparison(Struct, frozen=True):
    """True where it is of one item of either side."""

    symbol: str
    left: Expression
    right: Expression


class Both(Struct, frozen=True):
    """``&&`` or ``||`` of three-valued logic."""

    symbol: Literal["&&", "||"]
    left: Predicate
    right: Predicate


class Not(Struct, frozen=True):
    """``!``: unknown stays unknown."""

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
    """Whether a string has a match of a regular expression; ``flags`` of i, s, m, q in this order."""

    operand: Expression
    pattern: str
    flags: str


Predicate = Comparison | Both | Not | IsUnknown | Exists | StartsWith | LikeRegex
PREDICATES = (Comparison, Both, Not, IsUnknown, Exists, StartsWith, LikeRegex)


class Path(Struct, frozen=True):
    """A whole path; ``strict``: what a document does not have is an error."""

    strict: bool
    root: Expression | Predicate

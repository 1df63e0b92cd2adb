"""The parts of a path: where it begins, its steps, and the conditions of its filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Values of documents that a path may write: a string, a ``Number``, true, false or null.
Scalar = str | bool | None
#: ``last`` of ``.**{1 to last}``: no limit.
LAST = -1


@dataclass(frozen=True, slots=True)
class Root:
    """``$``: the document."""


@dataclass(frozen=True, slots=True)
class Current:
    """``@``: the item that a filter looks at."""


@dataclass(frozen=True, slots=True)
class Last:
    """``last``: the last index of the array whose subscript it stands in."""


@dataclass(frozen=True, slots=True)
class Variable:
    """``$name``: a field of the variables."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of its own."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Field:
    """``.name``: an object's field."""

    name: str


@dataclass(frozen=True, slots=True)
class Fields:
    """``.*``: all fields of an object."""


@dataclass(frozen=True, slots=True)
class Elements:
    """``[*]``: all elements of an array."""


@dataclass(frozen=True, slots=True)
class Subscripts:
    """``[0, 2 to last]``: elements by their indexes; of each pair the second is None where it is one index."""

    ranges: tuple[tuple[Expression, Expression | None], ...]


@dataclass(frozen=True, slots=True)
class Descendants:
    """``.**{first to last}``: what is so many levels below, at 0 the item itself."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Method:
    """``.size()`` and its kin."""

    name: str


@dataclass(frozen=True, slots=True)
class Filter:
    """``? (condition)``: the items of which it is true."""

    condition: Predicate


Step = Field | Fields | Elements | Subscripts | Descendants | Method | Filter


@dataclass(frozen=True, slots=True)
class Chain:
    """An item and the steps from it on."""

    base: Expression | Predicate
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers' sum, difference, product, quotient or rest."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Sign:
    """``+`` or ``-`` before each of an expression's numbers."""

    symbol: str
    operand: Expression


Expression = Root | Current | Last | Variable | Constant | Chain | Arithmetic | Sign


@dataclass(frozen=True, slots=True)
class Comparison:
    """True where it is of one item of either side."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Both:
    """``&&`` or ``||`` of three-valued logic."""

    symbol: Literal["&&", "||"]
    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Not:
    """``!``: unknown stays unknown."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class IsUnknown:
    """Whether a condition is neither true nor false."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether an expression has an item."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a string begins with another."""

    operand: Expression
    prefix: Constant | Variable


@dataclass(frozen=True, slots=True)
class LikeRegex:
    """Whether a string has a match of a regular expression; ``flags`` of i, s, m, q in this order."""

    operand: Expression
    pattern: str
    flags: str


Predicate = Comparison | Both | Not | IsUnknown | Exists | StartsWith | LikeRegex
PREDICATES = (Comparison, Both, Not, IsUnknown, Exists, StartsWith, LikeRegex)


@dataclass(frozen=True, slots=True)
class Path:
    """A whole path; ``strict``: what a document does not have is an error."""

    strict: bool
    root: Expression | Predicate

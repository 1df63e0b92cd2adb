"""What a DO block does: statements one after another, conditions, and what becomes of errors.

Owns: the nodes of a block as the server runs it. A text is a statement that is planned when its turn comes, since what
stands before it may make what it names. There are no variables, loops or results.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Run(Struct, frozen=True):
    """One statement; ``discards`` is PERFORM, which discards the rows."""

    text: str
    discards: bool = False


class RunText(Struct, frozen=True):
    """EXECUTE: the statement that an expression's value is."""

    expression: str


class If(Struct, frozen=True):
    """The steps of the first condition that is true, else ``otherwise``."""

    cases: tuple[tuple[str, tuple[Step, ...]], ...]
    otherwise: tuple[Step, ...]


class Raise(Struct, frozen=True):
    """RAISE: a notice or an error; each % of the message is an argument's value, and ``options`` have their values from
    queries, too. Without message, condition and options it raises the error again that is being handled."""

    level: Literal["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "ERROR"]
    message: str | None
    arguments: tuple[str, ...] = ()
    #: A condition's name or its SQLSTATE.
    condition: str | None = None
    #: By their names: ERRCODE, MESSAGE and so on.
    options: tuple[tuple[str, str], ...] = ()
    line: int = 1


class Handler(Struct, frozen=True):
    """WHEN: the SQLSTATEs that it is for (two digits are a class, none are all), and what is done then."""

    states: tuple[str, ...]
    steps: tuple[Step, ...]


class Steps(Struct, frozen=True):
    """BEGIN ... END: its steps, which are undone together before a handler of an error of theirs goes on."""

    steps: tuple[Step, ...]
    handlers: tuple[Handler, ...] = ()


Step = Run | RunText | If | Raise | Steps


class DoBlock(Struct, frozen=True):
    """DO."""

    body: Steps

"""What a DO block does: statements in sequence, conditions, and the handling of errors.

Owns: the nodes of a block as the server runs it. A statement is kept as text and planned when it runs, since earlier
statements may create objects that it names. There are no variables, loops or results.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Run(Struct, frozen=True):
    """One statement; ``discards`` marks PERFORM, which discards the rows."""

    text: str
    discards: bool = False


class RunText(Struct, frozen=True):
    """EXECUTE: runs the statement whose text is an expression's value."""

    expression: str


class If(Struct, frozen=True):
    """The steps of the first condition that is true, else ``otherwise``."""

    cases: tuple[tuple[str, tuple[Step, ...]], ...]
    otherwise: tuple[Step, ...]


class Raise(Struct, frozen=True):
    """RAISE: a notice or an error.

    Each % of the message is replaced with an argument's value. Arguments and ``options`` are queries that give their
    values. Without message, condition and options, RAISE raises the error that is being handled again.
    """

    level: Literal["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "ERROR"]
    message: str | None
    arguments: tuple[str, ...] = ()
    #: A condition's name or its SQLSTATE.
    condition: str | None = None
    #: By option name: ERRCODE, MESSAGE and so on.
    options: tuple[tuple[str, str], ...] = ()
    line: int = 1


class Handler(Struct, frozen=True):
    """WHEN: the SQLSTATEs that the handler takes (two digits are a class; no state takes all errors), and its steps."""

    states: tuple[str, ...]
    steps: tuple[Step, ...]


class Steps(Struct, frozen=True):
    """BEGIN ... END: steps that are rolled back together before a handler of their error runs."""

    steps: tuple[Step, ...]
    handlers: tuple[Handler, ...] = ()


Step = Run | RunText | If | Raise | Steps


class DoBlock(Struct, frozen=True):
    """DO: a block of PL/pgSQL."""

    body: Steps

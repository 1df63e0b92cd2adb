"""What a case consists of: statements for one of some sessions, and restarts."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

#: ``view``: a view's definition, which may be refused. ``alter``: another
#: definition of a table or a view. ``read``: a query of a
#: view or a table. ``own``: a statement that only Millstream gets. ``migrate``: a view goes to a server. ``restart``: a
#: server ends and begins.
Role = Literal["table", "view", "alter", "change", "copy", "block", "read", "own", "migrate", "maintain", "restart"]

_ROWS = "{rows}"
#: How many sessions a case has.
SESSIONS: Final = 3


class Step(Struct, frozen=True):
    """A statement; ``{rows}`` in its text stands for ``rows``, which are lines for COPY.

    ``judged`` is PostgreSQL's statement where it is another one, ``name`` the relation that is made, changed or read,
    ``of`` the relations that a view reads. ``server`` is where it happens, "" for the home of all streams; a read on
    another server counts only while the view is there.
    """

    role: Role
    text: str
    session: int = 0
    rows: tuple[str, ...] = ()
    judged: str | None = None
    name: str = ""
    constructs: tuple[str, ...] = ()
    of: frozenset[str] = frozenset()
    ordered: bool = False
    server: str = ""

    @property
    def statement(self) -> str:
        """What Millstream gets."""
        return self.text.replace(_ROWS, ", ".join(self.rows))

    @property
    def for_judge(self) -> str:
        """What PostgreSQL gets."""
        return self.statement if self.judged is None else self.judged

    @property
    def data(self) -> bytes | None:
        """The data of COPY."""
        return "".join(f"{line}\n" for line in self.rows).encode() if self.role == "copy" else None


class Case(Struct, frozen=True):
    """Steps in their order; ``seed`` made them."""

    seed: int
    steps: tuple[Step, ...]

    @property
    def has_streams(self) -> bool:
        """Whether some table is a stream."""
        return any(" SERVER stream" in step.text for step in self.steps)


def control(text: str, construct: str = "", session: int = 0) -> Step:
    """A statement about transactions or cursors."""
    return Step("block", text, session, constructs=(construct,) if construct else ())


def as_script(case: Case) -> str:
    """A case as an SQL script to be read: Millstream's statements. PostgreSQL has tables for streams, plain views."""
    lines = [f"-- seed {case.seed}"]
    several = any(step.session for step in case.steps)
    for step in case.steps:
        session = f"/* session {step.session + 1} */ " if several else ""
        if step.role in ("restart", "maintain", "migrate"):
            lines.append(f"-- {' '.join(item for item in (step.role, step.name, step.server) if item)}")
        elif step.role == "copy":
            lines += [f"{session}{step.statement};", *step.rows, "\\."]
        else:
            remark = "  -- in Millstream only" if step.role == "own" else ""
            remark += f"  -- on server {step.server}, if the view is there" if step.server else ""
            lines.append(f"{session}{step.statement};{remark}")
    return "\n".join(lines)

"""One session's parameter values: SET, SET LOCAL, RESET and SHOW, with PostgreSQL's transaction semantics.

Owns: the values and what becomes of them at COMMIT, ROLLBACK and savepoints. A change makes new dicts, so that saving
a state is keeping a reference. Knows nothing of messages; what a parameter may hold is in
``server.settings.parameters``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from catalog.roles import BOOTSTRAP_NAME
from catalog.values.encodings import UTF8
from catalog.values.errors import SqlError
from catalog.values.identifiers import split_list
from catalog.values.times.styles import Reading
from executor.tables.savepoints import Savepoints
from protocol.values.styles import SQL_STANDARD, style
from server.settings.parameter_types import Context, Parameter, show, text
from server.settings.parameters import PARAMETERS, REPORTED

_CUSTOM: Final = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)+")
#: Settings of the session's roles: the catalog knows their valid values (``server.session.identity``).
IDENTITY: Final = ("role", "session_authorization")
#: Parameters on which the text of a result depends: part of the key of cached results and plans.
_MATTERS_TO_RESULTS: Final = (
    *("timezone", "datestyle", "intervalstyle", "bytea_output", "search_path", "client_encoding"),
    *("standard_conforming_strings", "extra_float_digits", *IDENTITY),
)
#: Belong to the transaction and end with it.
OF_TRANSACTION: Final = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
_FRAMEWORK: Final = {name: f"default_{name}" for name in OF_TRANSACTION}

#: Contexts of what a session may set, and why it may not in the others.
_OF_SESSIONS: Final = ("user", "superuser")
_NEVER: Final[Mapping[Context, str]] = {
    "internal": "cannot be changed",
    "server": "cannot be changed without restarting the server",
    "sighup": "cannot be changed now",
    "backend": "cannot be set after connection start",
}

Values = Mapping[str, str]


class _Saved(Struct, frozen=True):
    """What a transaction or savepoint returns to."""

    session: Values
    local: Values


class Settings:
    """The values of one session. ``defaults`` are what RESET returns to: the server's and the startup packet's."""

    def __init__(self, defaults: Mapping[str, str]) -> None:
        self._defaults: dict[str, str] = {}
        self._session: Values = {}
        self._local: Values = {}
        self._begun: _Saved | None = None  # the transaction block
        self._savepoints: Savepoints[_Saved] = Savepoints()
        self._sent: dict[str, str] = {}
        self.changed = True  # since report() was last asked
        self.read_only = False
        #: Whether '...' has backslash escapes.
        self.escapes = False
        #: Whether the current role is a superuser, as ``report`` was told last.
        self.superuser = False
        self._own = ""
        self._key: tuple[str, ...] | None = None
        self._place: tuple[tuple[str, ...], str] | None = None
        self._reading: Reading | None = None
        self._style: str | None = None
        for name, value in defaults.items():
            parameter = _find(name)
            fixed = parameter.context not in _OF_SESSIONS
            self._defaults[name.lower()] = value if fixed else parameter.read(parameter.name, value)
        self.read_only = self.is_on("transaction_read_only")
        self.escapes = not self.is_on("standard_conforming_strings")

    # -- reading -----------------------------------------------------------------------------------------------

    def value(self, name: str) -> str:
        """The stored value of a parameter. Raises 42704 for an unknown name."""
        lowered = name.lower()
        if lowered == "is_superuser":
            return "on" if self.superuser else "off"
        for values in (self._local, self._session, self._defaults):
            if lowered in values:
                return values[lowered]
        if lowered in _FRAMEWORK:
            return self.value(_FRAMEWORK[lowered])
        if lowered in PARAMETERS:
            return PARAMETERS[lowered].default
        raise SqlError("42704", f'unrecognized configuration parameter "{name}"')

    def show(self, name: str) -> str:
        """The value as SHOW and current_setting() give it."""
        return show(_find(name), self.value(name))

    def show_all(self) -> Iterator[tuple[str, str, str]]:
        """Name, value and description of every parameter, by name."""
        for key in sorted(PARAMETERS):
            parameter = PARAMETERS[key]
            yield parameter.name, self.show(key), parameter.description

    def customized(self) -> Iterator[tuple[str, str]]:
        """Name and value of the parameters that exist because the session or a setting has named them."""
        for name in sorted({**self._defaults, **self._session, **self._local}.keys() - PARAMETERS.keys()):
            yield name, self.show(name)

    def knows(self, name: str) -> bool:
        """Whether a parameter of that name exists and has a value."""
        try:
            self.value(name)
        except SqlError:
            return False
        return True

    def is_on(self, name: str) -> bool:
        """A Boolean parameter's value."""
        return self.value(name) == "on"

    def seconds(self, name: str) -> float:
        """A duration in seconds."""
        return int(self.value(name)) / 1000

    def search_path(self) -> tuple[str, ...]:
        """The schemas of search_path. ``$user`` is the current role's name; where that is the first superuser's, which
        is the system views' schema, it stands for none."""
        return self.place[0]

    @property
    def role(self) -> str:
        """The current role."""
        return self.place[1]

    @property
    def place(self) -> tuple[tuple[str, ...], str]:
        """Schemas and role: the same object as long as nothing has changed."""
        if self._place is None:
            chosen = self.value("role")
            role = self.value("session_authorization") if chosen == "none" else chosen
            self._place = _schemas(self.value("search_path"), role), role
        return self._place

    @property
    def style(self) -> str:
        """How values are shown as text (``protocol.values.styles``)."""
        if self._style is None:
            zone, intervals, dates = map(self.value, ("TimeZone", "IntervalStyle", "DateStyle"))
            digits = int(self.value("extra_float_digits"))
            self._style = style(zone, intervals, dates, self.value("bytea_output"), self.encoding, digits)
        return self._style

    @property
    def encoding(self) -> str:
        """The client's, by PostgreSQL's name; SQL_ASCII passes bytes as they are, and they are of UTF8."""
        name = self.value("client_encoding")
        return UTF8 if name == "SQL_ASCII" else name

    @property
    def reading(self) -> Reading:
        """How dates and intervals are read: the same object as long as nothing has changed."""
        if self._reading is None:
            _, _, dates = self.value("DateStyle").partition(", ")
            self._reading = Reading(dates, self.value("IntervalStyle") == SQL_STANDARD)
        return self._reading

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for two sessions in which the same text gives the same bytes, as far as settings matter."""
        if self._key is None:
            self._key = (self._own, *(self.value(name) for name in _MATTERS_TO_RESULTS))
        return self._key

    def see(self, own: str) -> None:
        """``own`` tells the relations that only this session sees from those of all others; '' where there are none."""
        if own != self._own:
            self._own, self._key = own, None

    @property
    def own(self) -> str:
        """What ``see`` was told."""
        return self._own

    def report(self, superuser: bool) -> list[tuple[str, str]]:
        """The reported parameters whose value the client does not know yet; it counts as told now. ``superuser``:
        whether the current role is one."""
        self.changed, self.superuser = False, superuser
        news = []
        for name in REPORTED:
            value = self.show(name)
            if self._sent.get(name) != value:
                self._sent[name] = value
                news.append((name, value))
        return news

    # -- changing ----------------------------------------------------------------------------------------------

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        """SET [LOCAL]; None is DEFAULT. Raises 42704, 22023, 55P02 or 0A000."""
        parameter = _find(name)
        lowered = parameter.name.lower()
        _check_context(parameter, self.superuser)
        stored = self.default(lowered) if value is None else self._read(parameter, value)
        if lowered in OF_TRANSACTION and self._begun is None:
            return  # the transaction is this statement alone
        if local or (lowered in OF_TRANSACTION and self._begun is not None):
            self._local = {**self._local, lowered: stored}
        else:
            self._session = {**self._session, lowered: stored}
            self._local = {key: kept for key, kept in self._local.items() if key != lowered}
        self._touch()

    @contextmanager
    def only_here(self, values: dict[str, str]) -> Iterator[None]:
        """Within, these parameters have these values, whatever SET LOCAL has given them."""
        before, self._local = self._local, {**self._local, **values}
        self._touch()
        try:
            yield
        finally:
            self._local = before
            self._touch()

    def _read(self, parameter: Parameter, text: str) -> str:
        """What is stored of a text; where that says a part only, the rest is what it is now."""
        if parameter.onto is None:
            return parameter.read(parameter.name, text)
        return parameter.onto(parameter.name, text, self.value(parameter.name))

    def check_given(self, names: Iterable[str], superuser: bool) -> None:
        """Whether a client may begin with values of its own for these. Raises 55P02 and 42501."""
        for name in names:
            parameter = _find(name)
            if parameter.context != "backend":
                _check_context(parameter, superuser)

    def check(self, name: str, value: str | None) -> None:
        """What ``set`` would raise, of a setting that is to be kept for other sessions."""
        parameter = _find(name)
        _check_context(parameter, self.superuser)
        if value is not None:
            parameter.read(parameter.name, value)

    def reset_all(self) -> None:
        """RESET ALL, which leaves the role as it is."""
        self._session = {name: value for name, value in self._session.items() if name in IDENTITY}
        self._local = {name: value for name, value in self._local.items() if name in IDENTITY}
        self._touch()

    def begin(self) -> None:
        """A transaction block starts."""
        if self._begun is None:
            self._begun = _Saved(self._session, self._local)

    def commit(self) -> None:
        """SET stays, SET LOCAL goes."""
        self._end()
        if self._local:
            self._local = {}
            self._touch()

    def rollback(self) -> None:
        """All returns to what it was when the transaction began."""
        if self._begun is not None:
            self._restore(self._begun)
            self._end()

    def _end(self) -> None:
        self._begun = None
        self._savepoints.clear()

    def savepoint(self, name: str) -> None:
        """SAVEPOINT name."""
        self._savepoints.add(name, _Saved(self._session, self._local))

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT name."""
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT name."""
        self._restore(self._savepoints.return_to(name))

    def _restore(self, saved: _Saved) -> None:
        if self._session is not saved.session or self._local is not saved.local:
            self._session, self._local = saved.session, saved.local
            self._touch()

    def _touch(self) -> None:
        self.changed = True
        self.read_only = self.is_on("transaction_read_only")
        self.escapes = not self.is_on("standard_conforming_strings")
        self._key = self._place = self._reading = self._style = None

    def default(self, name: str) -> str:
        """What RESET returns a parameter to."""
        lowered = name.lower()
        if lowered in self._defaults:
            return self._defaults[lowered]
        return PARAMETERS[lowered].default if lowered in PARAMETERS else ""


def _find(name: str) -> Parameter:
    """The parameter of a name in any case; "a.b" is a custom one and holds any text. Raises 42704."""
    parameter = PARAMETERS.get(name.lower())
    if parameter is not None:
        return parameter
    if _CUSTOM.fullmatch(name):
        return Parameter(name.lower(), "", text, "")
    if "." in name:
        detail = "Custom parameter names must be two or more simple identifiers separated by dots."
        raise SqlError("42602", f'invalid configuration parameter name "{name}"', detail)
    raise SqlError("42704", f'unrecognized configuration parameter "{name}"')


def _check_context(parameter: Parameter, superuser: bool) -> None:
    """Raises 55P02, and 42501 of what only superusers may set."""
    if parameter.context == "superuser" and not superuser:
        raise SqlError("42501", f'permission denied to set parameter "{parameter.name}"')
    if parameter.context in _NEVER:
        raise SqlError("55P02", f'parameter "{parameter.name}" {_NEVER[parameter.context]}')


@functools.lru_cache(256)
def _schemas(text: str, role: str) -> tuple[str, ...]:
    own = "" if role == BOOTSTRAP_NAME else role
    return tuple(found for name in split_list(text) if (found := own if name == "$user" else name))

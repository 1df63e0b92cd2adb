"""Who may come from where, and how that is proved: a table of rules in PostgreSQL's pg_hba.conf syntax.

Owns: reading the table, each rule's match, and the rule that no line trusts what is not this machine. Knows neither
sockets nor passwords; what a method asks for is ``server.login.authentication``'s.

https://www.postgresql.org/docs/15/auth-pg-hba-conf.html
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Final, Literal

from msgspec import Struct, field

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
ClientAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Verify = Literal["", "verify-ca", "verify-full"]

#: What is in force without a file: this machine's users come in, others with TLS and their password.
DEFAULT: Final = """\
local    all  all                trust
host     all  all  127.0.0.1/32  trust
host     all  all  ::1/128       trust
hostssl  all  all  all           scram-sha-256
"""
METHODS: Final = ("trust", "reject", "scram-sha-256", "cert")
_KINDS: Final = ("local", "host", "hostssl", "hostnossl", "hostgssenc", "hostnogssenc")
_EVERYWHERE: Final = ("0.0.0.0/0", "::/0")
_LOOPBACK: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
#: A word, or one in quotes, which make no word a keyword; commas between words make a list.
_TOKEN: Final = re.compile(r'\s*(?:(?P<comment>#.*)|(?P<comma>,)|(?P<quoted>"[^"]*"?)|(?P<plain>[^\s,#"]+))')


class Word(Struct, frozen=True):
    """A word of a line; quotes take a keyword's meaning from it."""

    text: str
    quoted: bool = False

    def means(self, keyword: str) -> bool:
        """Whether it is the keyword."""
        return self.text == keyword and not self.quoted


class Client(Struct, frozen=True):
    """Who wants in. ``groups`` says whether the user is a member of a role."""

    address: ClientAddress
    tls: bool
    user: str
    database: str
    groups: Callable[[str], bool]


class Rule(Struct, frozen=True):
    """One line. ``networks`` are where a client comes from ('all' are two); None for a local line."""

    line: int
    kind: str
    databases: tuple[Word, ...]
    users: tuple[Word, ...]
    networks: tuple[Network, ...]
    address: str
    mask: str
    method: str
    options: tuple[str, ...] = ()
    verify: Verify = ""

    def matches(self, client: Client) -> bool:
        """Whether it speaks of this client."""
        return (
            self._suits(client)
            and any(client.address in network for network in self.networks)
            and any(_is_database(word, client) for word in self.databases)
            and any(_is_user(word, client) for word in self.users)
        )

    def _suits(self, client: Client) -> bool:
        match self.kind:
            case "local" | "hostgssenc":
                return False
            case "hostssl":
                return client.tls
            case "hostnossl":
                return not client.tls
            case _:
                return True


class Mistake(Struct, frozen=True):
    """What is wrong with a line."""

    line: int
    message: str


class Table(Struct, frozen=True):
    """The rules in their order; ``name`` is the file's. One that has mistakes is not put in force."""

    name: str
    rules: tuple[Rule, ...] = ()
    mistakes: tuple[Mistake, ...] = field(default=())

    def find(self, client: Client) -> Rule | None:
        """The first rule that speaks of a client."""
        return next((rule for rule in self.rules if rule.matches(client)), None)

    def complaint(self) -> str:
        """The first mistake, as an operator is told of it."""
        first = self.mistakes[0]
        return f"{self.name}, line {first.line}: {first.message}"


class HbaError(Exception):
    """A line is not what it should be."""


def read_table(text: str, name: str) -> Table:
    """The rules of a file's text, and its mistakes."""
    rules, mistakes = [], []
    for number, line in _lines(text):
        try:
            fields = _fields(line)
            if fields:
                rules.append(_rule(number, fields))
        except HbaError as error:
            mistakes.append(Mistake(number, str(error)))
    return Table(name, tuple(rules), tuple(mistakes))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a backslash at the end of one joins the next to it."""
    pending, start = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        start = start if pending else number
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        yield start, pending
        pending = ""
    if pending:
        yield start, pending


def _fields(line: str) -> list[tuple[Word, ...]]:
    """The fields of a line, each a list of words."""
    fields: list[list[Word]] = []
    joined, position = False, 0
    while (found := _TOKEN.match(line, position)) is not None:
        position = found.end()
        if found["comment"] is not None:
            break
        if found["comma"] is not None:
            joined = True
            continue
        quoted = found["quoted"]
        word = Word(quoted.strip('"'), True) if quoted is not None else Word(found["plain"])
        if joined and fields:
            fields[-1].append(word)
        else:
            fields.append([word])
        joined = False
    return [tuple(words) for words in fields]


def _rule(number: int, fields: list[tuple[Word, ...]]) -> Rule:
    """One line's rule. Raises HbaError."""
    kind = _one(fields[0], "connection type")
    if kind not in _KINDS:
        raise HbaError(f'invalid connection type "{kind}"')
    if len(fields) < 2:
        raise HbaError("end-of-line before database specification")
    if len(fields) < 3:
        raise HbaError("end-of-line before role specification")
    databases, users, rest = fields[1], fields[2], fields[3:]
    for word in (*databases, *users):
        if word.text.startswith(("@", "/")) and not word.quoted:
            raise HbaError(f'"{word.text}": included files and regular expressions are not supported')
    networks: tuple[Network, ...] = ()
    address = mask = ""
    if kind != "local":
        networks, address, mask, rest = _from(rest)
    if not rest:
        raise HbaError("end-of-line before authentication method")
    method = _one(rest[0], "authentication method")
    if method not in METHODS:
        raise HbaError(f'authentication method "{method}" is not supported: use one of {", ".join(METHODS)}')
    options = tuple(",".join(word.text for word in words) for words in rest[1:])
    rule = Rule(
        number, kind, databases, users, networks, address, mask, method, options, _verify(kind, method, options)
    )
    _require_proof(rule)
    return rule


def _one(words: tuple[Word, ...], what: str) -> str:
    first, *others = words
    if others:
        raise HbaError(f"multiple values specified for {what}")
    return first.text


def _from(fields: list[tuple[Word, ...]]) -> tuple[tuple[Network, ...], str, str, list[tuple[Word, ...]]]:
    """The networks of an address field, with the mask that may follow it, and what is left of the line."""
    if not fields:
        raise HbaError("end-of-line before IP address specification")
    text, rest = _one(fields[0], "host address"), fields[1:]
    if any(word.means("all") for word in fields[0]):
        return tuple(map(ipaddress.ip_network, _EVERYWHERE)), "all", "", rest
    if text in ("samehost", "samenet"):
        raise HbaError(f"{text} is not supported: write the address")
    try:
        if "/" in text:
            network = ipaddress.ip_network(text, strict=False)
            return (network,), text.partition("/")[0], str(network.netmask), rest
        ipaddress.ip_address(text)
    except ValueError as error:
        reason = "host names are not supported" if re.fullmatch(r"[A-Za-z.][\w.-]*", text) else str(error)
        raise HbaError(f'invalid IP address "{text}": {reason}') from None
    if not rest:
        raise HbaError("end-of-line before netmask specification")
    mask = _one(rest[0], "netmask")
    try:
        if ":" in text:
            bits = int(ipaddress.IPv6Address(mask))
            length = bits.bit_count()
            if bits != (1 << 128) - (1 << 128 - length):
                raise ValueError("the mask has gaps")
            return (ipaddress.ip_network(f"{text}/{length}", strict=False),), text, mask, rest[1:]
        return (ipaddress.ip_network(f"{text}/{mask}", strict=False),), text, mask, rest[1:]
    except ValueError:
        raise HbaError(f'invalid IP mask "{mask}"') from None


def _verify(kind: str, method: str, options: tuple[str, ...]) -> Verify:
    """Which certificate the client must show. Raises HbaError."""
    verify: Verify = "verify-full" if method == "cert" else ""
    if method == "cert" and kind != "hostssl":
        raise HbaError("cert authentication is only supported on hostssl connections")
    for option in options:
        name, separator, value = option.partition("=")
        if not separator:
            raise HbaError(f"authentication option not in name=value format: {option}")
        if name != "clientcert":
            raise HbaError(f'authentication option "{name}" is not supported')
        if kind != "hostssl":
            raise HbaError('clientcert can only be configured for "hostssl" rows')
        if value not in ("verify-ca", "verify-full"):
            raise HbaError(f'invalid value for clientcert: "{value}"')
        if value == "verify-ca" and method == "cert":
            raise HbaError('clientcert only accepts "verify-full" when using "cert" authentication')
        verify = "verify-full" if value == "verify-full" else "verify-ca"
    return verify


def _require_proof(rule: Rule) -> None:
    """Only this machine is trusted: everybody else proves who he is. Raises HbaError."""
    if rule.method == "trust" and not all(map(is_loopback, rule.networks)):
        raise HbaError("trust is for loopback addresses only: use scram-sha-256 or cert")


def is_loopback(network: Network) -> bool:
    """Whether a network is a part of this machine's own."""
    return any(
        network.version == own.version and network.subnet_of(own)  # type: ignore[arg-type]
        for own in _LOOPBACK
    )


def _is_database(word: Word, client: Client) -> bool:
    if word.means("all"):
        return True
    if word.means("sameuser"):
        return client.database == client.user
    if word.means("samerole") or word.means("samegroup"):
        return client.groups(client.database)
    return word.text == client.database and not word.means("replication")


def _is_user(word: Word, client: Client) -> bool:
    if word.means("all"):
        return True
    if word.text.startswith("+") and not word.quoted:
        return client.groups(word.text[1:])
    return word.text == client.user

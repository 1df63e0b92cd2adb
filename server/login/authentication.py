"""Authentication of a client: by its address, a password or a certificate, as the table of hosts asks for.

Owns: which rule is a client's, the methods, and what a client that fails is told: never whether there is such a role
(the login of a missing role runs like any other, with random keys). Bytes of SCRAM are ``protocol.scram``'s.

https://www.postgresql.org/docs/15/client-authentication.html
"""

from __future__ import annotations

import base64
import datetime as dt
import hmac
import ipaddress
import logging
import secrets
from typing import TYPE_CHECKING, Final

from catalog.passwords import ITERATIONS, SALT_BYTES, read_verifier
from catalog.roles import Role, Roles
from catalog.values.errors import SqlError
from protocol import encoder, scram
from server.net.hba import Client, ClientAddress, Rule

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from server.net.clients import Clients
    from server.net.connection import Connection
    from server.services import Services

_NONCE_BYTES: Final = 18

logger = logging.getLogger(__name__)


class Authentication:
    """One client's way in."""

    def __init__(self, connection: Connection, server: Services, user: str, database: str, roles: Roles) -> None:
        self._connection = connection
        self._access = server.access
        self._user = user
        self._database = database
        self._roles = roles
        self._secret = server.secret
        self._exchange: scram.Exchange | None = None
        #: The client's authentication method, once that is known.
        self.method = ""

    def begin(self) -> bool:
        """Whether the client is authenticated; else it has been asked for a proof. Raises 28000."""
        rule = self._rule()
        self.method = rule.method
        self._require_certificate(rule)
        match rule.method:
            case "trust" | "cert":  # a certificate has been compared above
                return True
            case "scram-sha-256":
                self._ask()
                return False
            case _:
                raise SqlError("28000", f"pg_hba.conf rejects connection for {self._described()}")

    def answer(self, data: bytes) -> bool:
        """Takes a message of the client's proof; whether it is complete. Raises 28P01 and 08P01."""
        exchange, connection = self._exchange, self._connection
        if exchange is None:
            raise SqlError("08P01", "unexpected message PasswordMessage")
        if not exchange.has_begun:
            said = exchange.first(*scram.initial_response(data))
            connection.send(encoder.authentication_sasl_continue(said))
            return False
        proof = exchange.final(data)
        if proof is None:
            logger.info("login failed user=%s address=%s", self._user, self._connection.peer[0])
            raise SqlError("28P01", f'password authentication failed for user "{self._user}"')
        connection.send(encoder.authentication_sasl_final(proof))
        return True

    def _ask(self) -> None:
        tunnel = self._connection.tunnel
        binding = None if tunnel is None else tunnel.end_point
        nonce = base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        self._exchange = scram.Exchange(self._keys(), nonce, binding)
        self._connection.send(encoder.authentication_sasl(scram.mechanisms(binding)))

    def _keys(self) -> scram.Keys:
        """The verifier of the user's password, or random keys."""
        role = self._roles.find(self._user)
        verifier = None if role is None or role.password is None else read_verifier(role.password)
        if role is None or verifier is None or _is_over(role):
            salt = hmac.digest(self._secret, self._user.encode(), "sha256")[:SALT_BYTES]
            return scram.Keys(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32), genuine=False)
        return scram.Keys(verifier.iterations, verifier.salt, verifier.stored_key, verifier.server_key)

    def _rule(self) -> Rule:
        """The rule that speaks of the client. Raises 28000 where none does."""
        connection, host = self._connection, self._connection.peer[0]
        rule = None
        if host:  # else it has gone again
            who = self._user, self._database, self._is_member
            rule = self._access.table.find(Client(address_of(host), connection.tunnel is not None, *who))
        if rule is None:
            raise SqlError("28000", f"no pg_hba.conf entry for {self._described()}")
        return rule

    def _is_member(self, name: str) -> bool:
        """Whether the user is a member of a role; a superuser is one of those only that it was let into."""
        user, role = self._roles.find(self._user), self._roles.find(name)
        return user is not None and role is not None and role.oid in self._roles.groups(user.oid)

    def _require_certificate(self, rule: Rule) -> None:
        """What a rule asks of the client's certificate. Raises 28000."""
        tunnel = self._connection.tunnel
        if not rule.verify:
            return
        if tunnel is None or not tunnel.has_certificate:
            raise SqlError("28000", "connection requires a valid client certificate")
        if rule.verify == "verify-full" and tunnel.common_name != self._user:
            raise SqlError("28000", f'certificate authentication failed for user "{self._user}"')

    def _described(self) -> str:
        spoken = "SSL encryption" if self._connection.tunnel is not None else "no encryption"
        return f'host "{self._connection.peer[0]}", user "{self._user}", database "{self._database}", {spoken}'


def address_of(text: str) -> ClientAddress:
    """A client's address; one of IPv4 that came by IPv6 is that of IPv4."""
    found = ipaddress.ip_address(text.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


def require_admission(clients: Clients, user: str, catalog: Catalog, database: str) -> None:
    """Whether a role may come in. Raises 28000, 42501 and 53300."""
    from catalog.privileges import DATABASE, OF_DATABASE  # with the catalog, after the first byte

    roles = catalog.roles
    role = roles.find(user)
    if role is None:
        raise SqlError("28000", f'role "{user}" does not exist')
    if not role.login:
        raise SqlError("28000", f'role "{user}" is not permitted to log in')
    if not catalog.rights_of(DATABASE).allows(roles, role.oid, "c", OF_DATABASE):
        detail = "User does not have CONNECT privilege."
        raise SqlError("42501", f'permission denied for database "{database}"', detail)
    if role.connection_limit < 0 or role.superuser:
        return
    backends = (other.handler.backend for other in clients)
    others = sum(backend is not None and backend.login == user for backend in backends)
    if others >= role.connection_limit:
        raise SqlError("53300", f'too many connections for role "{user}"')


def _is_over(role: Role) -> bool:
    """Whether the role's password has seen its last day."""
    return role.valid_until is not None and role.valid_until < dt.datetime.now(dt.UTC)

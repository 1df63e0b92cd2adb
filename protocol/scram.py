"""SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, the server's side: two messages in, two out.

Owns: the exchange's state, its messages, and the check of a proof. Knows neither sockets nor roles. The caller passes
the keys stored for a password and, under TLS, the hash of the server's certificate for channel binding. For an unknown
role, the caller passes keys that belong to no password (``genuine`` false): the exchange runs as usual and the proof
fails.

::

    START --first()--> FIRST --final()--> DONE

https://www.rfc-editor.org/rfc/rfc5802, https://www.rfc-editor.org/rfc/rfc7677, https://www.rfc-editor.org/rfc/rfc5929
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError

PLAIN: Final = "SCRAM-SHA-256"
PLUS: Final = "SCRAM-SHA-256-PLUS"
_BINDING: Final = "tls-server-end-point"
#: Header (binding flag and authorization identity), then user name (already known from the start-up packet) and nonce.
_FIRST: Final = re.compile(
    r"(?P<flag>[ny]|p=(?P<kind>[^,]*)),(?P<identity>[^,]*),(?P<bare>(?:m=[^,]*,)?n=[^,]*,r=(?P<nonce>[!-+\--~]+)(,.*)?)"
)
_FINAL: Final = re.compile(r"(?P<rest>c=(?P<binding>[^,]*),r=(?P<nonce>[^,]*)(,.*)?),p=(?P<proof>[^,]*)")


class Keys(Struct, frozen=True):
    """The keys stored for a password; ``genuine`` is false for keys that belong to no password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    genuine: bool = True


def mechanisms(binding: bytes | None) -> tuple[str, ...]:
    """The mechanisms offered to a client, the one with channel binding first if the server has a certificate."""
    return (PLAIN,) if binding is None else (PLUS, PLAIN)


class Exchange:
    """One login. ``nonce`` is random; ``binding`` is the certificate's hash, None without TLS."""

    __slots__ = ("_binding", "_flag", "_heard", "_keys", "_nonce", "_said")

    def __init__(self, keys: Keys, nonce: str, binding: bytes | None) -> None:
        self._keys = keys
        self._nonce = nonce
        self._binding = binding
        self._flag = ""
        self._heard = ""  # client-first-message-bare
        self._said = ""  # server-first-message

    @property
    def has_begun(self) -> bool:
        """Whether the client has chosen a mechanism."""
        return bool(self._said)

    def first(self, mechanism: str, data: bytes) -> bytes:
        """The answer to the client's first message. Raises 08P01 and 0A000."""
        if mechanism not in mechanisms(self._binding):
            raise SqlError("08P01", "client selected an invalid SASL authentication mechanism")
        found = _FIRST.fullmatch(_text(data))
        if found is None:
            raise _malformed("The message is not a client-first-message.")
        if found["identity"]:
            raise SqlError("0A000", "client uses authorization identity, but it is not supported")
        self._check_flag(mechanism, found["flag"], found["kind"])
        if found["bare"].startswith("m="):
            raise SqlError("0A000", "client requires an unsupported SCRAM extension")
        self._flag, self._heard = found["flag"], found["bare"]
        self._nonce = found["nonce"] + self._nonce
        salt = base64.b64encode(self._keys.salt).decode()
        self._said = f"r={self._nonce},s={salt},i={self._keys.iterations}"
        return self._said.encode()

    def _check_flag(self, mechanism: str, flag: str, kind: str | None) -> None:
        """Checks that the client's channel binding fits the mechanism, and that no attacker removed the binding from
        the offer (flag y)."""
        if kind is None and mechanism == PLUS:
            raise _malformed(
                f"The client selected {PLUS}, but the SCRAM message does not include channel binding data."
            )
        if kind is not None and mechanism == PLAIN:
            raise _malformed(
                f"The client selected {PLAIN} without channel binding, but the SCRAM message includes channel binding"
                " data."
            )
        if kind not in (None, _BINDING):
            raise SqlError("08P01", f'unsupported SCRAM channel-binding type "{kind}"')
        if flag == "y" and self._binding is not None:
            detail = (
                "The client supports SCRAM channel binding but thinks the server does not.  "
                "However, this server does support channel binding."
            )
            raise SqlError("28000", "SCRAM channel binding negotiation error", detail)

    def final(self, data: bytes) -> bytes | None:
        """The answer to the client's last message, with the server's own proof; None if the client's proof is wrong.
        Raises 08P01."""
        found = _FINAL.fullmatch(_text(data))
        if found is None:
            raise _malformed("The message is not a client-final-message.")
        header = f"{self._flag},,".encode()
        bound = header + (self._binding or b"" if self._flag.startswith("p") else b"")
        if not hmac.compare_digest(_decoded(found["binding"]), bound):
            raise SqlError("08P01", "SCRAM channel binding check failed")
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise SqlError("08P01", "invalid SCRAM response", "Nonce does not match.")
        proof = _decoded(found["proof"])
        if len(proof) != hashlib.sha256().digest_size:
            raise _malformed("Malformed proof in client-final-message.")
        message = f"{self._heard},{self._said},{found['rest']}".encode()
        if not self._proves(proof, message):
            return None
        return b"v=" + base64.b64encode(hmac.digest(self._keys.server_key, message, "sha256"))

    def _proves(self, proof: bytes, message: bytes) -> bool:
        """Whether the client knows the key whose hash is stored (RFC 5802, section 3)."""
        signature = hmac.digest(self._keys.stored_key, message, "sha256")
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        is_equal = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._keys.stored_key)
        return is_equal and self._keys.genuine


def initial_response(data: bytes) -> tuple[str, bytes]:
    """Mechanism and first message of a SASLInitialResponse. Raises 08P01."""
    name, separator, rest = data.partition(b"\0")
    if not separator or len(rest) < 4 or int.from_bytes(rest[:4], "big") != len(rest) - 4:
        raise SqlError("08P01", "invalid message format")
    return name.decode("latin-1"), rest[4:]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _malformed("The message is not UTF-8.") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("Malformed base64.") from None


def _malformed(detail: str) -> SqlError:
    return SqlError("08P01", "malformed SCRAM message", detail)

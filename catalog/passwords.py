"""SCRAM-SHA-256 verifiers of passwords, in PostgreSQL's form; the password cannot be computed from them.

Owns: making one, reading one, and SASLprep (RFC 4013), under which equal passwords are equal bytes. The exchange at
login is ``protocol.scram``.

https://www.rfc-editor.org/rfc/rfc5802 (section 3), https://www.postgresql.org/docs/15/catalog-pg-authid.html
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import stringprep
import unicodedata
from typing import Final

from msgspec import Struct

ITERATIONS: Final = 4096
SALT_BYTES: Final = 16
_FORM: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)")
_MD5: Final = re.compile(r"md5[0-9a-f]{32}")
_PROHIBITED: Final = (
    *(stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4),
    *(stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8),
    *(stringprep.in_table_c9, stringprep.in_table_a1),
)


class Verifier(Struct, frozen=True):
    """The stored form of a password: the server checks a proof with ``stored_key``, and proves itself with
    ``server_key``."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(item).decode() for item in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def read_verifier(text: str) -> Verifier | None:
    """The verifier in a text; None if the text is something else."""
    found = _FORM.fullmatch(text)
    if found is None or int(found[1]) < 1:
        return None
    try:
        return Verifier(int(found[1]), *(base64.b64decode(part, validate=True) for part in found.groups()[1:]))
    except ValueError:
        return None


def is_md5(text: str) -> bool:
    """Whether a text is a password in the form in which PostgreSQL stores it with MD5."""
    return _MD5.fullmatch(text) is not None


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of a password."""
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def is_empty(text: str | None) -> bool:
    """Whether a password, or the password of a verifier, is empty; an empty password is not allowed."""
    verifier = read_verifier(text or "")
    if verifier is None:
        return text == ""
    return make_verifier("", verifier.salt, verifier.iterations) == verifier


def saslprep(text: str) -> str:
    """A password after SASLprep; unchanged if SASLprep does not allow the text, as in PostgreSQL."""
    if text.isascii():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return prepared if prepared and _is_allowed(prepared) else text


def _is_allowed(text: str) -> bool:
    """RFC 4013, sections 2.3 to 2.5: no prohibited or unassigned characters, and only one direction."""
    if any(table(char) for char in text for table in _PROHIBITED):
        return False
    if not any(stringprep.in_table_d1(char) for char in text):
        return True
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends and not any(stringprep.in_table_d2(char) for char in text)

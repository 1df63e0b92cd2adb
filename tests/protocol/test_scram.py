"""SCRAM-SHA-256 with the example of RFC 7677, with channel binding, and with every possible mistake of a client."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from catalog.passwords import is_md5, make_verifier, read_verifier, saslprep
from catalog.values.errors import SqlError
from protocol.scram import PLAIN, PLUS, Exchange, Keys, initial_response, mechanisms

PASSWORD = "pencil"
#: RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
BINDING = hashlib.sha256(b"a certificate").digest()


def keys(password: str = PASSWORD, genuine: bool = True) -> Keys:
    verifier = make_verifier(password, SALT)
    return Keys(verifier.iterations, verifier.salt, verifier.stored_key, verifier.server_key, genuine)


def client_final(header: bytes, bare: str, said: bytes, password: str = PASSWORD) -> bytes:
    """The client's last message, with the proof."""
    parts = dict(part.split("=", 1) for part in said.decode().split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    rest = f"c={base64.b64encode(header).decode()},r={parts['r']}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{said.decode()},{rest}".encode(), "sha256")
    proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
    return f"{rest},p={base64.b64encode(proof).decode()}".encode()


def test_the_rfcs_exchange() -> None:
    exchange = Exchange(keys(), SERVER_NONCE, None)
    said = exchange.first(PLAIN, FIRST)
    assert said == f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    nonce = CLIENT_NONCE + SERVER_NONCE
    proof = f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert exchange.final(proof) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("password", ["wrong", PASSWORD])
def test_a_wrong_password_and_an_unknown_role_fail(password: str) -> None:
    exchange = Exchange(keys(genuine=password != PASSWORD), SERVER_NONCE, None)
    said = exchange.first(PLAIN, FIRST)
    assert exchange.final(client_final(b"n,,", f"n=user,r={CLIENT_NONCE}", said, password)) is None


def test_the_certificate_is_bound() -> None:
    header = b"p=tls-server-end-point,,"
    bare = f"n=,r={CLIENT_NONCE}"
    assert mechanisms(BINDING) == (PLUS, PLAIN)
    assert mechanisms(None) == (PLAIN,)
    for bound, fails in ((BINDING, False), (hashlib.sha256(b"another").digest(), True)):
        exchange = Exchange(keys(), SERVER_NONCE, BINDING)
        final = client_final(header + bound, bare, exchange.first(PLUS, header + bare.encode()))
        if fails:
            with pytest.raises(SqlError, match="channel binding check failed"):
                exchange.final(final)
        else:
            assert exchange.final(final) is not None


@pytest.mark.parametrize(
    ("mechanism", "binding", "message", "sqlstate"),
    [
        ("SCRAM-SHA-1", None, FIRST, "08P01"),
        (PLUS, None, FIRST, "08P01"),
        (PLUS, BINDING, FIRST, "08P01"),
        (PLAIN, BINDING, b"p=tls-server-end-point,," + FIRST[3:], "08P01"),
        (PLUS, BINDING, b"p=tls-unique,," + FIRST[3:], "08P01"),
        (PLAIN, BINDING, b"y" + FIRST[1:], "28000"),  # an attacker has shortened the offer
        (PLAIN, None, b"n,a=other," + FIRST[3:], "0A000"),
        (PLAIN, None, b"n,,m=x," + FIRST[3:], "0A000"),
        (PLAIN, None, b"n,,n=user", "08P01"),
        (PLAIN, None, b"n,,n=user,r=\xff", "08P01"),
        (PLAIN, None, b"", "08P01"),
    ],
)
def test_first_messages_that_are_refused(mechanism: str, binding: bytes | None, message: bytes, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        Exchange(keys(), SERVER_NONCE, binding).first(mechanism, message)
    assert caught.value.sqlstate == sqlstate


def test_last_messages_that_are_refused() -> None:
    nonce = CLIENT_NONCE + SERVER_NONCE
    good = client_final(b"n,,", f"n=user,r={CLIENT_NONCE}", f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    for bad in (
        b"",
        good.replace(b"c=biws", b"c=eSws"),
        good.replace(b"c=biws", b"c=*"),
        good.replace(b",r=rOpr", b",r=rOpq"),
        good.partition(b",p=")[0] + b",p=AAAA",
        good.partition(b",p=")[0],
    ):
        exchange = Exchange(keys(), SERVER_NONCE, None)
        exchange.first(PLAIN, FIRST)
        with pytest.raises(SqlError) as caught:
            exchange.final(bad)
        assert caught.value.sqlstate == "08P01"


def test_initial_responses() -> None:
    assert initial_response(b"SCRAM-SHA-256\0\0\0\0\x03abc") == ("SCRAM-SHA-256", b"abc")
    for broken in (b"", b"SCRAM-SHA-256", b"SCRAM-SHA-256\0\0\0", b"SCRAM-SHA-256\0\0\0\0\x09abc"):
        with pytest.raises(SqlError):
            initial_response(broken)


def test_verifiers_are_postgresqls() -> None:
    verifier = make_verifier(PASSWORD, SALT)
    assert read_verifier(str(verifier)) == verifier
    assert str(verifier).startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    for other in ("pencil", "", "SCRAM-SHA-256$0:AAAA$" + "A" * 43 + "=:" + "A" * 43 + "="):
        assert read_verifier(other) is None
    assert is_md5("md5" + "0" * 32)
    assert not is_md5("md5")


@pytest.mark.parametrize(
    ("text", "prepared"),
    [  # RFC 4013, section 3, and prohibited texts, which stay unchanged
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("é\u0007", "é\u0007"),
        ("\u0627\u0031", "\u0627\u0031"),
        ("пароль", "пароль"),
    ],
)
def test_saslprep(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared

"""TLS: what the configuration says of it, and the layer between a socket and a connection that speaks it.

Owns: the context of certificates and versions, the hash to which SCRAM binds, and ``Tunnel``, which stands to the
connection like its transport and to the transport like its protocol. Knows nothing of messages.

https://www.postgresql.org/docs/15/ssl-tcp.html, https://www.rfc-editor.org/rfc/rfc5929 (section 4)
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

#: What clients that begin with TLS at once must offer, so that nobody else's connection is taken for one.
ALPN: Final = "postgresql"
#: Bytes read from TLS at once: a record's.
_RECORD: Final = 16 << 10
VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
#: Which hash a certificate's signature algorithm has, by the end of its DER object identifier.
_SIGNATURES: Final[Mapping[str, str]] = {
    "2a864886f70d010104": "sha256",  # md5WithRSA: as RFC 5929 has it
    "2a864886f70d010105": "sha256",  # sha1WithRSA: likewise
    "2a864886f70d01010b": "sha256",
    "2a864886f70d01010c": "sha384",
    "2a864886f70d01010d": "sha512",
    "2a864886f70d01010e": "sha224",
    "2a8648ce3d0401": "sha256",  # ecdsa-with-SHA1
    "2a8648ce3d040301": "sha224",
    "2a8648ce3d040302": "sha256",
    "2a8648ce3d040303": "sha384",
    "2a8648ce3d040304": "sha512",
}

logger = logging.getLogger(__name__)


class TlsError(Exception):
    """Files or settings with which TLS cannot be spoken; the message names them."""


class Secured(Struct, frozen=True):
    """What every connection's TLS has: the context, the certificate's hash (None: its algorithm has none), and that by
    which servers know it."""

    context: ssl.SSLContext
    end_point: bytes | None
    fingerprint: bytes


def load(certificate: Path, key: Path, authority: Path | None, least: str) -> Secured:
    """TLS with a server's certificate; clients' certificates are asked for where there is an authority for them.

    Raises TlsError.
    """
    if least not in VERSIONS:
        raise TlsError(f"ssl_min_protocol_version = {least}: use one of {', '.join(VERSIONS)}")
    _require_private(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[least]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols([ALPN])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
        der = ssl.PEM_cert_to_DER_cert(_first(certificate.read_text(encoding="ascii")))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise TlsError(f"ssl_cert_file = {certificate}, ssl_key_file = {key}: {_reason(error)}") from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except OSError as error:
            raise TlsError(f"ssl_ca_file = {authority}: {_reason(error)}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return Secured(context, end_point(der), fingerprint(der))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _no_password() -> str:
    raise ValueError("the key has a passphrase: use a key without one")


def _first(text: str) -> str:
    """A chain's first certificate: the server's own."""
    end = "-----END CERTIFICATE-----"
    start = text.find("-----BEGIN CERTIFICATE-----")
    if start < 0 or end not in text:
        raise ValueError("there is no certificate")
    return text[start : text.index(end, start) + len(end)] + "\n"


def _require_private(key: Path) -> None:
    """As PostgreSQL: a key that others may read is none."""
    try:
        status = key.stat()
    except OSError as error:
        raise TlsError(f"ssl_key_file = {key}: {_reason(error)}") from None
    allowed = 0o640 if status.st_uid == 0 else 0o600
    if status.st_mode & 0o777 & ~allowed:
        raise TlsError(f"ssl_key_file = {key}: group or others have access; its mode must be {allowed:o} or less")


def fingerprint(der: bytes) -> bytes:
    """A certificate's SHA-256, whatever it is signed with."""
    return hashlib.sha256(der).digest()


def end_point(der: bytes) -> bytes | None:
    """A certificate's hash by the hash of its own signature (tls-server-end-point); None where that is not known."""
    _, body, _ = _element(der, 0)
    _, _, after = _element(body, 0)  # what is signed
    _, algorithm, _ = _element(body, after)
    tag, identifier, _ = _element(algorithm, 0)
    name = _SIGNATURES.get(identifier.hex()) if tag == 0x06 else None
    return None if name is None else hashlib.new(name, der).digest()


def _element(data: bytes, start: int) -> tuple[int, bytes, int]:
    """Tag, contents and end of the DER element that begins at a place."""
    length, place = data[start + 1], start + 2
    if length & 0x80:
        count = length & 0x7F
        length, place = int.from_bytes(data[place : place + count], "big"), place + count
    return data[start], data[place : place + length], place + length


class Tunnel(asyncio.Protocol):
    """TLS between a transport and the protocol that had it. Flow control goes through it unchanged."""

    def __init__(self, transport: asyncio.Transport, inner: Any, secured: Secured, direct: bool) -> None:
        """``inner`` is the connection; ``direct``: no request came before, so that ALPN must say what is spoken."""
        self._transport = transport
        self._inner = inner
        self._direct = direct
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = secured.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_open = False
        self._is_closed = False
        self.end_point = secured.end_point
        self.fingerprint = secured.fingerprint

    # -- the transport's calls -------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes of TLS: those of the client's messages go on to the connection."""
        self._incoming.write(data)
        try:
            if not self._is_open:
                self._shake_hands()
            pieces, is_over = self._read()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError as error:
            logger.info("TLS failed: %s", error.reason or error)
            self._send()
            self._transport.close()
            return
        self._send()
        if pieces:
            self._inner.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_over:
            self._transport.close()

    def _shake_hands(self) -> None:
        self._tls.do_handshake()
        if self._direct and self._tls.selected_alpn_protocol() != ALPN:
            raise ssl.SSLError(1, "direct TLS without the protocol postgresql (ALPN)")
        self._is_open = True

    def _read(self) -> tuple[list[bytes], bool]:
        """What has come, and whether the client has said that nothing more will."""
        pieces: list[bytes] = []
        try:
            while piece := self._tls.read(_RECORD):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            return pieces, False
        except ssl.SSLZeroReturnError:
            pass
        return pieces, True

    def _send(self) -> None:
        if data := self._outgoing.read():
            self._transport.write(data)

    def eof_received(self) -> None:
        """The client sends no more: the transport closes."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._inner.resume_writing()

    # -- the connection's calls ------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Sends bytes; TLS takes a record's worth at a time."""
        if self._is_closed or not self._is_open:
            return
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view) :]
        self._send()

    def close(self) -> None:
        """Says goodbye and closes once what is queued has been sent."""
        if not self._is_closed and self._is_open:
            with contextlib.suppress(ssl.SSLError):  # it has not said goodbye itself, for which nobody waits
                self._tls.unwrap()
            self._send()
        self._is_closed = True
        self._transport.close()

    def abort(self) -> None:
        """Drops the connection."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """The connection has enough to do."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """It goes on."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the socket."""
        return self._transport.get_extra_info(name, default)

    # -- what is known of the client -------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """The TLS version spoken."""
        return self._tls.version() or ""

    @property
    def cipher(self) -> tuple[str, int]:
        """The cipher's name and bits."""
        found = self._tls.cipher()
        return ("", 0) if found is None else (found[0], found[2])

    @property
    def has_certificate(self) -> bool:
        """Whether the client has shown a certificate, which the context has verified."""
        return bool(self._tls.getpeercert())

    @property
    def common_name(self) -> str:
        """The first name in the client's certificate; '' where it has shown none."""
        found: Any = self._tls.getpeercert() or {}
        names = [pair[1] for part in found.get("subject", ()) for pair in part if pair[0] == "commonName"]
        return str(names[0]) if names else ""

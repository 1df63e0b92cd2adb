"""Cancel keys: the process numbers and keys that BackendKeyData sends.

Owns: the registry of sessions by process number. A key is random and compared in constant time; a wrong one is ignored,
as PostgreSQL does, since the asking connection gets no answer either way.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from msgspec import Struct


class BackendKey(Struct, frozen=True):
    """What a client must show to cancel this session."""

    process: int
    key: bytes


class CancelRegistry:
    """Sessions by their process number. Used on the event loop thread only."""

    def __init__(self) -> None:
        self._next = 1
        self._sessions: dict[int, tuple[BackendKey, Callable[[], None]]] = {}

    def register(self, cancel: Callable[[], None], length: int) -> BackendKey:
        """A new session's key, of so many bytes; ``cancel`` must not block."""
        backend = BackendKey(self._next, secrets.token_bytes(length))
        self._next += 1
        self._sessions[backend.process] = (backend, cancel)
        return backend

    def forget(self, backend: BackendKey) -> None:
        """The session is over."""
        self._sessions.pop(backend.process, None)

    def cancel(self, process: int, key: bytes) -> bool:
        """Cancels what the session does now, if the key is right; whether it was."""
        known = self._sessions.get(process)
        if known is None:
            return False
        backend, cancel = known
        if not hmac.compare_digest(backend.key, key):
            return False
        cancel()
        return True

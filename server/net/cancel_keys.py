"""Backends: the process numbers of sessions, and the keys that cancel them, as BackendKeyData sends them.

Owns: ``Backend``, a session as other clients see it, and the registry of sessions by process number. A key is random
and compared in constant time; a wrong one is ignored, as PostgreSQL does, since the asking connection gets no answer
either way.
"""

from __future__ import annotations

import datetime
import hmac
import secrets
from collections.abc import Callable

from msgspec import Struct


class Backend(Struct, frozen=True):
    """A session, as other clients see it: its process number, what a client must show to cancel it, the role that has
    logged in, and since when."""

    process: int
    key: bytes
    login: str
    started: datetime.datetime


class CancelRegistry:
    """Sessions by their process number. Used on the event loop thread only."""

    def __init__(self) -> None:
        self._next = 1
        self._sessions: dict[int, tuple[Backend, Callable[[], None]]] = {}

    def register(self, cancel: Callable[[], None], length: int, login: str) -> Backend:
        """A new session of a role, with a key of so many bytes; ``cancel`` must not block."""
        now = datetime.datetime.now(datetime.UTC)
        backend = Backend(self._next, secrets.token_bytes(length), login, now)
        self._next += 1
        self._sessions[backend.process] = (backend, cancel)
        return backend

    def forget(self, backend: Backend) -> None:
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

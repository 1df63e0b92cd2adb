"""The pipe between server and driver process: JSON values, each after its length in 4 bytes, big-endian.

Owns: framing. Requests carry ``id`` and ``op``; the answer repeats ``id``. Frames without an id are the driver's own
news.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any

Frame = dict[str, Any]
_LENGTH = struct.Struct(">I")


def write_frame(stream: IO[bytes], frame: Frame) -> None:
    """One frame, flushed."""
    body = json.dumps(frame, separators=(",", ":")).encode()
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Frame | None:
    """The next frame; None at the end of the stream, also in the middle of a frame (the writer died)."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        return None
    frame: Frame = json.loads(body)
    return frame

"""JSON documents with their own checksum.

    {"format": 2, "sha256": "<64 digits, of the bytes that follow>", "content": <JSON>}

Owns that form. The checksum finds damage and edits by hand; it does not protect against forgery, which the folder's
permissions prevent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from catalog.values.errors import SqlError
from executor.commit.files import disk_error

#: What reading a document raises that is damaged; also a plan that is too deep (RecursionError), or has
#: fewer parts than it says (StopIteration, and what Python makes of that within a generator).
WRONG: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError),
)

_FORMAT: Final = 2
_HEAD: Final = '{{"format":{},"sha256":"{}","content":'


def pack(content: Any) -> bytes:
    """A document as its file has it."""
    text = json.dumps(content, separators=(",", ":")).encode()  # indenting takes Python's own encoder, and the GIL
    head = _HEAD.format(_FORMAT, hashlib.sha256(text).hexdigest())
    return head.encode() + text + b"}"


def unpack(data: bytes, name: str) -> tuple[int, Any]:
    """A document's format and content; of format 1, which had no checksum, all of it. Raises XX001, and 0A000 for a
    format of a later version; ``name`` is for their messages."""
    with as_written(name):
        document = json.loads(data)
        found = document.get("format", 1)
        if found not in (1, _FORMAT):
            raise SqlError("0A000", f'format {found} of "{name}" is not supported')
        if found == 1 and "sha256" not in document:
            return 1, document
        if data != pack(document["content"]):
            raise ValueError("its checksum does not match")
        return _FORMAT, document["content"]


@contextmanager
def as_written(name: str) -> Iterator[None]:
    """Raises XX001 where what is read is damaged, or is missing, and 58030 if the file cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise SqlError("XX001", f'"{name}" is missing') from error
    except OSError as error:
        if error.errno is None:  # it is the file that is wrong
            raise SqlError("XX001", f'"{name}" is damaged: {error}') from error
        raise disk_error(error, f'read "{name}"') from error
    except (pa.ArrowException, *WRONG) as error:
        raise SqlError("XX001", f'"{name}" is damaged: {error}') from error

"""JSON documents that say themselves whether they are what was written.

    {"format": 2, "sha256": "<64 digits, of the bytes that follow>", "content": <JSON>}

Owns that form. The checksum finds what storage lost or somebody edited; against who can compute one himself it is of no
use, and the folder's permissions are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa

from catalog.errors import SqlError
from executor.commit.files import disk_error

#: What reading a document raises that is not what was written.
WRONG: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

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
            raise ValueError("its checksum is another one")
        return _FORMAT, document["content"]


@contextmanager
def as_written(name: str) -> Iterator[None]:
    """Raises XX001 where what is read is not what was written, or is missing, and 58030 where nobody can tell."""
    try:
        yield
    except FileNotFoundError as error:
        raise SqlError("XX001", f'"{name}" is missing') from error
    except OSError as error:
        if error.errno is None:  # it is the file that is wrong
            raise SqlError("XX001", f'"{name}" is not what was written: {error}') from error
        raise disk_error(error, f'read "{name}"') from error
    except (pa.ArrowException, *WRONG) as error:
        raise SqlError("XX001", f'"{name}" is not what was written: {error}') from error


def require_types(item: Any, known: Collection[type]) -> None:
    """Raises TypeError where a field of a struct is not of its type; and in it, where its class is ``known``."""
    hints = get_type_hints(type(item))
    for name in item.__struct_fields__:
        if not _fits(getattr(item, name), hints[name], known):
            raise TypeError(f"{name} of {type(item).__name__} is of another type")


def _fits(value: Any, kind: Any, known: Collection[type]) -> bool:
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return len(value) == len(kinds) and all(
            _fits(part, each, known) for part, each in zip(value, kinds, strict=True)
        )
    if arguments:
        return not isinstance(kind, UnionType) or any(_fits(value, each, known) for each in arguments)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    if type(value) in known:
        require_types(value, known)
    return True

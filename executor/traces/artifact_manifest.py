"""The manifest of an artifact: what says of files that they are a query's or a view's state, from which another server
can continue.

    {"format": n, "sha256": "<64 digits, of the content>", "<kind>": {...}}

Owns: this form, and how a manifest names a file. The content's checks are its reader's: the checksum does not protect
against forgery.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from catalog.values.errors import SqlError
from executor.commit.files import read_document
from executor.traces.parquet import StoredFile

#: The name of the file in an artifact's folder.
MANIFEST: Final = "manifest.json"
#: The format in which each kind is written. All earlier ones are read.
_FORMATS: Final = {"query": 1, "view": 2}


def digest(content: Any) -> str:
    """The checksum of a JSON document."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def encode_manifest(kind: str, content: Any) -> bytes:
    """A manifest as its file has it; ``kind`` is the key of the content."""
    document = {"format": _FORMATS[kind], "sha256": digest(content), kind: content}
    return json.dumps(document, separators=(",", ":")).encode()


def read_manifest(path: Path, kind: str, what: str) -> Any:
    """The content of a manifest. Raises 0A000 for a format of a later version, where the message says of ``what``;
    OSError; and what reading a damaged document raises (``executor.traces.checked.WRONG``)."""
    document = json.loads(read_document(path))
    if document["format"] not in range(1, _FORMATS[kind] + 1):
        raise SqlError("0A000", f"format {document['format']} of {what} is not supported")
    if document["sha256"] != digest(document[kind]):
        raise ValueError("its checksum does not match")
    return document[kind]


def encode_file(file: StoredFile) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"name": file.name, "size": file.size, "crc32": file.crc}


def decode_file(entry: Any) -> StoredFile:
    """What ``encode_file`` made."""
    return StoredFile(entry["name"], entry["size"], entry["crc32"])

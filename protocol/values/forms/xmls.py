"""xml: well-formed text in both formats; the output omits a declaration that only states version 1.0."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.forms.xmls import shown_xml
from catalog.values.types import SqlType
from protocol.compute import pc
from protocol.utf8 import decode_utf8
from protocol.values.codec import Codec
from protocol.values.forms.form_codec import formed_codec

_PLAIN: Final = formed_codec("xml", {"xml": (lambda text: shown_xml(text).encode(), decode_utf8)})


def _text(values: pa.Array, type_: SqlType, timezone: str) -> pa.Array:
    declared = pc.starts_with(values, "<?xml")
    if not pc.any(declared).as_py():
        return values
    return pa.array([None if text is None else shown_xml(text) for text in values.to_pylist()], pa.string())


CODECS: Final[dict[str, Codec]] = {"xml": replace(_PLAIN, text=_text)}

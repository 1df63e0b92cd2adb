"""Elements of arrays in text: in double quotes where they must be, NULL for NULL."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from protocol.compute import constant, pc

_NEEDS_QUOTES: Final = r'^$|^(?i:null)$|[{}%s"\\ \t\n\v\f\r]'


def quoted(texts: pa.Array, delimiter: str = ",") -> pa.Array:
    """A column's texts as an array's text shows them."""
    unusual = pc.match_substring_regex(texts, _NEEDS_QUOTES % delimiter)
    if pc.any(unusual).as_py():
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.if_else(
            unusual, pc.binary_join_element_wise(constant('"'), escaped, constant('"'), constant("")), texts
        )
    return texts.fill_null(constant("NULL"))

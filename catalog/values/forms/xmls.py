"""xml: a well-formed text (xml.c), kept as written.

Owns: the check with Expat that a text is a document or content (text that may be within an element), and the output,
which omits the declaration unless it says more than version 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from xml.parsers import expat

from catalog.values.errors import SqlError, unsupported

_BLANK: Final = r"[ \t\r\n]"
_DECLARATION: Final = re.compile(
    rf"<\?xml{_BLANK}+version{_BLANK}*={_BLANK}*(?P<version>'[^']*'|\"[^\"]*\")"
    rf"(?:{_BLANK}+encoding{_BLANK}*={_BLANK}*(?P<encoding>'[^']*'|\"[^\"]*\"))?"
    rf"(?:{_BLANK}+standalone{_BLANK}*={_BLANK}*(?P<alone>'yes'|'no'|\"yes\"|\"no\"))?{_BLANK}*\?>",
    re.ASCII,
)
#: A processing instruction's name must not begin with xml.
_BEGINS: Final = re.compile(r"<\?xml(?![\w.:\-·])")
#: Text allowed before a document type: blanks, comments and processing instructions.
_BEFORE_TYPE: Final = re.compile(r"(?:[ \t\r\n]+|<!--(?:(?!--).)*-->|<\?(?:(?!\?>).)*\?>)*<!DOCTYPE", re.DOTALL)


def read_xml(text: str) -> str:
    """A text of content, or of a document if it has a document type. Raises 2200N, and 0A000 for another encoding."""
    declared = _DECLARATION.match(text)
    if declared is None and _BEGINS.match(text):
        raise SqlError("2200N", "invalid XML content: invalid XML declaration")
    body = text[declared.end() :] if declared is not None else text
    encoding = declared["encoding"] if declared is not None else None
    if encoding and encoding[1:-1].lower() not in ("utf-8", "utf8") and not text.isascii():
        raise unsupported(f"xml in the encoding {encoding[1:-1]}", "Send it in UTF-8.")
    _check(body if _BEFORE_TYPE.match(body) else f"<content>{body}</content>")
    return text


def _check(document: str) -> None:
    parser = expat.ParserCreate("UTF-8")
    try:
        parser.Parse(document.encode(), True)
    except expat.ExpatError as error:
        raise SqlError("2200N", "invalid XML content", expat.ErrorString(error.code)) from None


def shown_xml(text: str) -> str:
    """The output of xml_out()."""
    declared = _DECLARATION.match(text)
    if declared is None:
        return text
    version, alone, rest = declared["version"][1:-1], declared["alone"], text[declared.end() :]
    if version == "1.0" and alone is None:
        return rest.removeprefix("\n")
    return f'<?xml version="{version}"' + (f' standalone="{alone[1:-1]}"' if alone else "") + f"?>{rest}"


READERS: Final[dict[str, Callable[[str], str]]] = {"xml": read_xml}

"""Conversions of texts to octets in other encodings than UTF8, normal forms, and escapes, as functions of the engine.

Owns: ``FUNCTIONS``. The encodings are those with one octet per character, for which Python's codecs and PostgreSQL's
tables agree; others raise 0A000. https://www.postgresql.org/docs/15/multibyte.html
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final, Literal

from catalog.postgres import rows
from catalog.values.errors import SqlError, unsupported
from executor.embedded.functions.batches import Functions
from executor.embedded.functions.texts.bytea import as_text

_UTF8: Final = "UTF8"
#: The parts of ISO 8859 for LATIN1 to LATIN10, and the code pages of Windows.
_LATIN: Final = (1, 2, 3, 4, 9, 10, 13, 14, 15, 16)
_PAGES: Final = (866, 874, *range(1250, 1259))
#: Python's codecs, by PostgreSQL's names of the encodings.
_CODECS: Final = {
    _UTF8: "utf-8",
    **{f"LATIN{number}": f"iso8859-{part}" for number, part in enumerate(_LATIN, 1)},
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in _PAGES},
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
}
#: Other names of the encodings (pg_encname_tbl), with letters and digits only.
_ALIASES: Final = {
    "unicode": _UTF8,
    **{f"iso8859{part}": f"LATIN{number}" for number, part in enumerate(_LATIN, 1)},
    **{f"windows{page}": f"WIN{page}" for page in _PAGES},
    **dict.fromkeys(("tcvn", "tcvn5712", "abc", "vscii"), "WIN1258"),
    "alt": "WIN866",
    "win": "WIN1251",
    "koi8": "KOI8R",
}
_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: Final[dict[str, _Form]] = {"NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}
_HINT: Final = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."
_ESCAPE: Final = re.compile(r"\\(?:(\\)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4}))|(\\)")


@cache
def _known(name: str, role: str) -> str:
    """PostgreSQL's own name of an encoding. Raises 22023 and 0A000."""
    cleaned = re.sub("[^a-z0-9]", "", name.lower())
    own = {re.sub("[^a-z0-9]", "", str(row["name"]).lower()): str(row["name"]) for row in rows("encodings")}
    found = own.get(cleaned) or _ALIASES.get(cleaned)
    if found is None:
        raise SqlError("22023", f'invalid {role} encoding name "{name}"')
    if found not in _CODECS:
        raise unsupported(f"the encoding {found}", "Use UTF8, or one of one octet a character.")
    return found


def _decoded(data: bytes, encoding: str) -> str:
    """The text of octets. Raises 22021 and 22P05."""
    name = _known(encoding, "source")
    try:
        found = data.decode(_CODECS[name])
    except UnicodeDecodeError as error:
        wrong = f"0x{data[error.start]:02x}"
        message = f'character with byte sequence {wrong} in encoding "{name}" has no equivalent in encoding "UTF8"'
        raise SqlError("22P05", message) from None
    if "\0" in found:
        raise SqlError("22021", f'invalid byte sequence for encoding "{name}": 0x00')
    return found


def _encoded(text: str, encoding: str) -> bytes:
    """The octets of a text. Raises 22P05."""
    name = _known(encoding, "destination")
    try:
        return text.encode(_CODECS[name])
    except UnicodeEncodeError as error:
        wrong = " ".join(f"0x{octet:02x}" for octet in text[error.start].encode())
        message = f'character with byte sequence {wrong} in encoding "UTF8" has no equivalent in encoding "{name}"'
        raise SqlError("22P05", message) from None


def _converted(data: bytes, source: str, target: str) -> bytes:
    """Octets converted to another encoding. Raises 42883 if PostgreSQL has no direct conversion, and 0A000 if only
    PostgreSQL has one."""
    pair = _known(source, "source"), _known(target, "destination")
    if _UTF8 not in pair and pair[0] != pair[1]:
        names = {row["encoding"]: row["name"] for row in rows("encodings")}
        known = {(names.get(row["conforencoding"]), names.get(row["contoencoding"])) for row in rows("pg_conversion")}
        if pair in known:
            raise unsupported(f"a conversion from {pair[0]} to {pair[1]}", "Convert to UTF8 first.")
        message = f'default conversion function for encoding "{pair[0]}" to "{pair[1]}" does not exist'
        raise SqlError("42883", message)
    return _encoded(as_text(data) if pair[0] == _UTF8 else _decoded(data, source), target)


def _form(name: str) -> _Form:
    found = _FORMS.get(name.upper())
    if found is None:
        raise SqlError("22023", f"invalid normalization form: {name}")
    return found


def _unescaped(text: str) -> str:
    """The result of unistr(). Raises 42601."""
    codes: list[str] = []

    def character(match: re.Match[str]) -> str:
        if match[6]:
            raise SqlError("42601", "invalid Unicode escape", hint=_HINT)
        if match[1]:
            return "\\"
        code = int(match[2] or match[3] or match[4] or match[5], 16)
        if not 0 < code <= 0x10FFFF:
            raise SqlError("22023", f"invalid Unicode code point: {code:04X}")
        codes.append(chr(code))
        return chr(code)

    found = _ESCAPE.sub(character, text)
    if not any(0xD800 <= ord(code) < 0xE000 for code in codes):
        return found
    try:
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SqlError("42601", "invalid Unicode surrogate pair") from None


FUNCTIONS: Final[Functions] = {
    "octets_decoded": (_decoded, "VARCHAR"),
    "octets_encoded": (_encoded, "BLOB"),
    "octets_converted": (_converted, "BLOB"),
    "text_normalized": (lambda text, form: unicodedata.normalize(_form(form), text), "VARCHAR"),
    "text_is_normalized": (lambda text, form: unicodedata.is_normalized(_form(form), text), "BOOLEAN"),
    "text_unescaped": (_unescaped, "VARCHAR"),
}

"""PostgreSQL's encodings: their names, and Python's codecs for the same characters.

https://www.postgresql.org/docs/15/multibyte.html
"""

from __future__ import annotations

import re
from typing import Final

UTF8: Final = "UTF8"
#: Encodings with one byte per character, and those with several in which no ASCII byte is part of another character.
PLAIN: Final = {
    UTF8: "utf-8",
    "SQL_ASCII": "utf-8",  # bytes without conversion
    **{f"LATIN{number}": f"iso8859_{part}" for number, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{f"ISO_8859_{part}": f"iso8859_{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8_r",
    "KOI8U": "koi8_u",
    "EUC_CN": "gb2312",
    "EUC_JP": "euc_jp",
    "EUC_KR": "euc_kr",
    "EUC_JIS_2004": "euc_jis_2004",
}
#: Encodings in which an ASCII byte may be a part of another character.
_MIXED: Final = {
    "BIG5": "cp950",
    "GB18030": "gb18030",
    "GBK": "gbk",
    "SJIS": "cp932",
    "UHC": "cp949",
}
#: Those for which Python has a codec that keeps ASCII unchanged.
CODECS: Final = PLAIN | _MIXED
_WITHOUT_CODEC: Final = ("EUC_TW", "JOHAB", "MULE_INTERNAL", "SHIFT_JIS_2004")
_ALIASES: Final = {
    **{f"iso8859{part}": f"LATIN{index}" for index, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{f"windows{page}": f"WIN{page}" for page in (866, 874, *range(1250, 1259))},
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "WIN1258"),
    **dict.fromkeys(("mskanji", "shiftjis", "win932", "windows932"), "SJIS"),
    **dict.fromkeys(("win936", "windows936"), "GBK"),
    **dict.fromkeys(("win949", "windows949"), "UHC"),
    **dict.fromkeys(("win950", "windows950"), "BIG5"),
    "alt": "WIN866",
    "koi8": "KOI8R",
    "unicode": UTF8,
    "win": "WIN1251",
}


def _plain(name: str) -> str:
    """The letters and digits of a name; only these are significant."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


_NAMES: Final = {_plain(name): name for name in (*CODECS, *_WITHOUT_CODEC)} | _ALIASES


def encoding_named(name: str) -> str | None:
    """PostgreSQL's encoding with a name in one of its spellings; None if there is none."""
    return _NAMES.get(_plain(name))

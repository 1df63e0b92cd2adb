"""money: amounts in cents, with the input and output of a locale without currency settings (cash.c).

Owns: one value's input and output. ``protocol.values.numbers.money`` converts columns.
"""

from __future__ import annotations

import re
from typing import Final

from catalog.values.errors import invalid_text, out_of_range

_BLANKS: Final = "[ \t\n\v\f\r]*"
_INPUT: Final = re.compile(
    rf"{_BLANKS}\$?{_BLANKS}(?P<sign>[-(+]?){_BLANKS}\$?{_BLANKS}"
    r"(?P<whole>[0-9,]*)(?:\.(?P<decimals>(?:,*[0-9]){0,2},*)(?P<rest>[0-9]*))?(?P<tail>[ \t\n\v\f\r)\-+$]*)",
    re.ASCII,
)
LIMIT: Final = 1 << 63
_MANY: Final = 20  # more digits than money can hold


def read_money(text: str) -> int:
    """An amount's cents. Raises 22P02 and 22003."""
    found = _INPUT.fullmatch(text)
    if found is None:
        raise invalid_text("money", text)
    decimals, rest = (found["decimals"] or "").replace(",", ""), found["rest"] or ""
    digits = (found["whole"].replace(",", "") + decimals.ljust(2, "0")).lstrip("0")
    cents = (int(digits or "0") if len(digits) < _MANY else 2 * LIMIT) + (rest[:1] >= "5")
    if found["sign"] in ("-", "(") or "-" in found["tail"]:
        cents = -cents
    if not -LIMIT <= cents < LIMIT:
        raise out_of_range(f'value "{text}" is out of range for type money')
    return cents


def money_text(cents: int) -> str:
    """An amount as text: -$1,234.50."""
    dollars, rest = divmod(abs(cents), 100)
    return f"{'-' * (cents < 0)}${dollars:,}.{rest:02}"

"""to_number(): reads a text by a pattern, as a function of the engine (formatting.c, NUM_numpart_from_char).

Owns: ``FUNCTIONS``. Each character of the pattern consumes one of the text or none; characters other than digits, signs
and points are skipped where one of these is expected.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

from catalog.values.errors import SqlError
from executor.embedded.functions.batches import Functions
from executor.embedded.functions.numbers.number_patterns import Item, Shape, number_shape

_DATA: Final = "0123456789.,+-"
_EXACT: Final = Context(prec=2000)
#: The most digits that the engine's type keeps.
_BEFORE, _BEHIND = 20, 18


class _Reader:
    """Reads a text by a pattern, octet by octet; only skipped characters are handled whole."""

    def __init__(self, text: str, shape: Shape) -> None:
        self.text, self.shape = text.encode().decode("latin-1"), shape
        self.place = self.before = self.behind = 0
        self.sign, self.digits, self.point = " ", "", False

    def at(self) -> str:
        return self.text[self.place : self.place + 1]

    def is_done(self) -> bool:
        return self.place >= len(self.text)

    def skip(self, count: int) -> None:
        """Skips characters that belong to no number."""
        while count and self.at() and self.at() not in _DATA:
            self.character()
            count -= 1

    def character(self) -> None:
        """Skips one character."""
        octet = ord(self.at())
        self.place += 1 + (octet >= 0xC0) + (octet >= 0xE0) + (octet >= 0xF0)

    def item(self, item: Item) -> None:
        """Reads one word of the pattern, or another character."""
        match item.name:
            case "0" | "9" | "." | "D":
                self.number(item.name in "09")
                self.place += 1
            case "," | "G":
                self.place += self.shape.fills and self.at() == ","
            case "L":
                self.skip(1)
            case "TH":
                self.skip(0 if self.shape.has_point else 2)
            case "MI" | "PL" | "SG":
                wanted = {"MI": "-", "PL": "+", "SG": "+-"}[item.name]
                if self.at() in wanted:
                    self.sign = self.at()
                    self.place += 1
                else:
                    self.skip(1)
            case "":
                self.character()

    def number(self, is_digit: bool) -> None:
        """Reads a digit or the point, with a sign on either side."""
        if self.is_done():
            return
        self.place += self.at() == " "
        if self.is_done():
            return
        if self.sign == " " and is_digit and not self.before + self.behind:
            self.sign_before()
        if self.is_done():
            return
        is_read = False
        if self.at() in "0123456789":
            if self.point and self.behind == self.shape.behind:
                return
            self.digits, is_read = self.digits + self.at(), True
            self.behind += self.point
            self.before += not self.point
        elif self.shape.has_point and not self.point and self.at() == ".":
            self.digits, self.point, is_read = f"{self.digits}.", True, True
        if self.sign == " " and self.before + self.behind:
            self.sign_behind(is_read)

    def sign_before(self) -> None:
        """Reads a sign before the number; angle brackets are a sign, too."""
        signs = "+-<" if self.shape.brackets else "+-"
        if self.at() in signs:
            self.sign = "-" if self.at() == "<" else self.at()
            self.place += 1

    def sign_behind(self, is_read: bool) -> None:
        """Reads a sign after the number: S directly after the last digit, others anywhere after it."""
        if self.shape.signed:
            following = self.text[self.place + 1 : self.place + 2]
            if is_read and following and following in "+-":
                self.sign, self.place = following, self.place + 1
        elif not is_read and (self.shape.plus or self.shape.minus) and self.at() in "+-":
            self.sign = self.at()


def _read(text: str, pattern: str) -> Decimal | None:
    if not pattern:
        return None
    shape = number_shape(pattern)
    for name, is_asked in (("EEEE", shape.scientific), ("RN", shape.roman)):
        if is_asked:
            raise SqlError("0A000", f'"{name}" not supported for input')
    reader = _Reader(text, shape)
    for item in shape.items:
        if reader.is_done():
            break
        reader.item(item)
    digits = reader.digits.removesuffix(".")
    if not digits:
        raise SqlError("22P02", f'invalid input syntax for type numeric: "{reader.sign}"')
    value = Decimal(f"{reader.sign}{digits}".strip())
    whole = shape.before + shape.shift
    if value and value.adjusted() >= whole:
        limit = f"10^{whole}" if whole else "1"
        detail = (
            f"A field with precision {whole + reader.behind}, scale {reader.behind} must round to an absolute value"
        )
        raise SqlError("22003", "numeric field overflow", f"{detail} less than {limit}.")
    if value.adjusted() - shape.shift >= _BEFORE or reader.behind + shape.shift > _BEHIND:
        raise SqlError("22003", "value overflows numeric format", f"At most {_BEHIND} decimals are kept.")
    return value.scaleb(-shape.shift, _EXACT)


FUNCTIONS: Final[Functions] = {"num_read": (_read, "DECIMAL(38, 18)")}

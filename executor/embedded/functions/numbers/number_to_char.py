"""to_char() of numbers for patterns that the engine's SQL cannot write, as a function (formatting.c, NUM_processor).

Owns: ``FUNCTIONS``. Numbers arrive as texts with the name of their type; floating point numbers are rounded to the
type's digits.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.embedded.functions.batches import Functions
from executor.embedded.functions.numbers.number_patterns import Item, Shape, number_shape

_EXACT: Final = Context(prec=2000, rounding=ROUND_HALF_UP)
_ROMAN: Final = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X")),
    *((9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_ROMAN_WIDTH: Final = 15
#: The end of a number's digits; a pattern with further digits ends the text there.
_END: Final = "\0"
#: The digits that are exact in floating point types.
_DIGITS: Final = {"float4": 6, "float8": 15}
_INTEGERS: Final = range(-(2**31), 2**31)


def shown(number: str, pattern: str, kind: str) -> str:
    """to_char() of a number. Raises 42601, 22003 and 22P02."""
    shape = number_shape(pattern)
    if shape.roman:
        return _Writer(_roman_shape(shape), _roman(number, kind), "", 0).written()
    if shape.scientific:
        return _scientific(number, shape, kind)
    value, behind = _floating(number, shape, kind) if kind in _DIGITS else (_exact(number, shape, kind), shape.behind)
    sign, digits = ("-", value[1:]) if value.startswith("-") else ("+", value)
    before = shape.before + shape.shift
    whole = len(digits.partition(".")[0])
    if whole > before:
        digits = "#" * before + "." + "#" * behind
    return _Writer(replace(shape, before=before, behind=behind), digits, sign, max(before - whole, 0)).written()


def _exact(number: str, shape: Shape, kind: str) -> str:
    """The number with the pattern's number of decimals."""
    value = Decimal(number).scaleb(shape.shift, _EXACT)
    if kind == "int4" and shape.shift:
        value = Decimal((int(value) - _INTEGERS[0]) % 2**32 + _INTEGERS[0])
    if kind == "int8" and not -(2**63) <= value < 2**63:
        raise SqlError("22003", "bigint out of range")
    rounded = value.quantize(Decimal(1).scaleb(-shape.behind), context=_EXACT)
    return f"{rounded if rounded else abs(rounded):f}"


def _floating(number: str, shape: Shape, kind: str) -> tuple[str, int]:
    """The number with at most its type's exact digits, and how many of them are after the point."""
    value = _float(number, kind)
    if shape.shift:
        value *= 10.0**shape.shift
        value = _single(value) if kind == "float4" else value
    certain = _DIGITS[kind] - len(_fixed(abs(value), 0))
    behind = min(shape.behind, max(certain, 0))
    return _fixed(value, behind), behind


def _fixed(value: float, behind: int) -> str:
    if math.isfinite(value):
        return f"{value:.{behind}f}"
    return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"


def _float(number: str, kind: str) -> float:
    return _single(float(number)) if kind == "float4" else float(number)


def _single(value: float) -> float:
    """The nearest float4."""
    try:
        (found,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(found)


def _scientific(number: str, shape: Shape, kind: str) -> str:
    if kind in (*_DIGITS, "int4"):
        value = _float(number, kind)
        if not math.isfinite(value):
            return " " + "#" * shape.before + "." + "#" * (shape.behind + 4)
        return f"{value: .{shape.behind}e}"
    exact = Decimal(number)
    exponent = exact.adjusted() if exact else 0
    mantissa = exact.scaleb(-exponent, _EXACT).quantize(Decimal(1).scaleb(-shape.behind), context=_EXACT)
    return f"{'' if mantissa < 0 else ' '}{mantissa if mantissa else abs(mantissa):f}e{exponent:+03d}"


def _roman_shape(shape: Shape) -> Shape:
    """The format of Roman numerals, which depends on the number only."""
    return Shape(shape.items, fills=shape.fills, roman=True)


def _roman(number: str, kind: str) -> str:
    if kind in _DIGITS and not abs(float(number)) < _INTEGERS[-1]:
        return "#" * _ROMAN_WIDTH
    value = round(float(number)) if kind in _DIGITS else int(Decimal(number).quantize(Decimal(1), context=_EXACT))
    if value not in _INTEGERS:
        raise SqlError("22003", "integer out of range")
    if not 0 < value < 4000:
        return "#" * _ROMAN_WIDTH
    found = ""
    for size, letters in _ROMAN:
        times, value = divmod(value, size)
        found += letters * times
    return found


class _Writer:
    """Writes a number in a pattern; ``spaces`` is how many more digits the pattern has than the number."""

    def __init__(self, shape: Shape, digits: str, sign: str, spaces: int) -> None:
        self.shape, self.digits, self.sign, self.spaces = shape, digits, sign, spaces
        self.out: list[str] = []
        self.place = self.current = 0
        self.in_number = False
        self.brackets = shape.brackets and (sign == "-" or shape.fills or shape.plus or shape.minus)
        self.side = shape.sign_side
        self.sign_written = self.prepare_sign()
        self.zero_start = shape.zero_start - 1 if shape.zero_start else 0
        self.relevant = self.last_relevant()
        self.count = shape.behind + shape.before - 1 + (not self.sign_written and spaces == 0)

    def prepare_sign(self) -> bool:
        """Decides whether no sign is written before the number."""
        shape = self.shape
        if shape.plus or shape.minus:
            return shape.minus
        if self.side < 0 and shape.before == shape.lead and not shape.roman:
            self.side = 1
        return self.sign == "+" and not shape.fills and not shape.signed

    def last_relevant(self) -> int | None:
        """The place of the last digit that FM keeps."""
        point = self.digits.find(".")
        if self.shape.fills or not self.shape.has_point or point < 0:
            return None
        kept = max(point, len(self.digits.rstrip("0")) - 1)
        if self.shape.zero_end > self.spaces:
            kept = max(kept, min(len(self.digits) - 1, self.shape.zero_end - self.spaces))
        return kept

    def at(self) -> str:
        return self.digits[self.place : self.place + 1]

    def is_bare_point(self) -> bool:
        """Whether FM removes all decimals."""
        return self.relevant is not None and self.digits[self.relevant : self.relevant + 1] == "."

    def leads_with_zero(self) -> bool:
        """Whether this is the zero before the point of a number below 1, which is written as a blank: 0.1 is .1."""
        return not self.shape.has_zero and self.place == 0 and self.digits[:1] == "0" and self.shape.behind != 0

    def written(self) -> str:
        """The whole text."""
        for item in self.shape.items:
            self.item(item)
        return "".join(self.out).partition(_END)[0]

    def put(self, text: str) -> None:
        self.out.append(text or _END)

    def blank(self) -> None:
        self.out += [" "] * self.shape.fills

    def either(self, text: str, is_written: bool) -> None:
        """A text, or a blank."""
        if is_written:
            self.put(text)
        else:
            self.blank()

    def item(self, item: Item) -> None:
        """Writes a word of the pattern, or another character."""
        match item.name:
            case "9" | "0" | "." | "D":
                if not self.shape.roman:
                    self.number(item.name)
            case "," | "G":
                self.either(",", self.in_number)
            case "L":
                self.put(" ")
            case "RN":
                roman = self.digits.lower() if item.text == "rn" else self.digits
                self.put(roman.rjust(_ROMAN_WIDTH * self.shape.fills))
            case "TH":
                if not (self.shape.roman or self.digits[:1] == "#" or self.sign == "-" or self.shape.has_point):
                    self.put(_ordinal(self.digits) if item.text == "TH" else _ordinal(self.digits).lower())
            case "MI":
                self.either("-", self.sign == "-")
            case "PL":
                self.either("+", self.sign == "+")
            case "SG":
                self.put(self.sign)
            case "":
                self.put(item.text)

    def number(self, word: str) -> None:
        """Writes a digit or the point, with the sign before or after it if due."""
        self.in_number = False
        is_begun = self.current >= self.spaces or (self.shape.has_zero and self.zero_start == self.current)
        if not self.sign_written and is_begun and (not self.leads_with_zero() or self.is_bare_point()):
            self.sign_before()
        if self.current < self.spaces:
            if self.shape.has_zero and self.zero_start <= self.current:
                self.put("0")
                self.in_number = True
            else:
                self.blank()
        else:
            self.digit(word)
        end = self.count + (self.spaces > 0) + self.shape.has_point
        if self.relevant is not None and self.relevant == self.place:
            end = self.current
        if self.current + 1 == end:
            self.sign_behind()
        self.current += 1

    def digit(self, word: str) -> None:
        if self.at() == ".":
            self.put(".")
        elif self.relevant is not None and self.place > self.relevant and word != "0":
            pass
        elif self.leads_with_zero():
            if self.shape.fills:
                self.put(" ")
            elif self.is_bare_point():
                self.put("0")
        else:
            self.put(self.at())
            self.in_number = True
        self.place += self.place < len(self.digits)

    def sign_before(self) -> None:
        if self.shape.signed:
            if self.side < 0:
                self.put(self.sign)
                self.sign_written = True
            return
        if self.brackets:
            self.put(" " if self.sign == "+" else "<")
        elif self.sign == "+":
            self.blank()
        else:
            self.put(self.sign)
        self.sign_written = True

    def sign_behind(self) -> None:
        if self.sign_written and self.brackets:
            self.put(" " if self.sign == "+" else ">")
        elif self.shape.signed and self.side > 0:
            self.put(self.sign)


def _ordinal(digits: str) -> str:
    """The ordinal suffix of a number. Raises 22P02."""
    if not digits[-1:].isdigit():
        raise SqlError("22P02", f'"{digits}" is not a number')
    teens = digits[-2:-1] == "1"
    return "TH" if teens else {"1": "ST", "2": "ND", "3": "RD"}.get(digits[-1], "TH")


FUNCTIONS: Final[Functions] = {"num_shown": (shown, "VARCHAR")}

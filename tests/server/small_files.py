"""Small CSV and JSON files, one for each detail on which readers of these formats differ, made from short lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct


class SmallFile(Struct, frozen=True):
    """A file and the columns for it; ``told`` is the SQLSTATE if PostgreSQL cannot be asked."""

    name: str
    format: str
    data: bytes
    columns: str
    header: bool = False
    delimiter: str = ","
    null: str = ""
    told: str = ""

    @property
    def options(self) -> str:
        """The options of the foreign table."""
        header = ", header 'true'" if self.header else ""
        return f"format '{self.format}', delimiter '{self.delimiter}', null '{self.null}'{header}"


_TWO: Final = "a int, b text"
_CSV: Final[dict[str, bytes]] = {
    "plain": b"1,a\n2,b\n",
    "no end of the last line": b"1,a\n2,b",
    "nothing": b"",
    "only an end of line": b"\n",
    "blank line within": b"1,a\n\n2,b\n",
    "blank line at the end": b"1,a\n\n",
    "line of blanks": b"1,a\n  \n",
    "null": b"1,\n,b\n",
    "quoted null": b'1,""\n',
    "quoted null of a number": b'"",b\n',
    "short line": b"1,a\n2\n3,c\n",
    "long line": b"1,a\n2,b,c\n",
    "trailing delimiter": b"1,a,\n",
    "quoted": b'1,"a,b"\n',
    "quoted line break": b'1,"a\nb"\n2,c\n',
    "quoted CRLF": b'1,"a\r\nb"\n2,c\n',
    "doubled quotes": b'1,"a""b"\n2,""""\n',
    "quotes within": b'2,a"b"c\n',
    "quotes first": b'3,"x"y\n',
    "quotes last": b'3,x"y"\n',
    "several quoted parts": b'3,"x"y"z"\n',
    "quoted delimiter within": b'3,x"y,z"w\n',
    "blank before a quote": b'3, "x"\n',
    "blank behind a quote": b'3,"x" \n',
    "unterminated": b'1,"abc\n2,d\n',
    "unterminated within": b'1,a"bc\n2,d\n',
    "unterminated by a doubled quote": b'1,"abc""\n2,d\n',
    "backslash": b"1,a\\nb\n2,\\\\\n",
    "backslash and quote": b'1,"a\\"\n2,b\n',
    "end marker": b"1,a\n\\.\n2,b\n",
    "quoted end marker": b'1,a\n"\\."\n',
    "CRLF": b"1,a\r\n2,b\r\n",
    "CR": b"1,a\r2,b\r",
    "CRLF then LF": b"1,a\r\n2,b\n",
    "LF then CRLF": b"1,a\n2,b\r\n",
    "CR within": b"1,a\rb\n2,c\n",
    "latin1": b"1,caf\xe9\n",
    "cut off character": b"1,caf\xc3\n",
    "overlong character": b"1,\xc0\x80\n",
    "surrogate": b"1,\xed\xa0\x80\n",
    "beyond Unicode": b"1,\xf4\x90\x80\x80\n",
    "latin1 in a number": b"\xe9,a\n",
    "zero byte": b"1,a\x00b\n",
    "control characters": b"1,\x01\x1f\x7f\n",
    "UTF-8": "1,é漢😀\n".encode(),
    "byte order mark": b"\xef\xbb\xbf1,a\n",
    "blanks around a number": b" 1 ,a\n",
    "blanks around a text": b"1, a \n",
    "number with a point": b"1.0,a\n",
    "hexadecimal": b"0x10,a\n",
    "signs": b"+1,a\n-1,b\n",
    "too large": b"2147483648,a\n",
    "tab as text": b"1\ta\n",
}
_TYPED: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("t", "TRUE", "yes", "of", "on", "0", "2", "tr", "o"),
    "double precision": ("1.5", "1e400", "1e-400", "NaN", "-Infinity", "inf", ".5", "1_0"),
    "numeric(6,2)": ("1.005", "-1.005", "9999.994", "9999.995", "1e2", "12345"),
    "date": ("2024-02-29", "2023-02-29", "20240101", "1/2/2024", "Jan 2 2024"),
    "timestamp": ("2024-01-01", "2024-01-01T10:00:00.1234567", "2024-01-01 10:00+02"),
    "timestamptz": ("2024-01-01 10:00", "2024-01-01 10:00+02", "2024-01-01T10:00:00Z"),
    "uuid": ("00000000-0000-0000-0000-00000000000A", "{0000000000000000000000000000000a}", "x"),
    "jsonb": ("[1.0]", "{", "1"),
    "bigint": ("9223372036854775807", "9223372036854775808"),
}
_JSON: Final[dict[str, bytes]] = {
    "plain": b'{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n',
    "no end of the last line": b'{"a":1,"b":"x"}',
    "missing and null": b'{"a":1}\n{"b":null}\n{}\n',
    "other keys": b'{"a":1,"c":[1,{"a":5}],"b":"x"}\n',
    "second key": b'{"a":1,"b":"x","b":"y"}\n',
    "second key is null": b'{"a":1,"b":"x","b":null}\n',
    "second other key": b'{"a":1,"c":1,"c":2}\n',
    "escaped key": b'{"\\u0061":1}\n',
    "string for a number": b'{"a":"7"}\n',
    "blanks for a number": b'{"a":" 7 "}\n',
    "point in a number": b'{"a":7.0}\n',
    "exponent": b'{"a":1e2}\n',
    "as many objects as lines": b'{"a":1}{"a":2}\n\n',
    "as many objects as lines, one over two": b'{"a":\n1}{"a":2}\n',
    "line breaks between braces": b'{"a":{}\n,"b":{}\n}\n',
    "too large": b'{"a":2147483648}\n',
    "truth value for a number": b'{"a":true}\n',
    "object for a number": b'{"a":{"x":1}}\n',
    "number for a text": b'{"b":1.50}\n{"b":1e2}\n',
    "truth value for a text": b'{"b":true}\n',
    "object for a text": b'{"b":{"x" : 1,"x":2}}\n',
    "array for a text": b'{"b":[1, 2]}\n',
    "escapes": b'{"b":"a\\n\\t\\"\\\\\\/\\u00e9\\ud83d\\ude00"}\n',
    "UTF-8": '{"b":"é漢😀"}\n'.encode(),
    "high surrogate": b'{"b":"\\ud83d"}\n',
    "low surrogate": b'{"b":"\\udc00"}\n',
    "surrogate and letter": b'{"b":"\\ud83d\\u0041"}\n',
    "surrogate of another key": b'{"c":["\\ud83d"]}\n',
    "U+0000": b'{"b":"a\\u0000b"}\n',
    "U+0000 of another key": b'{"c":"\\u0000"}\n',
    "backslash before u0000": b'{"b":"\\\\u0000"}\n',
    "raw control character": b'{"b":"a\tb"}\n',
    "wrong escape": b'{"b":"\\q"}\n',
    "short escape": b'{"b":"\\u12"}\n',
    "leading zero": b'{"a":01}\n',
    "no digit behind a point": b'{"a":1.}\n',
    "NaN": b'{"c":NaN}\n',
    "trailing comma": b'{"a":1,}\n',
    "single quotes": b"{'a':1}\n",
    "no quotes": b"{a:1}\n",
    "comment": b'{"a":1} // x\n',
    "two objects a line": b'{"a":1} {"a":2}\n',
    "object over two lines": b'{"a":1,\n"b":"x"}\n',
    "cut off": b'{"a":1,"b":"x\n',
    "broken value of another key": b'{"a":1,"c":tru}\n',
    "byte order mark": b'\xef\xbb\xbf{"a":1}\n',
    "no JSON": b"a,b\n",
    "CRLF": b'{"a":1}\r\n{"a":2}\r\n',
    "blanks": b' { "a" : 1 } \n',
    "latin1": b'{"b":"caf\xe9"}\n',
    "latin1 of another key": b'{"a":1,"c":"caf\xe9"}\n',
}
_DOCUMENTS: Final = (
    *(b'{"b":2,"a":1,"a":3}', b"[1,2]", b'"s"', b"5", b"1.50", b"1e2", b"true", b"null", b'"\\u00e9\\n"', b"{}"),
    *(b'{"a": [1, {"b": null}]}', b'"1"', b'"{}"'),
)


def small_files() -> Iterator[SmallFile]:
    """All of them."""
    for name, data in _CSV.items():
        yield SmallFile(f"CSV: {name}", "csv", data, _TWO)
        if b"," in data and len(data) < 12:
            yield SmallFile(f"CSV with a header: {name}", "csv", b"a,b\n" + data, _TWO, header=True)
    for kind, texts in _TYPED.items():
        for text in texts:
            yield SmallFile(f"CSV {kind}: {text}", "csv", f"{text}\n".encode(), f"a {kind}", delimiter=";")
            line = f'{{"a":"{text}"}}\n'.encode()
            if '"' not in text:
                yield SmallFile(f"JSON {kind}: {text}", "json", line, f"a {kind}")
    yield SmallFile("CSV: one column", "csv", b'a\n\n""\n b\n', "b text")
    yield SmallFile("CSV: header alone", "csv", b"a,b", _TWO, header=True)
    yield SmallFile("CSV: header of two lines", "csv", b'a,"b\nc"\n1,x\n', _TWO, header=True)
    yield SmallFile("CSV: other delimiter", "csv", b'1|a,b\n2|"c|d"\n', _TWO, delimiter="|")
    yield SmallFile("CSV: other null", "csv", b'1,NULL\n2,"NULL"\n3,\n', _TWO, null="NULL")
    for name, data in _JSON.items():
        yield SmallFile(f"JSON: {name}", "json", data, _TWO)
    for place, document in enumerate(_DOCUMENTS):
        for kind in ("jsonb", "json", "text"):
            yield SmallFile(f"JSON document as {kind}: {place}", "json", b'{"k":%b}\n' % document, f"k {kind}")
    for value in ("0", "-0.0", "1e-400", "-1E-400", "1e400", "0." + 310 * "0" + "1", "1e-320", "null"):
        lines = b'{"d":1.5,"t":"type-100"}\n{"d":%b,"t":"x"}\n' % value.encode()
        yield SmallFile(f"JSON doubles: {value[:9]}", "json", lines, "d double precision, t text")
    yield SmallFile("JSON: array of records", "json", b'[{"a":1},{"a":2}]\n', _TWO, told="22P04")
    yield SmallFile("JSON: a number", "json", b"1\n", _TWO, told="22P04")
    yield SmallFile("JSON: zero byte", "json", b'{"b":"a\x00b"}\n', _TWO, told="22021")

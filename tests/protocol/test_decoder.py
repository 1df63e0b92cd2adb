"""Bytes in, messages out: for any portions, and for any errors in them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from protocol import messages as m
from protocol.decoder import Decoder, Limits
from tests.protocol.wire import bind, message, request, startup
from tests.rig.sampling import examples

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
FORMATS = st.lists(st.integers(0, 1), max_size=3)
KINDS = st.sampled_from(["S", "P"])

#: Messages with their bytes.
MESSAGES = st.one_of(
    TEXT.map(lambda text: (message("Q", text.encode() + b"\0"), m.Query(text))),
    st.tuples(TEXT, TEXT, st.lists(st.integers(0, 2**32 - 1), max_size=3)).map(
        lambda t: (
            message("P", f"{t[0]}\0{t[1]}\0".encode() + struct.pack(f">h{len(t[2])}I", len(t[2]), *t[2])),
            m.Parse(t[0], t[1], tuple(t[2])),
        )
    ),
    st.tuples(TEXT, TEXT, FORMATS, st.lists(st.none() | st.binary(max_size=9), max_size=3), FORMATS).map(
        lambda t: (bind(*t), m.Bind(t[0], t[1], tuple(t[2]), t[3], tuple(t[4])))
    ),
    st.tuples(KINDS, TEXT).map(lambda t: (message("D", "".join(t).encode() + b"\0"), m.Describe(*t))),
    st.tuples(KINDS, TEXT).map(lambda t: (message("C", "".join(t).encode() + b"\0"), m.Close(*t))),
    st.tuples(TEXT, st.integers(0, 2**31 - 1)).map(
        lambda t: (message("E", t[0].encode() + b"\0" + struct.pack(">i", t[1])), m.Execute(*t))
    ),
    st.binary(max_size=9).map(lambda data: (message("d", data), m.CopyData(data))),
    st.binary(max_size=9).map(lambda data: (message("p", data), m.PasswordMessage(data))),
    TEXT.map(lambda text: (message("f", text.encode() + b"\0"), m.CopyFail(text))),
    st.sampled_from(
        [
            (message("S"), m.Sync()),
            (message("H"), m.Flush()),
            (message("c"), m.CopyDone()),
            (message("X"), m.Terminate()),
            (message("F", b"xyz"), m.FunctionCall(b"xyz")),
        ]
    ),
)


def joined(events: list[m.FrontendMessage]) -> list[m.FrontendMessage]:
    """Messages with consecutive CopyData joined, as their number depends on the portions."""
    result: list[m.FrontendMessage] = []
    for event in events:
        if isinstance(event, m.CopyData) and result and isinstance(result[-1], m.CopyData):
            event = m.CopyData(result.pop().data + event.data)
        result.append(event)
    return result


@settings(max_examples=examples(200))
@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_portions_do_not_matter(items: list[tuple[bytes, m.FrontendMessage]], sizes: list[int]) -> None:
    data = startup(user="me") + b"".join(item[0] for item in items)
    decoder = Decoder()
    events: list[m.FrontendMessage] = []
    turn = 0
    while data:
        size = sizes[turn % len(sizes)]
        turn += 1
        decoder.feed(data[:size])
        data = data[size:]
        events += decoder
    assert events[0] == m.StartupMessage({"user": "me"})
    assert joined(events[1:]) == joined([item[1] for item in items])
    assert not decoder.buffered


def test_consecutive_copy_data_is_one_event() -> None:
    decoder = Decoder(startup=False)
    decoder.feed(message("d", b"a,1\n") * 3 + message("c") + message("d", b"b")[:-1])
    assert list(decoder) == [m.CopyData(b"a,1\n" * 3), m.CopyDone()]
    decoder.feed(b"b")
    assert list(decoder) == [m.CopyData(b"b")]


def test_startup_phase_takes_requests_until_a_startup_message() -> None:
    decoder = Decoder()
    decoder.feed(request(80877103) + request(80877104) + startup(user="a", database="b") + message("S"))
    assert list(decoder) == [
        m.SSLRequest(),
        m.GSSENCRequest(),
        m.StartupMessage({"user": "a", "database": "b"}, (3, 0)),
        m.Sync(),
    ]


def test_cancel_request() -> None:
    decoder = Decoder()
    decoder.feed(request(80877102, 42, -7) + request(80877102, 42, *range(8)))
    assert list(decoder) == [
        m.CancelRequest(42, b"\xff\xff\xff\xf9"),
        m.CancelRequest(42, bytes(byte for number in range(8) for byte in (0, 0, 0, number))),
    ]


def test_another_server() -> None:
    decoder = Decoder()
    decoder.feed(request(80877904, 1, 2) + message("p", b"proof") + message("F", b"question"))
    assert list(decoder) == [
        m.PeerRequest(bytes((0, 0, 0, 1, 0, 0, 0, 2))),
        m.PasswordMessage(b"proof"),
        m.FunctionCall(b"question"),
    ]


def test_newer_minor_version_is_for_the_server_to_negotiate() -> None:
    data = bytearray(startup(user="a"))
    data[7] = 2
    decoder = Decoder()
    decoder.feed(bytes(data))
    assert list(decoder) == [m.StartupMessage({"user": "a"}, (3, 2))]


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (struct.pack(">ihh", 8, 2, 0), "0A000"),
        (struct.pack(">i", 3), "08P01"),
        (struct.pack(">i", 10_001), "08P01"),
        (struct.pack(">ihh", 13, 3, 0) + b"user\0", "08P01"),
        (struct.pack(">ihh", 14, 3, 0) + b"user\0\0", "08P01"),
        (request(80877102, 1), "08P01"),
        (b"GET / HTTP/1.1\r\n", "08P01"),
    ],
)
def test_broken_startup_packets(data: bytes, state: str) -> None:
    decoder = Decoder()
    decoder.feed(data)
    with pytest.raises(SqlError) as caught:
        decoder.next()
    assert caught.value.sqlstate == state


@pytest.mark.parametrize(
    "data",
    [
        b"?",
        message("?"),
        b"Q\0\0\0\3",
        b"Q\xff\xff\xff\xff",
        b"S" + struct.pack(">i", 10_005),
        b"Q" + struct.pack(">i", 105),
    ],
)
def test_broken_frames_end_the_connection(data: bytes) -> None:
    decoder = Decoder(Limits(text=100), startup=False)
    decoder.feed(data)
    with pytest.raises(SqlError) as caught:
        decoder.next()
    assert caught.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    ("data", "kind", "state"),
    [
        (message("Q", b"select \xff\0"), m.Query, "22021"),
        (message("Q", b"select 1"), m.Query, "08P01"),
        (message("Q", b"select 1\0more"), m.Query, "08P01"),
        (message("P", b"\0select 1\0\0\2\0\0\0\0"), m.Parse, "08P01"),
        (message("P", b"\0select 1\0\xff\xff"), m.Parse, "08P01"),
        (message("B", b"\0\0\0\0\0\1\0\0\0\3a"), m.Bind, "08P01"),
        (message("D", b"Xname\0"), m.Describe, "08P01"),
        (message("D"), m.Describe, "08P01"),
        (message("E", b"\0\0\0"), m.Execute, "08P01"),
        (message("S", b"x"), m.Sync, "08P01"),
        (message("c", b"x"), m.CopyDone, "08P01"),
    ],
)
def test_broken_contents_leave_the_stream_usable(data: bytes, kind: type[Any], state: str) -> None:
    decoder = Decoder(startup=False)
    decoder.feed(data + message("H"))
    first, second = decoder
    assert isinstance(first, m.Malformed)
    assert (first.kind, first.error.sqlstate) == (kind, state)
    assert second == m.Flush()


@settings(max_examples=examples(200))
@given(st.binary(max_size=60))
def test_any_bytes_make_messages_or_a_protocol_error(data: bytes) -> None:
    for prefix in (b"", b"Q", b"B\0\0\0\x10", b"P\0\0\0\x0c", b"E\0\0\0\x09"):
        decoder = Decoder(startup=False)
        decoder.feed(prefix + data)
        try:
            events = list(decoder)
        except SqlError as error:
            assert error.sqlstate == "08P01"
        else:
            assert all(isinstance(event, m.FrontendMessage) for event in events)


def test_large_messages_in_small_portions_are_not_copied_over_and_over() -> None:
    decoder = Decoder(startup=False)
    data = message("d", bytes(8 << 20))
    portions = [data[start : start + 4096] for start in range(0, len(data), 4096)]
    for portion in portions[:-1]:
        decoder.feed(portion)
        assert decoder.next() is None
    assert decoder.buffered
    decoder.feed(portions[-1])
    assert decoder.next() == m.CopyData(bytes(8 << 20))

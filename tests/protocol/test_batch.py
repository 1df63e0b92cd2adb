"""A request recognised by its bytes is the batch that the decoder would read, with only other values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from catalog.values.errors import SqlError
from protocol.batch import Batch, Part, batch_of, frame_of, messages_of, parse_of
from protocol.messages import Bind
from tests.server.wire import FLUSH, SYNC, Message, bind, close, describe, execute, frame, parse

VALUES = st.lists(st.binary(max_size=6), min_size=1, max_size=3)


def request(*messages: Message) -> bytes:
    """The bytes of messages."""
    return b"".join(frame(letter, body) for letter, body in messages)


def batch(values: list[bytes | None], parses: bool, describes: bool, formats: list[int], results: list[int]) -> bytes:
    """A driver's batch."""
    name = "" if parses else "ä"
    messages = [bind(values, name, formats=formats, results=results), execute(), SYNC]
    if parses:
        messages.insert(0, parse("SELECT $1, 'ö'", oids=[23]))
    if describes:
        messages.insert(-2, describe("P"))
    return request(*messages)


def read(data: bytes) -> Batch | None:
    """The batch that the decoder finds."""
    try:
        messages = messages_of(data)
    except SqlError:
        return None
    return None if messages is None else batch_of(messages)


FORMATS = st.lists(st.integers(0, 1), max_size=2)


@given(VALUES, VALUES, st.booleans(), st.booleans(), FORMATS, FORMATS, st.data())
def test_a_frame_takes_what_the_decoder_takes(
    values: list[bytes],
    others: list[bytes],
    parses: bool,
    describes: bool,
    formats: list[int],
    results: list[int],
    data: st.DataObject,
) -> None:
    first = batch(list(values), parses, describes, formats, results)
    known = read(first)
    assert known == Batch(known.bind if known else Bind("", "", (), [], ()), parses, describes)
    found = frame_of(first, known)
    assert found is not None
    head, around = found
    assert around.fields(first, len(head)) == tuple(values)
    other = bytearray(data.draw(st.sampled_from([first, batch(list(others), parses, describes, formats, results)])))
    places = st.one_of(
        st.integers(0, len(other) - 1), st.integers(0, len(other) - 1).map(lambda place: place // 2 + 10)
    )
    changes = st.tuples(places, st.one_of(st.integers(0, 8), st.integers(0, 255)))
    for place, byte in data.draw(st.lists(changes, max_size=3)):
        other[place % len(other)] = byte
    like = first[: len(head)] + bytes(other[len(head) :])
    fields = around.fields(like, len(head))
    if fields is not None:
        assert read(like) == replace(known, bind=replace(known.bind, parameters=list(fields)))


@pytest.mark.parametrize(
    "messages",
    [
        [bind(), execute()],
        [bind(), execute(), SYNC, SYNC],
        [bind(), execute(), execute(), SYNC],
        [bind(), execute(limit=1), SYNC],
        [bind(), execute("other"), SYNC],
        [bind(portal="other"), execute(), SYNC],
        [bind(), describe("S"), execute(), SYNC],
        [bind(), FLUSH, execute(), SYNC],
        [bind(), execute(), close("P"), SYNC],
        [parse("SELECT 1", "named"), bind(statement="named"), execute(), SYNC],
        [parse("SELECT 1"), bind(statement="named"), execute(), SYNC],
        [parse("SELECT 1"), SYNC],
        [("Q", b"SELECT 1\0")],
        [],
    ],
)
def test_what_is_no_batch(messages: list[Message]) -> None:
    assert read(request(*messages)) is None


def test_a_rest_or_a_null_or_no_value_is_no_frame() -> None:
    whole = batch([b"1"], False, True, [], [])
    assert read(whole[:-1]) is None
    assert messages_of(whole + b"S") is None
    for values in ([], [None], [b"1", None]):
        data = batch(values, False, True, [], [])
        known = read(data)
        assert known is not None
        assert frame_of(data, known) is None


def bound(message: Message) -> Bind:
    """A Bind as the decoder reads it."""
    read = messages_of(request(message))
    assert read is not None
    assert isinstance(read[0], Bind)
    return read[0]


@given(VALUES, VALUES, FORMATS, FORMATS, st.binary(max_size=4), st.data())
def test_a_part_takes_what_the_decoder_takes(
    values: list[bytes], others: list[bytes], formats: list[int], results: list[int], rest: bytes, data: st.DataObject
) -> None:
    first = bound(bind(list(values), "ä", formats=formats, results=results))
    part = Part.of(first)
    other = request(bind(list(others[: len(values)]), "ä", formats=formats, results=results))
    place = data.draw(st.integers(5, len(other) - 1))
    changed = other[:place] + bytes([data.draw(st.integers(0, 255))]) + other[place + 1 :]
    for each in (other, changed, changed[:place]):
        found = part.fields(rest + each + rest, len(rest)) if each[5:].startswith(part.head) else None
        try:
            read = messages_of(each)
        except SqlError:
            read = None
        if found is not None:
            assert read == [replace(first, parameters=list(found[0]))]
            assert found[1] == len(rest + each)
    if len(others) >= len(values):
        assert part.fields(other, 0) == (tuple(others[: len(values)]), len(other))


def test_a_part_has_no_null_and_is_a_bind() -> None:
    part = Part.of(bound(bind([b"1"], "a")))
    null = request(bind([None], "a"))
    assert null[5:].startswith(part.head)
    assert part.fields(null, 0) is None
    assert part.fields(b"P" + request(bind([b"1"], "a"))[1:], 0) is None


def test_the_bytes_of_a_parse() -> None:
    assert parse_of("SELECT $1, 'ö'", (23, 4_000_000_000)) == request(parse("SELECT $1, 'ö'", "", [23, 4_000_000_000]))

"""The server's messages, compared byte for byte if short and field by field if long."""

from __future__ import annotations

import struct

from catalog.values.errors import SqlError
from protocol import encoder
from protocol.encoder import FieldDescription
from tests.protocol.wire import message, split


def test_constants() -> None:
    assert encoder.AUTHENTICATION_OK == b"R\0\0\0\x08\0\0\0\0"
    assert encoder.PARSE_COMPLETE == b"1\0\0\0\x04"
    assert encoder.BIND_COMPLETE == b"2\0\0\0\x04"
    assert encoder.CLOSE_COMPLETE == b"3\0\0\0\x04"
    assert encoder.NO_DATA == b"n\0\0\0\x04"
    assert encoder.PORTAL_SUSPENDED == b"s\0\0\0\x04"
    assert encoder.EMPTY_QUERY_RESPONSE == b"I\0\0\0\x04"
    assert encoder.COPY_DONE == b"c\0\0\0\x04"
    assert [encoder.READY_FOR_QUERY[status] for status in "ITE"] == [
        b"Z\0\0\0\x05I",
        b"Z\0\0\0\x05T",
        b"Z\0\0\0\x05E",
    ]


def test_settings_and_keys() -> None:
    assert encoder.parameter_status("TimeZone", "UTC") == message("S", b"TimeZone\0UTC\0")
    assert encoder.backend_key_data(1, b"\xff" * 4) == message("K", b"\0\0\0\1\xff\xff\xff\xff")
    assert encoder.command_complete("INSERT 0 1") == message("C", b"INSERT 0 1\0")
    assert encoder.negotiate_protocol_version((3, 2), ["_pq_.x"]) == message("v", b"\0\3\0\2\0\0\0\1_pq_.x\0")


def test_row_description() -> None:
    fields = [FieldDescription("a", 23, 4), FieldDescription("é", 1043, -1, 14, 16384, 2, 1)]
    ((kind, body),) = split(encoder.row_description(fields))
    assert kind == "T"
    first = b"a\0" + struct.pack(">IhIhih", 0, 0, 23, 4, -1, 0)
    second = "é\0".encode() + struct.pack(">IhIhih", 16384, 2, 1043, -1, 14, 1)
    assert body == b"\0\2" + first + second


def test_parameter_description_takes_the_most_parameters() -> None:
    assert encoder.parameter_description([23] * 65_535)[5:7] == b"\xff\xff"


def test_parameter_description_takes_large_oids() -> None:
    assert encoder.parameter_description([23, 2**32 - 1]) == message("t", b"\0\2\0\0\0\x17\xff\xff\xff\xff")


def test_error_response_has_only_the_fields_that_are_known() -> None:
    error = SqlError("22P02", "bad", detail="why", hint="do", position=7, where="COPY t, line 1")
    expected = b"SERROR\0VERROR\0C22P02\0Mbad\0Dwhy\0Hdo\0P7\0WCOPY t, line 1\0\0"
    assert encoder.error_response(error) == message("E", expected)
    assert encoder.error_response(SqlError("08P01", "x"), "FATAL") == message("E", b"SFATAL\0VFATAL\0C08P01\0Mx\0\0")


def test_zero_bytes_cannot_break_a_message() -> None:
    assert encoder.error_response(SqlError("22021", "a\0b")) == message("E", b"SERROR\0VERROR\0C22021\0Mab\0\0")


def test_notice_response() -> None:
    expected = b"SNOTICE\0VNOTICE\0C00000\0Mskipping\0\0"
    assert encoder.notice_response(SqlError("00000", "skipping")) == message("N", expected)


def test_copy_responses() -> None:
    assert encoder.copy_in_response(2, False) == message("G", b"\0\0\2\0\0\0\0")
    assert encoder.copy_out_response(2, True) == message("H", b"\1\0\2\0\1\0\1")
    assert encoder.copy_data(b"x\n") == message("d", b"x\n")

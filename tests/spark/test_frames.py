"""Frames pass through the pipe unchanged; a writer's death at any byte ends the stream."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from executor.spark.frames import read_frame, write_frame

names = st.text(max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
messages = st.dictionaries(names, values, max_size=4)


@given(st.lists(messages, max_size=4))
def test_what_is_written_is_read(frames: list[dict[str, object]]) -> None:
    pipe = io.BytesIO()
    for frame in frames:
        write_frame(pipe, frame)
    pipe.seek(0)
    assert [read_frame(pipe) for _ in frames] == frames
    assert read_frame(pipe) is None


@given(messages, st.data())
def test_a_frame_that_was_cut_short_is_the_end(frame: dict[str, object], data: st.DataObject) -> None:
    pipe = io.BytesIO()
    write_frame(pipe, frame)
    cut = data.draw(st.integers(0, len(pipe.getvalue()) - 1))
    assert read_frame(io.BytesIO(pipe.getvalue()[:cut])) is None

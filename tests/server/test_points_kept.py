"""Which rows of point reads are kept in encoded form."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from catalog.values.types import by_name
from executor.rows.point_reads import Picked
from executor.traces.index import Row
from server.plans.point_reads import Form, Rows


@pytest.mark.parametrize(("length", "is_kept"), [(10, True), (20_000, False)])
def test_long_rows_are_encoded_each_time(length: int, is_kept: bool) -> None:
    with ThreadPoolExecutor(1) as threads:
        rows = Rows(Form(Picked(("v",), (None,)), (by_name("text"),), (), "UTC"), threads)
        row = Row(pa.table({"v": ["y" * length]}), 0)
        first = rows.answer(row)
        assert b"y" * length in first
        assert rows.answer(row) == first
        table = weakref.ref(row.table)
        del row
        assert (table() is not None) == is_kept

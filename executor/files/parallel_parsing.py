"""A file's portions, parsed by several threads and returned in the file's order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import pyarrow as pa

_Portion = TypeVar("_Portion")
_Parsed = TypeVar("_Parsed")

#: Portions of a file that are parsed ahead of the one that is wanted next.
_AHEAD: Final = 4
_PARSERS: Final = ThreadPoolExecutor(max(1, pa.cpu_count()), "files")


def parsed_ahead(portions: Iterable[_Portion], parse: Callable[[_Portion], _Parsed]) -> Iterator[_Parsed]:
    """``parse`` of each portion, in order. Raises what ``parse`` raises of the first portion for which it does."""
    under_way: deque[Future[_Parsed]] = deque()
    try:
        for portion in portions:
            under_way.append(_PARSERS.submit(parse, portion))
            if len(under_way) > _AHEAD:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for item in under_way:
            item.cancel()

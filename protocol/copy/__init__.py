"""COPY data in and out: text, CSV and binary.

In (``CopyReader``): cheap, sequential ``split`` into blocks that end between rows, then ``parse`` of each block, which
may run on any thread. A block goes through the first of three ways that can take it:

1. ``fast``: pyarrow's CSV parser with the columns' types, where it means what PostgreSQL means;
2. ``fast`` again, with all columns as strings, converted by the value codecs, column by column;
3. ``exact``: PostgreSQL's own rules, line by line, which succeed or raise PostgreSQL's error with its line number.

Out (``CopyWriter``): columns are encoded and joined, no Python per row.
"""

from protocol.copy.binary import BinaryBlock
from protocol.copy.format import CopyFormat
from protocol.copy.reader import CopyReader
from protocol.copy.split import Block
from protocol.copy.writer import CopyWriter

__all__ = ["BinaryBlock", "Block", "CopyFormat", "CopyReader", "CopyWriter"]

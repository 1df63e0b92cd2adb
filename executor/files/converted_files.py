"""Files of a followed folder as Parquet files of the stream's types: what both engines read in the place of CSV, of
JSON, and of Parquet that they would have to convert.

Owns: one stream's converted files, in a folder that is empty when the server starts. A file is converted when it
arrives, which is also how all of it is found to be right; what is missing later is read from the file itself, which is
as it was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.objects import ColumnDefinition, Stream
from executor.files.followed_folders import SourceFile
from executor.files.lenient_lines import Rejecting
from executor.files.parquet_footers import footer, is_exact
from executor.files.reader import batches
from executor.traces.parquet import read_table, write_batches


class ConvertedFiles:
    """One stream's."""

    def __init__(self, folder: Path) -> None:
        """``folder`` may not exist yet."""
        self._folder = folder

    def convert(self, file: SourceFile, stream: Stream, rejecting: Rejecting | None = None) -> int:
        """Reads through a file and keeps its rows, unless engines read it as it is: how many it has. ``rejecting``
        hears of lines that are none.

        Raises what ``reader.batches`` raises.
        """
        if are_exact((file,), stream):
            texts = [item for item in stream.columns if pa.types.is_string(item.type.arrow)]
            for _ in batches(file[0], stream, texts) if texts else ():
                pass  # each text is one
            return int(pq.read_metadata(file[0]).num_rows)
        self._folder.mkdir(parents=True, exist_ok=True)
        schema = pa.schema([(item.name, item.type.arrow) for item in stream.columns])
        path = self._path(file, stream)
        new = path.with_suffix(".new")  # a reader may ask for the file meanwhile
        rows = batches(file[0], stream, stream.columns, rejecting=rejecting)
        count = write_batches(new, schema, rows, synced=False)
        new.replace(path)
        return count

    def read(self, file: SourceFile, stream: Stream) -> pa.Table | None:
        """A file's rows; None where they are not kept."""
        schema = pa.schema([(item.name, item.type.arrow) for item in stream.columns])
        try:
            return read_table([self._path(file, stream)], schema)
        except FileNotFoundError:
            return None

    def keep(self, files: Iterable[SourceFile], stream: Stream) -> None:
        """Deletes all but those of some files."""
        if not self._folder.is_dir():
            return
        kept = {self._path(file, stream).name for file in files}
        for name in os.listdir(self._folder):
            if name not in kept:
                (self._folder / name).unlink(missing_ok=True)

    def _path(self, file: SourceFile, stream: Stream) -> Path:
        """By all that its rows depend on."""
        about = (file, stream.options, [(item.name, str(item.type)) for item in stream.columns])
        return self._folder / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:40]}.parquet"


def are_exact(files: Iterable[SourceFile], stream: Stream) -> bool:
    """Whether files are Parquet whose values are those of the stream's types, so that engines read them as they are."""
    if stream.option("format", "parquet") != "parquet":
        return False
    try:
        footers = [footer(file) for file in files]
    except (OSError, pa.ArrowException):
        return False  # and the reader says what is wrong
    return all(_is_exact(item.columns.get(column.name), column) for item in footers for column in stream.columns)


def _is_exact(own: pa.DataType | None, column: ColumnDefinition) -> bool:
    return own is not None and is_exact(own, column.type)

"""Statements that Spark has analysed once and runs again over other files (child process only).

Owns: the inputs of a job as Spark reads them, and the analysed plans that one session keeps. A view's jobs differ only
in their files, yet resolving paths, views and names anew takes Spark longer than reading a small interval. So a kept
plan reads folders of ours with links to the files of the job that runs: before each run the links are set, the folders
are listed again, and the plan goes to the optimizer as it is, without the sizes that it knew of the last files.

Kept plans know nothing of requests. They work on a classic session only: neither Connect nor a cluster's workers see
the links.
"""

from __future__ import annotations

import os
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

#: A reader's options: paths are names, not patterns.
AS_NAMED: Final = {"__globPaths__": "false"}
#: Jobs of different shape whose plans one session keeps.
_KEPT: Final = 32


class Leaf(Struct, frozen=True):
    """A job's input: Parquet files of one schema, and the expressions over their columns that make the view's rows.

    The schema is Spark's DDL, or the files' own.
    """

    view: str
    schema: str | pa.Schema
    values: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def shape(self) -> object:
        """What two leaves have in common that differ by their files alone."""
        return self.view, self.schema, self.values

    def read(self, spark: Any, paths: Sequence[str]) -> Any:
        """The rows of the files, or of the folders that hold them."""
        schema: Any = self.schema
        if isinstance(schema, pa.Schema):
            from pyspark.sql.pandas.types import from_arrow_schema

            schema = from_arrow_schema(schema)
        frame = spark.read.options(**AS_NAMED).schema(schema).parquet(*paths)
        return frame.selectExpr(*self.values) if self.values else frame


class _Slot(Struct, frozen=True):
    """A folder of links that a plan reads, and Spark's plan of reading it."""

    folder: Path
    plan: Any

    def fill(self, files: Sequence[str]) -> None:
        """Links to other files."""
        _link(self.folder, files)
        self.plan.refresh()


class _Job(Struct, frozen=True):
    """What is kept of a job: its slots in the order of its leaves, its statements' analysed plans."""

    slots: tuple[_Slot, ...]
    plans: tuple[Any, ...]

    def forget(self) -> None:
        """Removes the links."""
        for slot in self.slots:
            shutil.rmtree(slot.folder, ignore_errors=True)


class Plans:
    """The plans of one session, which runs one job at a time."""

    def __init__(self, spark: Any, folder: Path) -> None:
        """``folder`` is empty or missing, and only these plans use it."""
        self._spark = spark
        self._folder = folder
        self._made = 0
        self._jobs: OrderedDict[object, _Job] = OrderedDict()

    def frames(self, leaves: Sequence[Leaf], statements: Sequence[str]) -> list[Any]:
        """The statements' rows over these files; good until the next call."""
        key = (tuple(leaf.shape for leaf in leaves), tuple(statements))
        job = self._jobs.get(key)
        if job is None:
            return self._prepare(key, leaves, statements)
        self._jobs.move_to_end(key)
        for slot, leaf in zip(job.slots, leaves, strict=True):
            slot.fill(leaf.files)
        return [self._frame(plan) for plan in job.plans]

    def clear(self) -> None:
        """Forgets all: a job failed, and its tasks may still read the links."""
        self._jobs.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _prepare(self, key: object, leaves: Sequence[Leaf], statements: Sequence[str]) -> list[Any]:
        slots = tuple(self._slot(leaf) for leaf in leaves)
        frames = [self._spark.sql(statement) for statement in statements]
        self._jobs[key] = _Job(slots, tuple(_analysed(frame) for frame in frames))
        if len(self._jobs) > _KEPT:
            self._jobs.popitem(last=False)[1].forget()
        return frames

    def _slot(self, leaf: Leaf) -> _Slot:
        """A new slot, whose rows are the temporary view of the leaf's name."""
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir(parents=True)
        _link(folder, leaf.files)
        frame = leaf.read(self._spark, [str(folder)])
        frame.createOrReplaceTempView(leaf.view)
        return _Slot(folder, _analysed(frame))

    def _frame(self, plan: Any) -> Any:
        """A plan that is analysed already as a new query."""
        from pyspark.sql.classic.dataframe import DataFrame

        plan.invalidateStatsCache()
        datasets = self._spark.sparkContext._jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(datasets.ofRows(self._spark._jsparkSession, plan), self._spark)


def _analysed(frame: Any) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _link(folder: Path, files: Sequence[str]) -> None:
    """Makes these files the folder's whole content, under names that mean nothing to Spark."""
    for old in folder.iterdir():
        old.unlink()
    for index, path in enumerate(files):
        os.symlink(path, folder / f"{index:06d}.parquet")

"""A PostgreSQL and a Millstream that run cases one after the other, and the report of a case that fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count, islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from executor.spark.engine import SparkEngine
from tests.law.changing.cases import draw_case
from tests.law.changing.running import Counts, Difference, Run
from tests.law.changing.servers import Ours
from tests.law.changing.sessions import Theirs
from tests.law.changing.shrinking import Shrinking
from tests.law.changing.steps import Case, as_script
from tests.rig import spark
from tests.rig.postgres import Postgres

#: How many cases share a database.
_SHARED: Final = 150
#: The first seeds of shares are so far from each other.
_APART: Final = 10_000
#: A folder in memory where there is one, since no data need survive.
_MEMORY: Final = Path("/dev/shm")


class Laboratory:
    """Both databases; ``counts`` says what their cases have reached."""

    def __init__(self, postgres: Postgres | None = None, with_spark: bool = False) -> None:
        self._given, self.counts = postgres, Counts()
        self._with_spark = with_spark
        self._spark: SparkEngine | None = None

    def __enter__(self) -> Laboratory:
        self._postgres = self._given or Postgres()
        self._theirs = Theirs(self._postgres.dsn())
        if self._with_spark:
            self._spark = _started()
        self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        self._theirs.close()
        if self._spark is not None:
            self._spark.close()
        if self._given is None:
            self._postgres.stop()

    def _begin(self) -> None:
        place = _MEMORY if _MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-law-", dir=place))
        self._ours, self._used = Ours(self._folder, self._spark), 0

    def _end(self) -> None:
        self._ours.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def failure(self, seed: int) -> tuple[Case, Difference] | None:
        """Runs the case of a seed; a case that fails is made smaller. With Spark, only cases with streams count."""
        if self._used >= _SHARED:
            self._end()
            self._begin()
        case = draw_case(seed)
        if self._spark is not None and not case.has_streams:
            return None
        found = self.difference(case, self.counts)
        if found is None:
            return None
        case, found = Shrinking(case, found, lambda smaller: self.difference(smaller, Counts())).run()
        self._used = _SHARED
        return case, found

    def failure_of_share(self, share: int, number: int, with_streams: bool) -> tuple[Case, Difference] | None:
        """Runs so many cases with streams, or without: the first ones from a seed on that is the share's."""
        seeds = (seed for seed in count(_APART * share) if draw_case(seed).has_streams == with_streams)
        return next((found for seed in islice(seeds, number) if (found := self.failure(seed)) is not None), None)

    def difference(self, case: Case, counts: Counts) -> Difference | None:
        """The first difference of a case."""
        self._used += 1
        return Run(self._ours, self._theirs, case, counts).difference()

    def differs_alone(self, case: Case, found: Difference) -> bool | None:
        """Whether the query of a view that differs also does where no view is; None if no view was read."""
        view = next((step for step in case.steps if step.role == "view" and step.name == found.step.name), None)
        if view is None or found.step.role != "read":
            return None
        query = view.text.partition(" AS ")[2]
        kept = tuple(step for step in case.steps[: found.place] if step is not view)
        text = found.step.text.replace(f"FROM {view.name}", f"FROM ({query}) {view.name}")
        return self.difference(Case(case.seed, (*kept, replace(found.step, text=text))), Counts()) is not None


def _started() -> SparkEngine:
    """Spark with one core."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", spark.flags())
    engine = SparkEngine(Path(tempfile.mkdtemp(prefix="millstream-law-spark-")), master="local[1]", driver_memory="1g")
    ready = engine.process.wait_ready(300)
    assert ready, engine.status()
    return engine


def report(laboratory: Laboratory, case: Case, found: Difference) -> str:
    """A case that fails, as a script with the difference, and whether the view has to do with it."""
    alone = laboratory.differs_alone(case, found)
    cause = {None: "", True: "\nThe query differs without the view, too.", False: "\nOnly the view differs."}[alone]
    return f"{as_script(case)}\n{found.report}{cause}\n"

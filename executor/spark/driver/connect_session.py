"""A Spark session behind a Connect endpoint (``sc://host:port``), which runs the JVM (child process only).

Owns: the sessions there, tags, and the time after which a silent endpoint counts as gone. Only the DataFrame API is
available: no job ids, no kept plans, no functions of ours in the JVM. The endpoint reads and writes the files of the
server under the server's own paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from executor.spark.driver.session import Session, Worker
from executor.spark.settings import SparkSettings, of_session

#: How often a call is tried again, after 50 ms, 200 ms, 800 ms and then 2 s each: for about 5 s. pyspark's own
#: patience is 10 minutes, in which a lost endpoint would go unnoticed.
_RETRIES: Final[dict[str, Any]] = {"max_retries": 5, "initial_backoff": 50, "max_backoff": 2000}


class ConnectSession(Session):
    """Spark behind an endpoint."""

    def __init__(self, settings: SparkSettings) -> None:
        """Raises when the endpoint does not answer."""
        from pyspark import __version__
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        super().__init__(settings, _impatient(builder.remote(settings.master).getOrCreate()), of_session(settings))
        self._sessions: list[Any] = []
        self._archive: Path | None = None
        if not is_alike(self.version, __version__):
            raise RuntimeError(f"the endpoint is Spark {self.version}, pyspark is {__version__}")

    def watch(self, died: Callable[[], None]) -> None:
        """Nothing to watch: ``ping`` notices the endpoint's end."""

    def ping(self) -> None:
        """Returns when the endpoint knows all of our sessions, which keeps them; it forgets unused sessions."""
        for session in (self.spark, *self._sessions):
            session.conf.get("spark.sql.session.timeZone")  # always asked; pyspark remembers a version

    def _worker(self) -> Worker:
        session = _impatient(self.spark.newSession())
        if self._archive is not None:
            session.addArtifacts(str(self._archive), pyfile=True)
        self._sessions.append(session)
        return Worker(session, None)

    @contextmanager
    def group(self, session: Any, name: str) -> Iterator[None]:
        """Operations that this thread starts meanwhile have a tag."""
        session.addTag(name)
        try:
            yield
        finally:
            session.removeTag(name)

    def job_ids(self, group: str) -> list[int]:
        """Empty: the endpoint does not tell them."""
        return []

    def cancel(self, group: str) -> None:
        """Ends what has the tag, which is known in one session only."""
        for session in list(self._sessions):
            session.interruptTag(group)

    def stop(self) -> None:
        """The endpoint forgets our sessions at once, rather than after an hour without use."""
        for session in (*self._sessions, self.spark):
            session.stop()

    def _ship(self, path: Path) -> None:
        """Artifacts are a session's own."""
        self._archive = path
        for session in self._sessions:
            session.addArtifacts(str(path), pyfile=True)

    def _as_input(self, session: Any, frame: Any) -> nullcontext[Any]:
        return nullcontext(frame)


def is_alike(version: str, other: str) -> bool:
    """Whether two Sparks compute the same: major and minor version are equal."""
    return version.split(".")[:2] == other.split(".")[:2]


def _impatient(session: Any) -> Any:
    """The session with retries of ours; nothing has been asked of the endpoint yet."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**_RETRIES)])
    return session

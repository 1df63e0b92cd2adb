"""JVMs of tests: flags for a short life, an archive of Spark's classes, and Spark's own programs as child processes.

A test's Spark lives for a minute. Its start takes 20 seconds of processor time: half for optimised machine code that
hardly runs, a quarter for reading and verifying classes. ``python -m tests.rig.spark`` writes the verified classes into
a file (class data sharing) that all JVMs of this environment map; a JVM that does not fit the file ignores it.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from executor.spark.java import Java, find_java
from tests.rig.process import spawn

ARCHIVE = Path(sys.prefix) / "spark.jsa"
#: Logging is off, since the JVM's own log goes to stdout, which Spark's scripts read.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"


def flags() -> str:
    """JAVA_TOOL_OPTIONS for a test's JVM."""
    return f"{_BRIEF} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else _BRIEF


def run_script(
    script: str,
    words: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    at_our_end: int = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Starts one of pyspark's scripts, which is replaced by the JVM, in the folder of its log."""
    found = importlib.util.find_spec("pyspark")
    java = find_java(os.environ)
    assert found is not None and found.origin is not None and isinstance(java, Java)
    home = Path(found.origin).parent
    own = {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}
    return spawn(
        [str(home / "bin" / script), *words],
        log,
        at_our_end,
        cwd=log.parent,
        env={**os.environ, **own, "SPARK_LOCAL_IP": "127.0.0.1", **(environment or {})},
    )


def make_archive() -> None:
    """Writes the classes that a Spark has loaded at its end into the archive."""
    from executor.spark.driver.classic_session import ClassicSession
    from executor.spark.settings import SparkSettings

    written = ARCHIVE.with_suffix(".new")
    written.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        options = {"spark.driver.extraJavaOptions": f"{_BRIEF} -XX:ArchiveClassesAtExit={written}"}
        session = ClassicSession(SparkSettings(Path(folder), "local[2]", "1g", extra=options))
        session.warm_up()
        jvm = session.jvm
        session.stop()
        assert jvm is not None and jvm.stdin is not None
        jvm.stdin.close()  # it ends with its parent
        jvm.wait(120)
    written.replace(ARCHIVE)


if __name__ == "__main__":
    match find_java(os.environ):
        case Java(home=home):
            os.environ["JAVA_HOME"] = str(home)
            make_archive()

"""Spark's own programs as child processes: the scripts that pyspark brings along, and flags of JVMs that live briefly.

Owns: what they are told of this machine. ``connect`` and ``standalone`` say what runs.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from executor.spark.java import Java, find_java
from tests.rig.process import spawn

#: A JVM of a test lives for a minute: code that is compiled once, and quickly, is better than good code.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def run_script(
    script: str,
    words: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    at_our_end: int = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Starts one of pyspark's scripts, which becomes the JVM, in the folder of its log."""
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

"""The archive for remote workers: the kernel computes from the archive alone, and missing packages are named."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from catalog.values.types import INT4
from executor.spark.workers.kernel_archive import archive, lacking_here
from tests.spark.build import snapshot
from tests.spark.test_delegation import hexadecimal, printed

#: An expression from the binder, whose tables are files in the archive.
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
import catalog.postgres
import executor.embedded.kernel as kernel
assert kernel.__file__.startswith(sys.argv[1]), kernel.__file__
assert catalog.postgres.types()
from executor.spark.workers.kernel_calls import computed
print(computed(sys.stdin.read(), "UTC", [pa.array([255], pa.int32())]).to_pylist())
"""


@pytest.mark.slow
def test_the_kernel_computes_from_the_archive(tmp_path: Path) -> None:
    leaf, c = snapshot("s", {"k": INT4})
    (function,) = printed(leaf, x=hexadecimal(c["k"])).functions
    path = archive(tmp_path / "new")
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        input=function.document,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (found.stdout, found.returncode) == ("['ff']\n", 0), found.stderr


def test_what_is_not_installed_is_named() -> None:
    assert lacking_here({"pyarrow": "", "duckdb": metadata.version("duckdb")}) == ""
    assert lacking_here({"pyarrow": "0.1", "no-such-thing": "", "duckdb": ""}) == "pyarrow==0.1 no-such-thing"

"""The modules that the server's process does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.rig.server import ROOT

_LOAD = """
import sys
from server.operations.allocator import leave_out_pandas
leave_out_pandas()
import executor.database, server.session
print("pandas" in sys.modules)
import pandas
print(pandas.__name__)
"""


@pytest.mark.slow
def test_pandas_is_not_loaded_unless_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _LOAD], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\npandas\n", "")

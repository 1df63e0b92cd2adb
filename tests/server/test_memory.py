"""What the server's process does not load."""

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
def test_pandas_is_loaded_for_those_only_who_import_it() -> None:
    done = subprocess.run([sys.executable, "-c", _LOAD], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\npandas\n", "")

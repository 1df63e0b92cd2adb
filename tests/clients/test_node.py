"""node-postgres: parameters, named statements, types, errors, cursors, a pool, a stream and its view."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.rig.server import DATABASE, USER, Millstream

PROGRAM: Final = Path(__file__).with_name("driver.js")
#: The folder of Node's packages with tools/clients.sh and Debian; NODE_PATH names another one.
PACKAGES: Final = (Path(__file__).parents[2] / ".venv" / "node" / "node_modules", Path("/usr/share/nodejs"))
ENVIRONMENT: Final = {"NODE_PATH": os.pathsep.join(map(str, PACKAGES)), **os.environ}


def driver_is_there() -> bool:
    """Whether Node finds node-postgres."""
    if shutil.which("node") is None:
        return False
    looked = subprocess.run(["node", "-e", "require('pg'); require('pg-cursor')"], env=ENVIRONMENT, capture_output=True)
    return looked.returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not driver_is_there(), reason="no node-postgres: apt-get install node-pg"),
]

EXPECTED: Final = {
    "returning": [{"id": 1}],
    "row": {
        "id": 1,
        "n": 7,
        "s": "it's ä",
        "j": {"x": [1, None]},
        "a": [1, None, 3],
        "at": "2024-02-29T12:00:00.500Z",
        "b": [0, 255],
    },
    "fields": [["id", 23], ["n", 23], ["s", 25], ["j", 3802], ["a", 1007], ["at", 1184], ["b", 17]],
    "again": 0,
    "arrays": [[1, "x"]],
    "several": [[{"one": 1}], [{"two": 2}]],
    "error": ["42703", "8", "ERROR"],
    "cursor": [100, 100, 50],
    "rolled back": [{"n": 1}],
    "pool": 1560,
    "view": [{"page": "p0", "n": "380"}, {"page": "p1", "n": "400"}],
}


def test_node_postgres(server: Millstream) -> None:
    where = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": USER, "PGDATABASE": DATABASE}
    done = subprocess.run(["node", str(PROGRAM)], env={**ENVIRONMENT, **where}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert dict(map(json.loads, done.stdout.splitlines())) == EXPECTED

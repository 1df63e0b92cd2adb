"""The command line: init, check-config, status and sql, each as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.server import ROOT, Millstream


def millstream(*words: str, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, with settings if given."""
    return subprocess.run(
        [sys.executable, "-m", "server", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin"},
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def here(running: Millstream, tmp_path: Path) -> Path:
    """A folder with settings that name the running server."""
    (tmp_path / "millstream.toml").write_text(f'listen = "127.0.0.1:{running.port}"\n')
    return tmp_path


def test_init_makes_settings_that_are_the_defaults_and_changes_nothing_twice(tmp_path: Path) -> None:
    first = millstream("init", folder=tmp_path)
    assert first.returncode == 0
    assert (tmp_path / "data").is_dir()
    file = tmp_path / "millstream.toml"
    assert "# maintenance_rows = 100000" in file.read_text().splitlines()
    file.write_text("max_connections = 7\n")
    second = millstream("init", "--data=other", folder=tmp_path)
    assert "is not changed" in second.stdout
    assert file.read_text() == "max_connections = 7\n"
    assert (tmp_path / "other").is_dir()


def test_check_config_says_every_value_and_its_origin(tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text("max_connections = 7\n")
    done = millstream("check-config", "--log-level=debug", folder=tmp_path)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "max_connections = 7 # configuration file" in lines
    assert 'log_level = "debug" # command line' in lines
    assert "parse_threads = 2 # default" in lines


def test_check_config_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text("max_connections = 'many'\n")
    done = millstream("check-config", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("millstream: max_connections: invalid value 'many'")


def test_status_of_a_server(running: Millstream, here: Path) -> None:
    done = millstream("status", folder=here)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert said["address"] == f"127.0.0.1:{running.port}"
    assert said["data"] == str(running.data)
    assert said["engines"] == "embedded: ready, spark: disabled"


def test_status_of_no_server(tmp_path: Path) -> None:
    done = millstream("status", "--listen=127.0.0.1:1", folder=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("no answer at 127.0.0.1:1: ")


def test_sql_of_flags(here: Path) -> None:
    done = millstream(
        "sql", "-c", "SELECT 1 AS a, 'x' AS long_name; SELECT NULL AS n", "-c", "SET x.y = 1", folder=here
    )
    assert done.stdout == "a | long_name\n- | ---------\n1 | x\n(1 row)\nn\n-\n\n(1 row)\nSET\n"
    assert done.returncode == 0


def test_sql_of_standard_input_as_csv(here: Path) -> None:
    done = millstream("sql", "--csv", folder=here, text="VALUES (1, 'a,b'), (2, NULL)")
    assert done.stdout == 'column1,column2\n1,"a,b"\n2,\n'


def test_sql_ends_with_the_first_error(here: Path) -> None:
    done = millstream("sql", "-c", "SELECT 1/0", "-c", "SELECT 2", folder=here)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ERROR:  22012 division by zero")


def test_settings_are_shown_with_their_origin(here: Path) -> None:
    query = "SELECT setting, unit, source FROM pg_settings WHERE name IN ('log_segment_bytes', 'listen') ORDER BY name"
    done = millstream("sql", "--csv", "-c", query, "-c", "SHOW log_segment_bytes; SHOW maintenance_idle", folder=here)
    _, listen, segment, *shown = done.stdout.splitlines()
    assert listen.endswith(",,command line")
    assert segment == "67108864,B,default"
    assert shown == ["log_segment_bytes", "64MB", "maintenance_idle", "1s"]

"""Configuration: order of precedence, conversions, refusals, and the printed list of settings."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from executor.options import Options
from server.config import Address, Config, ConfigError, describe, load


def test_defaults() -> None:
    config = load([], {"MILLSTREAM_CONFIG": "/dev/null"})
    assert config == Config()
    assert config.listen == Address("127.0.0.1", 5433)
    assert config.data == Path("data")


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "millstream.toml"
    file.write_text('maintenance_rows = 1\nmax_connections = 2\nlog_level = "debug"\n[spark]\nmaster = "local[1]"\n')
    environment = {"MILLSTREAM_MAX_CONNECTIONS": "3", "MILLSTREAM_LOG_LEVEL": "warning"}
    config = load(["--config", str(file), "--log-level=error"], environment)
    assert (config.maintenance_rows, config.max_connections, config.log_level) == (1, 3, "error")
    assert config.spark_master == "local[1]"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:1234", Address("localhost", 1234)),
        ("1234", Address("127.0.0.1", 1234)),
        ("[::1]:0", Address("::1", 0)),
        ("127.0.0.2", Address("127.0.0.2", 5433)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert load([f"--listen={text}"], {"MILLSTREAM_CONFIG": "/dev/null"}).listen == address


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.org"])
def test_beyond_loopback_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="requires TLS and SCRAM, which come with a later release"):
        Config(listen=Address(host, 5433))


@pytest.mark.parametrize(("text", "size"), [("64MB", 64 << 20), ("1.5 kB", 1536), ("123", 123), ("1gb", 1 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert load([f"--ring-bytes={text}"], {"MILLSTREAM_CONFIG": "/dev/null"}).ring_bytes == size


@pytest.mark.parametrize(
    "flag",
    [
        "--max-connections=0",
        "--max-connections=many",
        "--ring-bytes=5 XB",
        "--spark-enabled=maybe",
        "--maintenance-engine=flink",
        "--listen=127.0.0.1:99999",
    ],
)
def test_invalid_values_name_the_setting(flag: str) -> None:
    name = flag[2:].split("=")[0].replace("-", "_")
    with pytest.raises(ConfigError, match=name):
        load([flag], {"MILLSTREAM_CONFIG": "/dev/null"})


def test_unknown_setting_and_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("colour = 1\n")
    with pytest.raises(ConfigError, match="unknown setting colour"):
        load(["--config", str(file)], {})
    with pytest.raises(ConfigError, match="no such file"):
        load(["--config", str(tmp_path / "none")], {})


def test_the_printed_list_is_a_valid_file_of_all_defaults(tmp_path: Path) -> None:
    text = "\n".join(line.removeprefix("# ") for line in describe().splitlines()[1::2])
    assert set(tomllib.loads(text)) == {item.name for item in fields(Config)}
    file = tmp_path / "all.toml"
    file.write_text(text)
    assert load(["--config", str(file)], {}) == Config()


def test_options_of_the_executor(tmp_path: Path) -> None:
    options = Config(data=tmp_path, maintenance_rows=7, spark_master="local[3]").options()
    assert isinstance(options, Options)
    assert (options.data_directory, options.maintenance_rows, options.spark_master) == (tmp_path, 7, "local[3]")

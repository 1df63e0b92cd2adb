"""Configuration: order of precedence, conversions, refusals, and the printed list of settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from executor.options import Options
from server.operations.config import Address, Config, ConfigError, choose, describe, parser, table
from tests.rig.server import ROOT


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> Config:
    return choose(parser("millstream", "Serve.").parse_args(arguments), environment).config


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
    with pytest.raises(ConfigError, match="listening beyond loopback requires TLS"):
        Config(listen=Address(host, 5433))


@pytest.mark.parametrize(("text", "size"), [("64MB", 64 << 20), ("1.5 kB", 1536), ("123", 123), ("1gb", 1 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert load([f"--trace-memory={text}"], {"MILLSTREAM_CONFIG": "/dev/null"}).trace_memory == size


@pytest.mark.parametrize(
    "flag",
    [
        "--max-connections=0",
        "--max-connections=many",
        "--trace-memory=5 XB",
        "--statement-length=0",
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
    file.write_text("ring_bytes = 1\n")
    with pytest.raises(ConfigError, match="ring_bytes is not a setting any more: set trace_memory instead"):
        load(["--config", str(file)], {})
    with pytest.raises(ConfigError, match="table_keys_bytes"):
        load([], {"MILLSTREAM_CONFIG": "/dev/null", "MILLSTREAM_TABLE_KEYS_BYTES": "1MB"})
    with pytest.raises(ConfigError, match="table_keys_bytes"):
        load(["--table-keys-bytes=1MB"], {"MILLSTREAM_CONFIG": "/dev/null"})
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


def test_every_value_knows_whose_word_it_is(tmp_path: Path) -> None:
    file = tmp_path / "millstream.toml"
    file.write_text("[log]\nlevel = 'debug'\n[spark]\nenabled = false\n")
    flags = parser("x", "").parse_args([f"--config={file}", "--parse-threads=3"])
    chosen = choose(flags, {"MILLSTREAM_SPARK_ENABLED": "on", "MILLSTREAM_METRICS_LISTEN": "9187"})
    assert (chosen.file, chosen.config.spark_enabled) == (file, True)
    assert chosen.config.metrics_listen == Address("127.0.0.1", 9187)
    names = ("log_level", "spark_enabled", "parse_threads", "data")
    assert [chosen.source(name) for name in names] == [
        "configuration file",
        "environment variable",
        "command line",
        "default",
    ]


def test_metrics_are_for_this_machine_alone() -> None:
    with pytest.raises(ConfigError, match="metrics ask for no password"):
        Config(metrics_listen=Address("10.0.0.1", 9187))
    assert load(["--metrics-listen="], {"MILLSTREAM_CONFIG": "/dev/null"}).metrics_listen is None


def test_the_page_of_settings_is_the_list(rewrite: bool) -> None:
    """docs/settings.md is written from the fields of Config by ``make rewrite``."""
    page = ROOT / "docs" / "settings.md"
    before, mark, _ = page.read_text().partition("<!-- written by `make rewrite` -->\n")
    expected = before + mark + table()
    if rewrite:
        page.write_text(expected)
    assert mark and page.read_text() == expected

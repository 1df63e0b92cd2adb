"""The compose files, checked without a container engine: against each other, the Dockerfile, the existing settings, and
the commands in the image."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from executor.spark.java import LEAST_VERSION
from server.commands import COMMANDS
from server.operations.config import ENVIRONMENT_PREFIX, choose, parser
from tests.rig.server import ROOT

DOCKER = ROOT / "docker"
SERVERS = {"one", "two"}
SPARK = {"spark-master", "spark-worker-one", "spark-worker-two"}
#: The keys of a compose service that these files use.
KEYS = {
    *("image", "build", "init", "network_mode", "restart", "volumes", "depends_on", "stop_grace_period", "environment"),
    *("entrypoint", "command", "healthcheck"),
}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DOCKER / name).read_text())
    return found


@pytest.fixture(scope="module")
def cluster() -> dict[str, Any]:
    return read("compose.cluster.yaml")


def test_every_container_is_run_like_the_single_node(cluster: dict[str, Any]) -> None:
    (single,) = read("compose.yaml")["services"].values()
    services = cluster["services"]
    assert services.keys() == SERVERS | SPARK
    for service in services.values():
        assert service.keys() <= KEYS
        for key in ("image", "build", "init", "network_mode", "restart"):
            assert service[key] == single[key]
        (mount,) = service["volumes"]
        volume, _, place = mount.partition(":")
        assert volume in cluster["volumes"]
        assert place == single["volumes"][0].partition(":")[2], "which the Dockerfile gives to the image's user"
        assert set(service.get("depends_on", ())) <= services.keys()
    assert (DOCKER.parent / services["one"]["build"]["dockerfile"]).is_file()


def test_the_volume_belongs_to_the_images_user() -> None:
    """A user other than root can write to a volume only if this user has created its folder in the image."""
    lines = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    begin, end = lines.index("USER millstream"), lines.index("VOLUME /var/lib/millstream/data")
    assert lines[begin + 1 : end] == ["WORKDIR /var/lib/millstream", "RUN mkdir --mode=0700 data"]


def instructions(word: str) -> list[str]:
    """The texts after a keyword of the Dockerfile, each on one line."""
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(f"{word} ").strip() for line in text.splitlines() if line.startswith(f"{word} ")]


def test_the_image_gets_every_package_and_what_installs_them() -> None:
    copied = [words for words in map(str.split, instructions("COPY")) if words]
    sources = {source for *sources, _ in copied for source in sources}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert {source for source in sources if (ROOT / source).is_dir()} == packages
    needed = {"requirements.lock", "pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert sources == packages | needed
    ignored = (ROOT / ".dockerignore").read_text().split()
    for source in sources:
        assert (ROOT / source).exists()
        assert not any(PurePosixPath(source).match(pattern) for pattern in ignored)


def test_the_image_has_a_java_for_spark() -> None:
    installed, *_ = instructions("RUN")
    (version,) = re.findall(r"openjdk-(\d+)-jre-headless", installed)
    assert int(version) >= LEAST_VERSION


def test_the_health_check_is_a_command_of_the_image() -> None:
    (check,), (entry,) = instructions("HEALTHCHECK"), instructions("ENTRYPOINT")
    (program,), (called, word) = json.loads(entry), json.loads(check[check.index("[") :])
    assert called == program
    assert word in COMMANDS  # tests/server/test_commands.py runs the command with and without a server


def configured(service: dict[str, Any]) -> Any:
    """The configuration of the server in a container."""
    image = {"MILLSTREAM_LISTEN": "127.0.0.1:5433", "MILLSTREAM_DATA": "/var/lib/millstream/data"}
    flags = parser("millstream", "").parse_args(["--config", "/dev/null"])
    return choose(flags, {**image, **service["environment"]}).config


def test_the_servers_share_a_storage_and_nothing_else(cluster: dict[str, Any]) -> None:
    found = {name: configured(cluster["services"][name]) for name in SERVERS}
    for name, config in found.items():
        assert config.server_name == name
        own = {key for key in cluster["services"][name]["environment"] if key.startswith(ENVIRONMENT_PREFIX)}
        assert own == cluster["services"]["one"]["environment"].keys() & own, "they set the same"
    one, two = found["one"], found["two"]
    assert one.storage == two.storage
    assert one.data != two.data
    assert one.listen != two.listen
    volume = Path("/var/lib/millstream/data")
    assert all(Path(path).is_relative_to(volume) for path in (one.storage, one.data, two.data))
    assert len({one.storage, str(one.data), str(two.data)}) == 3


def test_all_speak_to_one_master(cluster: dict[str, Any]) -> None:
    services = cluster["services"]
    words = services["spark-master"]["command"]
    address = dict(zip(words[::2], words[1::2], strict=True))
    master = f"spark://{address['--host']}:{address['--port']}"
    assert address["--host"] == "127.0.0.1", "which asks for no password"
    assert {configured(services[name]).spark_master for name in SERVERS} == {master}
    for name in SPARK - {"spark-master"}:
        assert services[name]["command"][0] == master
    cores = sum(int(services[name]["command"][4]) for name in SPARK - {"spark-master"})
    each = int(services["spark-master"]["environment"]["SPARK_MASTER_OPTS"].partition("=")[2])
    assert each * len(SERVERS) <= cores, "no server waits for another's"


def test_the_image_has_what_is_run(cluster: dict[str, Any]) -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    commands = dockerfile.partition('ENTRYPOINT ["')[2].partition('millstream"]')[0]
    assert {cluster["services"][name]["entrypoint"][0] for name in SPARK} == {f"{commands}spark-class"}
    scripts = {str(path) for path in importlib.metadata.files("pyspark") or ()}
    assert any(path.endswith("bin/spark-class") for path in scripts)

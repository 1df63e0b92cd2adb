"""Finds a Java runtime that serves Spark: version 17 or newer, by JAVA_HOME, then PATH, then /usr/lib/jvm.

Owns: the search and the one line that says why there is none. Versions come from the runtime's ``release`` file, so
that nothing needs to be started; only a runtime without that file is asked.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

LEAST_VERSION: Final = 17
JVM_FOLDER: Final = Path("/usr/lib/jvm")
_RELEASE: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_BANNER: Final = re.compile(r'version "(?:1\.)?(\d+)')


class Java(Struct, frozen=True):
    """A runtime: the folder for JAVA_HOME and its major version."""

    home: Path
    version: int


def find_java(environment: Mapping[str, str], folder: Path = JVM_FOLDER) -> Java | str:
    """The first runtime that serves, else the reason in one line."""
    seen: list[str] = []
    for home in _homes(environment, folder):
        version = _version(home)
        if version is not None and version >= LEAST_VERSION:
            return Java(home, version)
        if version is not None:
            seen.append(f"{home} is Java {version}")
    found = f" ({'; '.join(dict.fromkeys(seen))})" if seen else ""
    advice = "apt-get install openjdk-17-jre-headless"
    return f"Spark needs Java {LEAST_VERSION} or newer and none was found{found}: {advice}"


def _homes(environment: Mapping[str, str], folder: Path) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    if folder.is_dir():
        yield from sorted(item for item in folder.iterdir() if (item / "bin" / "java").exists())


def _version(home: Path) -> int | None:
    """The major version; None where no runtime is."""
    java = home / "bin" / "java"
    if not java.exists():
        return None
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
        match = _RELEASE.search(text)
    except OSError:
        match = None
    if match is None:
        match = _BANNER.search(_banner(java))
    return int(match.group(1)) if match is not None else None


def _banner(java: Path) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stderr + answer.stdout

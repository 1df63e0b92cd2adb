"""Which Java runtime is chosen, and the one-line error if none is suitable."""

from __future__ import annotations

from pathlib import Path

from executor.spark.java import Java, find_java


def runtime(home: Path, version: str, *, release: bool = True) -> Path:
    """A folder that looks like a runtime, whose java prints a real banner."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = runtime(tmp_path / "home", "21.0.1"), runtime(tmp_path / "jvms" / "a", "17.0.15")
    environment = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert find_java(environment, tmp_path / "jvms") == Java(home, 21)


def test_the_path_is_followed_through_links(tmp_path: Path) -> None:
    home = runtime(tmp_path / "real", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, tmp_path / "none") == Java(home, 17)


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = runtime(tmp_path / "old", "1.8.0_402"), runtime(tmp_path / "jvms" / "new", "25")
    assert find_java({"JAVA_HOME": str(old)}, tmp_path / "jvms") == Java(new, 25)


def test_without_a_release_file_it_is_asked(tmp_path: Path) -> None:
    home = runtime(tmp_path / "home", "17.0.2", release=False)
    assert find_java({"JAVA_HOME": str(home)}, tmp_path / "none") == Java(home, 17)


def test_the_reason_is_one_line_and_names_what_was_found(tmp_path: Path) -> None:
    old = runtime(tmp_path / "old", "11.0.2")
    reason = find_java({"JAVA_HOME": str(old)}, tmp_path / "none")
    assert isinstance(reason, str)
    assert f"{old} is Java 11" in reason
    assert "openjdk-17-jre-headless" in reason
    assert "\n" not in reason


def test_a_java_home_that_does_not_exist_is_no_error(tmp_path: Path) -> None:
    assert isinstance(find_java({"JAVA_HOME": str(tmp_path / "gone")}, tmp_path / "none"), str)

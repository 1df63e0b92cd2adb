"""The documentation's examples are correct: their SQL runs and prints the shown output; commands, flags, views and
links exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.examples import Example, examples, pages, quoted, run
from tests.rig.server import ROOT, Millstream

PAGES = pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages()])
NEEDS_PSQL = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


@pytest.fixture(scope="module")
def fresh() -> Iterator[Millstream]:
    """A new server, which contains only the objects of the pages' examples."""
    with Millstream(settings={"maintenance_engine": "embedded", "spark_enabled": False}) as server:
        yield server


@NEEDS_PSQL
@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in pages() if examples(page.read_text())])
def test_examples_run_and_print_what_the_page_says(page: Path, fresh: Millstream, tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("uid,score,content\n2,5,from a file\n")
    for example in examples(page.read_text()):
        run(fresh, tmp_path, example)


@NEEDS_PSQL
def test_a_wrong_example_is_found(fresh: Millstream, tmp_path: Path) -> None:
    page = "```sql\nSELECT 1 AS n, 'a' AS t;\n```\n\n```\n n | t\n---+---\n {} | a\n(1 row)\n```\n`SELECT * FROM {}`"
    (right, nothing) = examples(page.format("1", "missing"))
    run(fresh, tmp_path, right)
    with pytest.raises(AssertionError, match="prints something else"):
        run(fresh, tmp_path, examples(page.format("2", ""))[0])
    with pytest.raises(AssertionError, match=r'line 11: .*\n.*relation "missing" does not exist'):
        run(fresh, tmp_path, nothing)
    with pytest.raises(AssertionError, match="dots"):
        run(fresh, tmp_path, Example(1, "SELECT ... FROM posts"))


def test_the_readme_shows_a_session_and_its_output() -> None:
    found = examples((ROOT / "README.md").read_text())
    assert any(example.output for example in found)
    assert len(found) > 5


@PAGES
def test_commands_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)
    assert set(named) <= targets


@pytest.fixture(scope="session")
def flags() -> str:
    """The flags in the help text of the server's command line."""
    command = [sys.executable, "-m", "server", "--help"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True).stdout


@PAGES
def test_flags_exist(page: Path, flags: str) -> None:
    named = {word for text in quoted(page.read_text()) for word in re.findall(r"^(--[a-z-]+)", text)}
    assert named <= set(re.findall(r"--[a-z-]+", flags))


def test_system_views_exist(fresh: Millstream) -> None:
    text = "\n".join(" ".join(quoted(page.read_text())) for page in pages())
    named = set(re.findall(r"\bmillstream\.([a-z]+)\b(?!\()(?:\.([a-z_]+))?", text)) - {("toml", "")}
    assert ("jobs", "") in named
    with fresh.connect() as client:
        for view, column in sorted(named):
            client.execute(f"SELECT {column or '*'} FROM millstream.{view}")


@PAGES
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_each_dependency_has_its_reason_and_its_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    pins = [*project["project"]["dependencies"], *(pin for group in groups for pin in group)]
    names = {re.split(r"[\[=]", pin)[0] for pin in pins}
    page = (ROOT / "docs/architecture.md").read_text()
    table = page[page.index("## 7. Dependencies") : page.index("## 8. Storage")]
    reasons = {name for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for name in row.split(", ")}
    licences = set(re.findall(r"[\w-]+", (ROOT / "NOTICE").read_text().lower()))
    assert names <= reasons
    assert names <= licences | {"zstandard"} and "python-zstandard" in licences

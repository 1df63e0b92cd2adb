"""References in comments and documents are valid: files, modules, sections of the architecture, pages and their
headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = ("catalog", "planner", "executor", "server", "protocol")
_FOLDERS: Final = (*_PACKAGES, "tests", "bench", "docs", "tools")
_NAMES: Final = "|".join((*_PACKAGES, "tests", "bench"))
#: planner/rules/lift, executor/engine.py
_PATH: Final = re.compile(rf"(?<![\w./-])((?:{_NAMES})/[\w/]*\w)(?![\w*])(?:\.(\w+))?")
#: ``planner.rules.errors`` and ``planner.rules.subqueries.subquery_columns.lift``
_MODULE: Final = re.compile(rf"``((?:{'|'.join(_PACKAGES)})(?:\.\w+)+)")
#: (architecture, sections 1 and 3)
_SECTIONS: Final = re.compile(r"architecture,? sections? (\d+(?:(?:, | and )\d+)*)")
#: [text](page.md#anchor)
_LINK: Final = re.compile(r"\]\(((?:[\w-]+/)*[\w-]+\.md)?(?:#([\w-]+))?\)")
#: Files that exist only once the server runs.
_MADE: Final = ("executor/embedded/functions/__pycache__/macros",)


def texts() -> Iterator[Path]:
    yield from (_ROOT / name for name in ("README.md", "Makefile", "pyproject.toml"))
    for folder in _FOLDERS:
        for suffix in ("*.py", "*.md"):
            yield from sorted((_ROOT / folder).rglob(suffix))


def is_there(path: str, suffix: str | None) -> bool:
    if suffix in ("py", "md", "sql", "tsv", "toml"):
        return (_ROOT / f"{path}.{suffix}").exists()
    found = _ROOT / path
    return found.exists() or any(found.parent.glob(f"{found.name}.*"))


def is_module(name: str) -> bool:
    """Whether a name is a module, or an attribute in a module, which may have further attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = _ROOT.joinpath(*parts[:length])
        if path.with_suffix(".py").exists():
            return len(parts) - length <= 2
        if path.is_dir():
            text = (path / "__init__.py").read_text()
            return length == len(parts) or re.search(rf"\b{parts[length]}\b", text) is not None
    return False


def lost(text: str) -> list[str]:
    """The names in a text that do not exist."""
    paths = [match[1] for match in _PATH.finditer(text) if not is_there(match[1], match[2]) and match[1] not in _MADE]
    return paths + [match[1] for match in _MODULE.finditer(text) if not is_module(match[1])]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that GitHub makes from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: Path) -> list[str]:
    """Links to pages and headings that do not exist."""
    broken = []
    for match in _LINK.finditer(page.read_text()):
        target = page.parent / match[1] if match[1] else page
        if not target.exists() or (match[2] and match[2] not in map(anchor, headings(target))):
            broken.append(match[0])
    return broken


def test_sections_that_are_cited_exist() -> None:
    known = {heading.partition(".")[0] for heading in headings(_ROOT / "docs" / "architecture.md")}
    cited = {
        (str(path.relative_to(_ROOT)), number)
        for path in texts()
        if path != Path(__file__)
        for match in _SECTIONS.finditer(path.read_text())
        for number in re.findall(r"\d+", match[1])
    }
    assert len(cited) > 10
    assert {(path, number) for path, number in cited if number not in known} == set()


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")]
    found = {str(page.relative_to(_ROOT)): broken_links(page) for page in pages}
    assert {page: links for page, links in found.items() if links} == {}


def test_what_is_named_exists() -> None:
    found = {str(path.relative_to(_ROOT)): lost(path.read_text()) for path in texts() if path != Path(__file__)}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize("text", ["planner/rules/none.py", "see executor/nothing", "``planner.rules.nowhere``"])
def test_what_does_not_exist_is_found(text: str) -> None:
    assert lost(text)


@pytest.mark.parametrize(
    "text",
    [
        "planner/rules/node_rule.py",
        "executor/engine",
        "``planner.rules.errors``",
        "``planner.rules.optimise``",
    ],
)
def test_what_exists_is_not(text: str) -> None:
    assert not lost(text)

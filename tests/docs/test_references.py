"""Files and modules that comments and documents name exist."""

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
#: ``planner.rules.lift`` and ``planner.rules.lift.lift``
_MODULE: Final = re.compile(rf"``((?:{'|'.join(_PACKAGES)})(?:\.\w+)+)")
#: Made when the server runs.
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
    """A module, or something in one: what is behind the module is an attribute, of which one may have another."""
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
    """What a text names that does not exist."""
    paths = [match[1] for match in _PATH.finditer(text) if not is_there(match[1], match[2]) and match[1] not in _MADE]
    return paths + [match[1] for match in _MODULE.finditer(text) if not is_module(match[1])]


def test_what_is_named_exists() -> None:
    found = {str(path.relative_to(_ROOT)): lost(path.read_text()) for path in texts() if path != Path(__file__)}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize("text", ["planner/rules/none.py", "see executor/nothing", "``planner.rules.nowhere``"])
def test_what_does_not_exist_is_found(text: str) -> None:
    assert lost(text)


@pytest.mark.parametrize(
    "text", ["planner/rules/lift.py", "executor/engine", "``planner.rules.lift``", "``planner.rules.optimise``"]
)
def test_what_exists_is_not(text: str) -> None:
    assert not lost(text)

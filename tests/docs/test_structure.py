"""Limits on the number of files in a folder and of attributes in a class, as the architecture states them.

The worst five of each are printed (``pytest -s``). An attribute is a field of the class, or what ``__init__`` assigns
to ``self``; nested functions and inherited attributes do not count. Further: a module uses each private name that it
defines.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = ("server", "executor", "planner", "catalog", "protocol")
#: Nodes that contain statements.
_BLOCKS: Final = (ast.stmt, ast.ExceptHandler, ast.match_case)
#: The sentence of docs/architecture.md with both numbers.
_SENTENCE: Final = re.compile(r"no folder has more than (\d+) files, and\s+no class more than (\d+) attributes")


def files() -> list[Path]:
    return [path for package in _PACKAGES for path in sorted((_ROOT / package).rglob("*.py"))]


def by_folder() -> Counter[str]:
    """Files by folder, without those that describe the folder."""
    return Counter(str(path.parent.relative_to(_ROOT)) for path in files() if path.name != "__init__.py")


def attributes(node: ast.ClassDef) -> set[str]:
    fields = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            fields |= {part.attr for part in ast.walk(item) if isinstance(part, ast.Attribute) and _is_assigned(part)}
    return fields


def _is_assigned(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


def classes_of(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """All classes, also those within others and within functions."""
    statements: list[ast.AST] = [tree]
    for item in statements:  # expressions have none
        statements += [part for part in ast.iter_child_nodes(item) if isinstance(part, _BLOCKS)]
        if isinstance(item, ast.ClassDef):
            yield item


class Found(NamedTuple):
    """What the modules contain: attributes by class, and private names that are used nowhere."""

    classes: Counter[str]
    unused: list[str]


@pytest.fixture(scope="module")
def found() -> Found:
    """Each module is parsed once: that takes most of the time."""
    found = Found(Counter(), [])
    for path in files():
        text, name = path.read_text(), str(path.relative_to(_ROOT))
        tree = ast.parse(text)
        for node in classes_of(tree):
            found.classes[f"{name} {node.name}"] = len(attributes(node))
        words = Counter(re.findall(r"\w+", text))
        found.unused.extend(f"{name}: {each}" for each in private_names(tree) if words[each] == 1)
    return found


def test_folders_and_classes_are_as_small_as_the_architecture_says(found: Found) -> None:
    folders, classes = by_folder().most_common(5), found.classes.most_common(5)
    for name, count in (*folders, *classes):
        print(f"{count:4} {name}")
    stated = _SENTENCE.search((_ROOT / "docs" / "architecture.md").read_text())
    assert stated is not None, "docs/architecture.md says how large folders and classes are"
    assert folders[0][1] <= int(stated[1]), folders
    assert classes[0][1] <= int(stated[2]), classes


def private_names(tree: ast.Module) -> Iterator[str]:
    """Private functions, classes and constants of a module."""
    for item in tree.body:
        match item:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                names = []
        yield from (name for name in names if name.startswith("_") and not name.startswith("__"))


def test_modules_use_each_private_name_that_they_define(found: Found) -> None:
    assert not found.unused, found.unused

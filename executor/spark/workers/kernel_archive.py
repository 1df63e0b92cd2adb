"""The embedded engine's kernel for Python workers on other machines: of a cluster, or of a Connect endpoint.

Owns: ``archive``, our packages in one file, which Spark hands to its workers, and ``lacking``, a small job with which
workers report what is not installed on their machine. The packages that compute and print must have the server's exact
versions, or workers would give other answers than the server.
"""

from __future__ import annotations

import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[3]
_PACKAGES: Final = ("catalog", "planner", "executor")
_FILES: Final = (".py", ".tsv")
#: What the kernel imports, and whether its version matters.
_NEEDED: Final = {"duckdb": True, "sqlglot": True, "pglast": True, "pyarrow": False, "numpy": False, "msgspec": False}


def archive(folder: Path) -> Path:
    """A file of what workers import, in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "millstream.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for package in _PACKAGES:
            for source in sorted((_ROOT / package).rglob("*")):
                if source.suffix in _FILES:
                    written.write(source, source.relative_to(_ROOT))
    return path


def lacking(spark: Any, tasks: int) -> str:
    """What workers lack, in words; empty where some task of each of so many found everything, and computed."""
    from pyspark.sql.functions import udf

    wanted = {name: metadata.version(name) if is_exact else "" for name, is_exact in _NEEDED.items()}

    def probe(_: int) -> str:
        return lacking_here(wanted)

    rows = spark.range(0, tasks, 1, tasks).select(udf(probe, "string")("id").alias("lacking")).distinct().collect()
    found = sorted({name for row in rows for name in row["lacking"].split()})
    return f"install {', '.join(found)} where Spark's Python workers run" if found else ""


def lacking_here(wanted: dict[str, str]) -> str:
    """The distributions that this process has not, or has in another version, as pip wants them named."""
    missing = []
    for name, version in wanted.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = None
        if found is None or version not in ("", found):
            missing.append(f"{name}=={version}" if version else name)
    if not missing:
        import executor.embedded.kernel  # noqa: F401  (what a worker would fail with tells why)
    return " ".join(missing)

"""What pytest loads beside SQLAlchemy's dialect suite, on Millstream and on PostgreSQL: what both leave out.

The suite creates extensions that its tests do not use, and gives a materialized view an index.
"""

from __future__ import annotations

import importlib

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before the suite prepares its database."""
    importlib.import_module("sqlalchemy.dialects.postgresql.provision")
    provision = importlib.import_module("sqlalchemy.testing.provision")
    exclusions = importlib.import_module("sqlalchemy.testing.exclusions")
    provision.post_configure_engine.fns["postgresql"] = _nothing
    requirements = importlib.import_module("test.requirements").DefaultRequirements
    requirements.materialized_views = property(lambda self: exclusions.closed())


def _nothing(*given: object) -> None:
    """No extension is created."""

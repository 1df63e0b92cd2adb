"""How a command reaches the server: a client like any other, at the address that the configuration names.

Owns: the connection. Role, password and the like are PGUSER, PGPASSWORD and libpq's other variables, as for psql.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg

from server.operations.config import Config

#: No server is there, or it does not let the client in.
Unreachable = psycopg.OperationalError


def identity() -> tuple[str, str]:
    """The role and the database to connect as."""
    return os.environ.get("PGUSER", "millstream"), os.environ.get("PGDATABASE", "millstream")


def connect(config: Config, seconds: int = 10) -> psycopg.Connection[Any]:
    """An autocommit connection. Raises Unreachable."""
    user, database = identity()
    return psycopg.connect(
        host=config.listen.host,
        port=config.listen.port,
        user=user,
        dbname=database,
        connect_timeout=seconds,
        application_name="millstream",
        autocommit=True,
    )

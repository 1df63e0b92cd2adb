"""Who may come in, as far as files say it: the table of hosts and the certificates, read at the start and on request.

Owns: where these files are, the checks that nobody can listen beyond this machine without TLS or trust what is beyond
it, and reading them anew: what has mistakes is logged and not put in force. Calls may be made from any thread.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from server.login.hba import DEFAULT, Table, read_table
from server.net.tls import Secured, TlsError, load
from server.operations.config import Config, ConfigError

#: The table's file in the data folder, where no other is set.
HBA_FILE: Final = "hba.conf"

logger = logging.getLogger(__name__)


class Access:
    """The table and the certificates in force. Raises ConfigError where the server must not start with them."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.secured = self._certificates()
        self.table = self.read()
        if self.table.mistakes:
            raise ConfigError(self.table.complaint())

    @property
    def hba_file(self) -> Path:
        """Where the table is, whether or not there is a file."""
        chosen = self._config.hba_file
        return self._within(chosen) if chosen else self._config.data / HBA_FILE

    def read(self) -> Table:
        """The table as the file says it now, mistakes included; without a file that is not named, the default one."""
        path = self.hba_file
        try:
            return read_table(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            if not self._config.hba_file:
                return read_table(DEFAULT, "(default)")
            raise ConfigError(f"hba_file = {path}: no such file") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"hba_file = {path}: {error}") from None

    def reload(self) -> bool:
        """Reads all anew; whether it is in force."""
        try:
            table, secured = self.read(), self._certificates()
        except ConfigError as error:
            logger.error("hba_file and certificates are not reloaded: %s", error)
            return False
        for mistake in table.mistakes:
            logger.error(
                "hba_file and certificates are not reloaded: %s, line %d: %s", table.name, mistake.line, mistake.message
            )
        if table.mistakes:
            return False
        self.table, self.secured = table, secured
        logger.info("reloaded %s", table.name)
        return True

    def _certificates(self) -> Secured | None:
        config = self._config
        if not config.ssl:
            return None
        authority = self._within(config.ssl_ca_file) if config.ssl_ca_file else None
        files = self._within(config.ssl_cert_file), self._within(config.ssl_key_file)
        try:
            return load(*files, authority, config.ssl_min_protocol_version)
        except TlsError as error:
            raise ConfigError(str(error)) from None

    def _within(self, name: str) -> Path:
        """A file that is named from the data folder on."""
        return self._config.data / Path(name).expanduser()

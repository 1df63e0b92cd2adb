"""``python -m server``."""

from server.main import command

command()

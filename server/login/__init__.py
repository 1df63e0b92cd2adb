"""From the first byte of a connection to its session: who the client is and whether it may come in.

``startup`` is the handler of a new connection, ``authentication`` proves an identity by the rules that ``hba`` reads
from the table of hosts, ``access_files`` reads this table and the certificates again. ``peers`` answers other servers
of the storage.
"""

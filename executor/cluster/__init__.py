"""Several servers with one storage folder: their entries and leases, and the owner of each query (architecture, section
8).

``storage`` is the folder and its lock, ``pulse`` says whether it answers, ``registry`` the servers with their leases
and epochs, ``claims`` has the owner of each query, ``failpoints`` ends a process where a test asks for it. What moves
from one server to another is in ``executor/separation``.
"""

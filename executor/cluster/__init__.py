"""Several servers with one storage folder: who they are, who lives, and whose a query is (architecture, section 8).

``storage`` is the folder and its lock, ``pulse`` says whether it answers, ``registry`` the servers with their leases
and epochs, ``claims`` says which of them a query belongs to, ``failpoints`` ends a process where a test wants it to.
What moves from one server to another is in ``executor/separation``.
"""

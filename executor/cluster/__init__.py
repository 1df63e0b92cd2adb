"""Several servers with one storage folder: their entries and leases, and the owner of each query and each view
(architecture, section 8).

``storage`` is the folder, ``lock`` its lock, and ``pulse`` tells whether it answers. ``registry`` has the servers with
their leases and epochs, ``claims`` the owner of each query, ``view_ownership`` the owner of each view, and
``succession`` the server that continues a lost server's views. ``logs`` places a server's log. Queries move by
``executor/separation``, views by ``executor/moving``.
"""

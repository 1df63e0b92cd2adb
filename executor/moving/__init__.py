"""Continuous views that go from server to server, while their streams stay where the writers are.

``cluster.view_ownership`` says on the storage whose a view is, ``view_artifact`` is the state in which it leaves,
``departure`` gives it to another server, ``takeover`` begins with it there and ``guests`` makes it a view of that
server; ``view_moves`` does all of that when it is wanted. ``checkpoints`` keeps copies on the storage, and
``automatic_copies`` also of views at home, from which other servers go on when a server is gone
(``cluster.succession``). A view's **home** is the server of its stream; elsewhere it is a **guest**.
"""

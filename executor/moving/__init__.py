"""Continuous views that go from server to server, while their streams stay where the writers are.

``ownership`` says on the storage whose a view is, ``artifact`` is the state in which it leaves, ``entering`` makes it a
view of this server, ``replica`` has the other server's rows as they come, and ``views`` does all of that when it is
wanted. ``checkpoints`` keeps copies on the storage, ``keeping`` also of views at home, from which ``heirs`` go on
when a server is gone, and ``elsewhere`` reads at home what another server maintains. A view's **home** is the server of
its stream; elsewhere it is a **guest**.
"""

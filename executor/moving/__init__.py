"""Continuous views that move from server to server, while their streams stay where the writers are.

A view's **home** is the server of its stream; on any other server the view is a **guest**. A move takes these steps:

1. ``movability`` tells which views can leave, and ``change_guards`` what of such views may not change meanwhile.
2. ``view_export`` writes the states of a view (``exported_states``) as an artifact (``view_artifact``), and changes the
   view's entry on the storage (``cluster.view_ownership``).
3. ``view_import`` continues the view on the server that the entry names: ``guests`` creates it there,
   ``state_recovery`` reads the states or rebuilds them, and ``view_placement`` applies an entry at the view's home.
4. ``view_migration`` has the requests, and the thread that does what the entries say.

``checkpoints`` keeps copies of states on the storage, from which another server continues when a server is lost
(``cluster.succession``); ``automatic_copies`` has them made for views at home. ``adoption`` makes the streams of a lost
home this server's. ``answers`` answers other servers' reads.
"""

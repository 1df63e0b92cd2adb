"""Continuous views while their server runs (architecture, sections 1, 3 and 5; thesis, chapter 4).

``runtime`` is one view, ``content`` its states in memory, ``storage`` what of them is on the disk. ``expiry`` drops
groups, ``index`` finds a view's rows by key, and ``pins`` keeps LSNs that open snapshots read. Background maintenance
is in ``executor.upkeep``.
"""

"""Continuous views while their server runs (architecture, sections 1, 3 and 5; thesis, chapter 4).

``runtime`` is one view, ``content`` its states in memory, ``storage`` what of them is on the disk. ``maintenance``
brings them on in the background and ``jobs`` tells of it, ``frontiers`` and ``expiry`` free what nobody needs,
``admission`` holds writers back. ``index`` and ``indexes`` find rows by key; ``changes``, ``change_scan`` and ``watch``
tell what became of them.
"""

"""Relational algebra, the tree between SQL text and both engines: relations, scalars, and what works on any tree.

``relations`` and ``scalars`` are the nodes. ``walk`` is the one walker over them, ``functions`` lists every function
that a node may call, ``validate`` asserts that a tree is well formed. ``serialize`` writes trees as JSON; ``allowed``
checks a tree that came from elsewhere; ``signature`` finds equal trees whose columns have other names.
"""

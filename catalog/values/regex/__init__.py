"""PostgreSQL's advanced regular expressions (regex/ in its sources).

1. ``syntax.parse`` reads a text into a ``tree``.
2. ``backtracking`` says whether a backtracking engine (RE2, Java's) finds the same match; then an engine does the work.
3. Otherwise ``matching.find`` finds the match, the leftmost and then the longest one. ``dissection`` finds out what the
   groups hold, and whether back references fit.
"""

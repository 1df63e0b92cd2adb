"""DuckDB's dialect of our algebra (``executor.printing``): ``dialect`` is its door, ``functions`` the allow-list, and a
module for each family of types and of functions.
"""

"""Benchmarks: one module per line of the aims in docs/benchmarks.md, each beside PostgreSQL in the same run.

Each module has ``TITLE`` and ``run(rig) -> list[Row]``. ``python -m bench`` runs all of them (or those named), prints a
table, keeps the raw figures as JSON under bench/results/ and writes the summary into docs/benchmarks.md.
"""

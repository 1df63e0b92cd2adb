"""The embedded engine: DuckDB in-process, over Arrow. The only package that imports duckdb."""

"""What names mean: relations, types and schemas, and the names of columns that have none.

``search_path`` is the one place that walks a search path. ``relations`` and ``type_names`` find relations and types,
``row_versions`` makes the system columns of a row, ``output_names`` gives a name to an unnamed select item.
"""

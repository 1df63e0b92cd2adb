"""SQL values: their types, the forms in which Arrow carries them, their texts, and computations with PostgreSQL's
results.

Functions here take and give values, and know no object of a database. Every layer may import them; of the catalog, the
protocol imports nothing else.

- ``types``: every SQL type, and the Arrow type that carries it.
  ``interval_fields`` are what INTERVAL types name, and ``nested_types`` walks types within types.
- ``errors``: ``SqlError``, an error with PostgreSQL's SQLSTATE, which any layer raises and the client sees.
- ``times``, ``ranges``, ``multiranges``, ``money``, ``array_shapes``: values that Arrow carries in a form of ours.
- ``forms``: the written forms of types that Arrow carries as text, such as inet; ``opaque`` lists these types.
- ``json_documents`` and ``jsonpath``: JSON as text, and the paths that search it.
- ``regex``: PostgreSQL's regular expressions.
- ``identifiers``: names as SQL writes them.
"""

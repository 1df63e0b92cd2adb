"""The SQL/JSON path language, as in PostgreSQL's type jsonpath.

``nodes`` defines a path's parts, ``syntax`` parses them, ``text`` prints them as PostgreSQL does, ``evaluation`` finds
the ``items`` of a document. Knows neither engines nor SQL.

https://www.postgresql.org/docs/15/functions-json.html#FUNCTIONS-SQLJSON-PATH
"""

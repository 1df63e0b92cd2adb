"""The path language of SQL/JSON, as PostgreSQL's type jsonpath has it.

``nodes`` are a path's parts, ``syntax`` reads them, ``text`` prints them as PostgreSQL does, ``evaluation`` finds
``items`` of a document. Knows neither engines nor SQL.

https://www.postgresql.org/docs/15/functions-json.html#FUNCTIONS-SQLJSON-PATH
"""

"""Reading at one LSN: from an optimised plan to rows.

``engine_choice`` picks the engine, ``reader`` reads tables, views and system views at one moment (``moments``),
``view_reader`` has the rows of one view at it, and ``stream_query`` answers a query of a stream itself.
``present_rows`` are those of now, for feeds and other servers.
"""

"""Streams while their server runs (architecture, section 1; thesis, chapter 3): ``runtime`` keeps what has arrived,
``appender`` takes rows in, ``scanning`` waits for them, and ``arriving`` answers queries of the stream itself.
"""

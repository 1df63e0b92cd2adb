"""Streams while their server runs (thesis, chapter 3): ``runtime`` keeps what has arrived, ``appender`` takes single
rows in. Queries that wait for a stream's rows are in ``executor.subscriptions``.
"""

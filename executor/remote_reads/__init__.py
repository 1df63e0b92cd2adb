"""Reads of data that another server has: ``remote_views`` reads views that another server maintains, ``home_tables``
reads tables of a guest's home. ``messages`` encodes questions and answers. ``server/login/peers`` has the
connections.
"""

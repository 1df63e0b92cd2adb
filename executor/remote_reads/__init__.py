"""Reads of what another server has: ``remote_views`` reads a view that another server maintains, ``home_tables`` the
tables of a guest's home. ``messages`` encodes the questions and answers. The connections are the server's.
"""

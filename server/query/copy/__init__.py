"""COPY between a client, or a file of the server, and the executor.

``copying`` has the stages of COPY FROM: data are cut into blocks, which ``protocol.copy`` parses, and
``executor.sql.copy_from`` takes the rows to the log. It also runs COPY TO. ``server_files`` reads and writes files of
the server; ``names`` converts columns whose texts are names, such as regclass.
"""

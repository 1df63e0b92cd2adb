"""Files that are read as rows: by queries (foreign tables of files), and by streams that follow a folder.

1. ``file_tables`` finds the files of a foreign table, in which ``delta_tables`` and ``partition_pruning`` choose those
   that a query needs; ``parquet_footers`` tells their sizes.
2. ``followed_folders`` tells which files have arrived in a folder. ``executor.upkeep.folder_watcher`` writes them to
   the log, and ``arrived_files`` keeps their names.
3. ``reader`` gives the rows of CSV, JSON and Parquet (``csv_rows``, ``json_rows``, ``plain_json``, ``parquet_rows``)
   to both engines; ``converted_files`` keeps them as Parquet where an engine cannot read a file as it is.
"""

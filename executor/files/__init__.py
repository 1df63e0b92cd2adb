"""Files that are read as rows: ``foreign`` are foreign tables of files, ``following`` and ``watching`` the growing
folders that feed streams; ``delta``, ``footers`` and ``pruning`` know which of their files a query needs.
"""

"""Rules about the columns that a relation computes: ``merge_projects`` makes one projection of two, and
``prune_columns`` drops columns that nothing above uses.
"""

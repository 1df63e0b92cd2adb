"""A session's transaction: when it begins and ends, what it refuses, and what follows it besides data."""

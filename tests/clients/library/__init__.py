"""A Django application for the tests: authors and their books."""

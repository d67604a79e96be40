"""Sorting: the problem, its algorithms, the operation, and the public functions."""

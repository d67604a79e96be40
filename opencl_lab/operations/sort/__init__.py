"""Sorting: the problem, its algorithm, the operation, and the public functions."""

"""Sorting: the problem, its algorithm, the operation, and the public functions."""

from opencl_lab.operations.sort.functions import argsort, sort, sort_by_key
from opencl_lab.operations.sort.odd_even_merge import OddEvenMerge
from opencl_lab.operations.sort.operation import ORDERS, SORT, Sort
from opencl_lab.operations.sort.problem import KEY_TYPES, SortProblem

__all__ = [
    "KEY_TYPES",
    "ORDERS",
    "SORT",
    "OddEvenMerge",
    "Sort",
    "SortProblem",
    "argsort",
    "sort",
    "sort_by_key",
]

"""Comparisons of data on the device."""

import numpy as np

from opencl_lab.lab.engine.request import Point, Request
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.problem import SortProblem

INT32 = np.dtype(np.int32)


def compared(device, n=2000, **options):
    problem = SortProblem(n, INT32)
    return run_point(
        Point(SORT, problem, lambda: SORT.generate(problem, 0), Request(**options)), device=device
    )

"""Estimated times of selections on one thread of a CPU: see `opencl_lab.ops.estimates`."""

from __future__ import annotations

from opencl_lab.ops.select.problem import SearchProblem, TopkProblem, UniqueProblem

KEY_NS = 1.2, 2.0
"""To look at a key of up to 4 bytes, and of 8."""
ROW_NS = 700.0
"""A row, besides its keys."""
RANK_NS = 0.2
"""To compare two keys for their ranks."""
HEAD_NS = 1.2
"""To compare a sorted key with the one before it."""
LOOK_NS = 0.4, 0.6
"""A look of a search at a key of up to 4 bytes, and of 8."""
SORTER_LOOK_NS = 0.8
"""What a look takes longer with a sorter."""


def ranked_us(problem: TopkProblem) -> float:
    """Return the microseconds of ``radix-rank``."""
    each = ROW_NS + KEY_NS[1] * problem.n + RANK_NS * problem.k**2
    return 1e-3 * problem.rows * each


def selected_us(problem: TopkProblem) -> float:
    """Return the microseconds of ``radix-select`` without its sort."""
    return 1e-3 * problem.rows * (ROW_NS + KEY_NS[problem.dtype.itemsize == 8] * problem.n)


def heads_us(problem: UniqueProblem) -> float:
    """Return the microseconds to find the heads of runs."""
    return 1e-3 * HEAD_NS * problem.n


def search_us(problem: SearchProblem) -> float:
    """Return the microseconds of all searches."""
    look = LOOK_NS[problem.dtype.itemsize == 8] + SORTER_LOOK_NS * problem.sorter
    return 1e-3 * look * problem.m * problem.n.bit_length()

"""Where a search begins, and which part of a space it tries: no device, no kernel."""

from dataclasses import replace

import numpy as np
import pytest
from tuned_entries import DEFAULT, GPU, N1024, SISTER, store, tuned

from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.prune import points_of
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import RELATIVES, _starts
from opencl_lab.ops.gemm.problem import GemmProblem

H200 = replace(
    GPU,
    native_vector_bytes=4,
    global_memory=140 << 30,
    max_allocation=35 << 30,
    capabilities=replace(GPU.capabilities, forward_progress=True, inline_ptx=True),
)
CPU = replace(H200, kind="cpu", compute_capability=None, native_vector_bytes=32)


def starts(problem=N1024):
    return _starts(TuningTask(GEMM, "tiled", problem, GPU))


@pytest.mark.usefixtures("private_data")
def test_a_search_begins_with_what_served_like_problems_the_nearest_first():
    assert starts() == [DEFAULT]
    far = GemmProblem(4096, 4096, 4096)
    store(GPU, 0, far)
    store(GPU, 1, GemmProblem(512, 512, 512, dtype=np.dtype(np.float64)))
    store(SISTER, 2, N1024)
    store(replace(GPU, kind="cpu"), 3, N1024)
    assert starts() == [DEFAULT, tuned(2), tuned(0), tuned(1)]  # first what is in use
    assert starts(far)[1] == tuned(0)
    for number in range(5):
        store(replace(SISTER, driver=f"{number}"), number)
    assert len(starts()) <= RELATIVES + 1


@pytest.mark.few(1)
@pytest.mark.parametrize("made_up", [H200, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize(
    ("operation", "algorithm", "options"),
    [
        ("sort", "radix", {"n": 100_000}),
        ("sort", "radix", {"n": 50_000_000, "dtype": "int64"}),
        ("conv2d", "register", {"size": 1024, "ksize": 5}),
        ("conv2d", "register", {"size": 4096, "ksize": 15, "dtype": "float64"}),
        ("conv2d", "separable", {"size": 1024, "ksize": 31, "filter": "gaussian"}),
    ],
)
def test_what_is_searched_has_thousands_of_points_at_most(operation, algorithm, options, made_up):
    chosen = get_operation(operation)
    problem, found = chosen.problem(**options), chosen.algorithm(algorithm).on(made_up.kind)
    built_in = found.default_config(problem, made_up)
    points = points_of(found, problem, made_up, (built_in,))
    assert 40 <= points.pruning.left < 6000
    assert points.neighbours(built_in)
    for name, value in built_in.items():  # what is fixed is as it is built in
        values = next(item.values for item in points.space.parameters if item.name == name)
        assert len(values) > 1 or value in values
    for config in list(points)[:: points.pruning.left // 20]:
        assert found.space.violation(config) is None

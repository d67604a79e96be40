"""Matrix products: BLAS's results for every kind of array, and plans that fit their devices."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from gemm_checks import (
    ALGORITHMS,
    PACKED_FORMS,
    SMALL,
    assert_product,
    check,
    matrices,
    skip_untaken,
)

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm import bind as binding
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import GemmProblem

SHAPES = [
    (0, 0, 0), (0, 5, 3), (5, 0, 3), (4, 3, 0), (1, 1, 1), (1, 9, 1), (9, 1, 5), (1, 1, 70),
    (8, 16, 8), (16, 32, 16), (7, 15, 9), (9, 17, 7), (33, 31, 35), (3, 70, 2), (70, 3, 130),
    (64, 64, 64),
]  # fmt: skip


@pytest.fixture(autouse=True)
def taken(request):
    """Skip the tests of an algorithm that is not for the device under test."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    algorithm = parameters.get("algorithm")
    if algorithm in ALGORITHMS and "device" in request.fixturenames:
        skip_untaken(algorithm, request.getfixturevalue("device"))


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", ["naive", "tiled"])
@pytest.mark.parametrize("trans_a", [False, True])
def test_every_shape(algorithm, trans_a, rng, queue):
    """Of algorithms that have no tests of their own; one of a and b is transposed."""
    for m, n, k in SHAPES:
        problem = GemmProblem(
            m, n, k, alpha=-1.5, beta=0.75 * (m != n), trans_a=trans_a, trans_b=not trans_a
        )
        check(rng, problem, algorithm, SMALL[algorithm], queue)


@pytest.mark.full
@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("tiled", {"TILE": 5, "LOCAL_PAD": 3, "UNROLL": 5}),
        ("blocked", {"WORK_M": 1, "WORK_N": 1, "WG_M": 2, "WG_N": 3, "TILE_K": 6, "SPLITS": 5}),
        ("blocked", {"WORK_M": 3, "WORK_N": 6, "TILE_K": 12, "WG_M": 6, "LOCAL_PAD": 2}),
    ],
)
def test_values_that_the_space_does_not_list(algorithm, config, rng, queue):
    """The matrix of all tests goes through those that it lists."""
    for m, n, k in [(1, 1, 1), (7, 13, 5), (41, 66, 37), (32, 64, 16)]:
        problem = GemmProblem(m, n, k, beta=1.0, trans_a=True, trans_b=True)
        check(rng, problem, algorithm, {**SMALL[algorithm], **config}, queue)


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_not_needed_is_not_read(algorithm, rng, queue):
    options = {"algorithm": algorithm, "config": SMALL[algorithm], "queue": queue}
    a, b, c = matrices(rng, 9, 17, 5)
    nan = np.full_like
    assert_product(gemm(a, b, beta=0, c=nan(c, np.nan), **options), a, b)
    right = np.float32(3) * c
    for bad in (np.nan, np.inf):
        result = gemm(nan(a, bad), nan(b, bad), alpha=0, beta=3, c=c, **options)
        np.testing.assert_array_equal(result, right)
        assert not gemm(nan(a, bad), b, alpha=0, **options).any()
    for alpha in (1, np.inf, np.nan):
        empty = gemm(a[:, :0], b[:0], alpha=alpha, beta=3, c=c, **options)
        np.testing.assert_array_equal(empty, right)
        assert not gemm(a[:, :0], b[:0], alpha=alpha, **options).any()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        *((algorithm, {}) for algorithm in ALGORITHMS),
        ("blocked", {"BUFFERS": 1, "SPLITS": 2}),
        *(("packed", changes) for changes in list(PACKED_FORMS.values())[1:]),
    ],
)
def test_nan_reaches_exactly_its_row_and_column(algorithm, changes, rng, queue):
    options = {"algorithm": algorithm, "config": {**SMALL[algorithm], **changes}, "queue": queue}
    a, b, _ = matrices(rng, 19, 21 if algorithm != "gemv" else 3, 13)
    a[18, 12], b[3, -1] = np.nan, np.inf
    right = np.zeros((19, b.shape[1]), bool)
    right[18], right[:, -1] = True, True
    np.testing.assert_array_equal(~np.isfinite(gemm(a, b, **options)), right)


def test_a_transposed_view_is_not_copied(rng, queue):
    a, b, _ = matrices(rng, 6, 7, 8, trans_a=True)
    problem, inputs = GEMM.problem_of({"a": a.T, "b": b})
    assert inputs["a"] is not a
    assert np.shares_memory(inputs["a"], a)
    assert problem == GemmProblem(6, 7, 8, trans_a=True)
    device_a = cl.array.to_device(queue, a)
    stored, turned = binding._stored(device_a.T, queue)
    assert turned
    assert stored.base_data == device_a.base_data


DEVICE_VIEWS = {
    "transposed": (lambda x: np.ascontiguousarray(x.T), lambda d: d.T),
    "offset": (lambda x: np.pad(x, ((2, 0), (0, 0))), lambda d: d[2:]),
    "offset-transposed": (lambda x: np.pad(x.T, ((2, 0), (0, 0))), lambda d: d[2:].T),
    "strided": (lambda x: np.repeat(x, 2, 1), lambda d: d[:, ::2]),
    "inside": (lambda x: np.pad(x, 1), lambda d: d[1:-1, 1:-1]),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("view", DEVICE_VIEWS)
def test_any_layout_on_the_device(view, rng, queue):
    store, look = DEVICE_VIEWS[view]
    a, b, c = matrices(rng, 14, 22, 10)
    views = [look(cl.array.to_device(queue, np.ascontiguousarray(store(x)))) for x in (a, b, c)]
    options = {"alpha": 2, "beta": 0.5, "algorithm": "blocked", "config": SMALL["blocked"]}
    result = gemm(views[0], views[1], c=views[2], **options)
    assert result.queue == queue
    assert_product(result.get(), a, b, c, 2, 0.5)
    # The last view also receives the result, in its own layout.
    assert gemm(views[0], views[1], c=views[2], out=views[2], **options) is views[2]
    whole = views[2].base_data
    raw = np.empty(whole.size // 4, np.float32)
    cl.enqueue_copy(queue, raw, whole)
    start = raw[views[2].offset // 4 :]
    got = np.lib.stride_tricks.as_strided(start, views[2].shape, views[2].strides)
    assert_product(got.copy(), a, b, c, 2, 0.5)


def test_device_arrays_are_not_waited_for(rng, queue):
    a, b, _ = matrices(rng, 20, 20, 20)
    device_a, device_b = (cl.array.to_device(queue, x) for x in (a, b))
    gemm(device_a, device_b).get()  # builds
    gate = cl.UserEvent(queue.context)
    device_a.add_event(gate)
    result = gemm(device_a, device_b)
    assert result.events[-1].command_execution_status != cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert_product(result.get(), a, b)


def test_wrong_sides_and_queues(rng, queue, own_queue):
    a, b, c = matrices(rng, 4, 4, 4)
    device_a, device_b = (cl.array.to_device(queue, x) for x in (a, b))
    with pytest.raises(InvalidProblem, match="a, b must all be host arrays or all be device"):
        gemm(device_a, b)
    with pytest.raises(InvalidProblem, match="same side"):
        gemm(device_a, device_b, out=c)
    other = own_queue(queue.device)
    with pytest.raises(InvalidProblem, match="different contexts"):
        gemm(device_a, cl.array.to_device(other, b))

"""Matrix products: BLAS's results for every kind of array, and plans that fit their devices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from gemm_checks import ALGORITHMS, SMALL, assert_product, matrices, skip_untaken, takes

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


ELSEWHERE = {("packed", True), ("blocked", False)}
"""Algorithms that have tests of their own with both layouts alike, or with both different."""


@pytest.mark.parametrize(
    ("algorithm", "trans_a", "trans_b"),
    [
        (algorithm, trans_a, trans_b)
        for algorithm, trans_a, trans_b in product(ALGORITHMS, (False, True), (False, True))
        if (algorithm, trans_a == trans_b) not in ELSEWHERE
    ],
)
def test_every_shape_and_transposition(algorithm, trans_a, trans_b, rng, queue):
    """Each shape with either layout of a and of b, but not with all four of both."""
    shapes = SHAPES[trans_a != trans_b :: 2]
    if algorithm == "gemv":  # whose layouts have tests of their own
        shapes = [shape for shape in shapes if max(shape) < 10]
    for m, n, k in (shape for shape in shapes if takes(algorithm, *shape[:2])):
        a, b, c = matrices(rng, m, n, k, trans_a=trans_a, trans_b=trans_b)
        before = [x.tobytes() for x in (a, b, c)]
        options = {"trans_a": trans_a, "trans_b": trans_b, "algorithm": algorithm}
        options |= {"config": SMALL[algorithm], "queue": queue}
        op_a, op_b = a.T if trans_a else a, b.T if trans_b else b
        if trans_a == trans_b:  # the matrix of all tests has the others
            result = gemm(a, b, alpha=-1.5, beta=0.75, c=c, **options)
            assert_product(result, op_a, op_b, c, -1.5, 0.75)
        else:
            assert_product(gemm(a, b, **options), op_a, op_b)
        assert [x.tobytes() for x in (a, b, c)] == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
def test_default_configurations(algorithm, dtype, rng, queue, device):
    if dtype == "float64" and not device.capabilities.fp64:
        pytest.skip("no double precision")
    for m, n, k in [(257, 19, 300), (130, 131, 129), (1, 1, 1)][dtype == "float64" :]:
        if not takes(algorithm, m, n):
            continue
        a, b, c = matrices(rng, m, n, k, dtype)
        result = gemm(a, b, alpha=2, beta=-1, c=c, algorithm=algorithm, queue=queue)
        assert_product(result, a, b, c, 2, -1)


CORNERS = [  # beside those of the space, which the matrix of all tests goes through
    ("naive", {"WG_M": 32, "WG_N": 4}),
    ("tiled", {"TILE": 5, "LOCAL_PAD": 3, "UNROLL": 5}),
    *(
        ("blocked", {**SMALL["blocked"], **changes})
        for changes in (
            {"BUFFERS": 1, "SPLITS": 3, "LOCAL_PAD": 0},
            {"WORK_N": 16, "WG_N": 1, "WG_M": 1, "BUFFERS": 1, "SWIZZLE": 1},
            {"WORK_M": 1, "WORK_N": 1, "WG_M": 2, "WG_N": 3, "TILE_K": 6, "SPLITS": 5},
            {"WORK_M": 3, "WORK_N": 6, "TILE_K": 12, "WG_M": 6, "LOCAL_PAD": 2},
        )
    ),
]


@pytest.mark.parametrize(
    ("algorithm", "config", "trans"),
    [(*corner, place % 2 == 0) for place, corner in enumerate(CORNERS)],
)
def test_corner_configurations_stay_inside_the_result(algorithm, config, trans, rng, queue):
    for m, n, k in [(1, 1, 1), (7, 13, 5), (41, 66, 37), (32, 64, 16)]:
        a, b, c = matrices(rng, m, n, k, trans_a=trans, trans_b=trans)
        raw = np.full(m * n + 256, 7e33, np.float32)
        out = raw[128:-128].reshape(m, n)
        options = {"trans_a": trans, "trans_b": trans, "algorithm": algorithm, "config": config}
        assert gemm(a, b, beta=1, c=c, out=out, queue=queue, **options) is out
        assert_product(out, a.T if trans else a, b.T if trans else b, c, 1, 1)
        assert (raw[:128] == np.float32(7e33)).all()
        assert (raw[-128:] == np.float32(7e33)).all()


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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nan_reaches_exactly_its_row_and_column(algorithm, rng, queue):
    options = {"algorithm": algorithm, "config": SMALL[algorithm], "queue": queue}
    for changes in ({}, {"BUFFERS": 1, "SPLITS": 2}) if algorithm == "blocked" else ({},):
        options["config"] = {**SMALL[algorithm], **changes}
        a, b, _ = matrices(rng, 19, 21, 13) if algorithm != "gemv" else matrices(rng, 19, 3, 13)
        a[18, 12], b[3, -1] = np.nan, np.inf
        right = np.zeros((19, b.shape[1]), bool)
        right[18], right[:, -1] = True, True
        np.testing.assert_array_equal(~np.isfinite(gemm(a, b, **options)), right)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "inside": lambda x: np.pad(x, 3)[3:-3, 3:-3],
    "inside-fortran": lambda x: np.pad(x.T, 3)[3:-3, 3:-3].T,
    "swapped-bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "list": lambda x: x.astype(float).tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_on_the_host(layout, rng, queue):
    dtype = "float64" if layout == "list" else "float32"
    a, b, c = matrices(rng, 11, 18, 9, dtype)
    change = LAYOUTS[layout]
    options = {"algorithm": "blocked", "config": SMALL["blocked"], "queue": queue}
    result = gemm(change(a), change(b), alpha=2, beta=0.5, c=change(c), **options)
    assert_product(result, a, b, c, 2, 0.5)
    result = gemm(change(a.T), change(b.T), trans_a=True, trans_b=True, **options)
    assert_product(result, a, b)


def test_misaligned_and_read_only_inputs(rng, queue):
    a, b, _ = matrices(rng, 6, 7, 8)
    raw = np.frombuffer(b"\0" + a.tobytes(), np.uint8)
    odd = raw[1:].view(np.float32).reshape(a.shape)
    assert not odd.flags.aligned
    b.flags.writeable = False
    assert_product(gemm(odd, b, queue=queue), a, b)


def test_broadcast_input(rng, queue):
    _, b, _ = matrices(rng, 6, 7, 8)
    a = np.broadcast_to(np.float32(0.25), (6, 8))
    assert_product(gemm(a, b, queue=queue), a, b)


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


# ------------------------------------------------------------------ out and device arrays


@pytest.mark.parametrize("which", ["new", "fortran", "strided", "a", "b", "c", "overlap"])
def test_out_on_the_host(which, rng, queue):
    a, b, c = matrices(rng, 12, 12, 12)
    right = (a.copy(), b.copy(), c.copy())
    big = np.zeros((24, 24), np.float32)
    big[3:15, :12].flat = a.flat
    out = {
        "new": np.empty((12, 12), np.float32),
        "fortran": np.empty((12, 12), np.float32, order="F"),
        "strided": big[::2, ::2],
        "a": a,
        "b": b,
        "c": c,
        "overlap": big[2:14, :12],
    }[which]
    given = big[3:15, :12] if which == "overlap" else a
    assert gemm(given, b, alpha=2, beta=3, c=c, out=out, queue=queue) is out
    assert_product(np.array(out), *right, 2, 3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_device_arrays(algorithm, rng, queue):
    options = {"algorithm": algorithm, "config": SMALL[algorithm]}
    a, b, c = matrices(rng, 14, 22, 10)
    device = [cl.array.to_device(queue, x) for x in (a, b, c)]
    result = gemm(device[0], device[1], alpha=2, beta=0.5, c=device[2], **options)
    assert isinstance(result, cl.array.Array)
    assert result.queue == queue
    assert_product(result.get(), a, b, c, 2, 0.5)
    for array, host in zip(device, (a, b, c), strict=True):
        np.testing.assert_array_equal(array.get(), host)


DEVICE_VIEWS = {
    "transposed": (lambda x: np.ascontiguousarray(x.T), lambda d: d.T),
    "offset": (lambda x: np.pad(x, ((2, 0), (0, 0))), lambda d: d[2:]),
    "offset-transposed": (lambda x: np.pad(x.T, ((2, 0), (0, 0))), lambda d: d[2:].T),
    "strided": (lambda x: np.repeat(x, 2, 1), lambda d: d[:, ::2]),
    "inside": (lambda x: np.pad(x, 1), lambda d: d[1:-1, 1:-1]),
}


@pytest.mark.parametrize("view", DEVICE_VIEWS)
def test_any_layout_on_the_device(view, rng, queue):
    store, look = DEVICE_VIEWS[view]
    a, b, c = matrices(rng, 14, 22, 10)
    views = [look(cl.array.to_device(queue, np.ascontiguousarray(store(x)))) for x in (a, b, c)]
    options = {"alpha": 2, "beta": 0.5, "algorithm": "blocked", "config": SMALL["blocked"]}
    assert_product(gemm(views[0], views[1], c=views[2], **options).get(), a, b, c, 2, 0.5)
    # The last view also receives the result, in its own layout.
    assert gemm(views[0], views[1], c=views[2], out=views[2], **options) is views[2]
    whole = views[2].base_data
    raw = np.empty(whole.size // 4, np.float32)
    cl.enqueue_copy(queue, raw, whole)
    start = raw[views[2].offset // 4 :]
    got = np.lib.stride_tricks.as_strided(start, views[2].shape, views[2].strides)
    assert_product(got.copy(), a, b, c, 2, 0.5)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_empty_device_arrays(shape, rng, queue):
    a, b, c = matrices(rng, *shape)
    device = [cl.array.to_device(queue, x) for x in (a, b, c)]
    result = gemm(device[0], device[1], beta=2, c=device[2])
    np.testing.assert_array_equal(result.get(), 2 * c)


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

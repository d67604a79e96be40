"""Matrix products: BLAS's results for every kind of array, and plans that fit their devices."""

from __future__ import annotations

import re

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

from opencl_lab import kernels
from opencl_lab.device import Capabilities, Device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operations.gemm import operation
from opencl_lab.operations.gemm import problem as problems
from opencl_lab.operations.gemm.functions import gemm
from opencl_lab.operations.gemm.operation import GEMM
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.plan import check_plan
from opencl_lab.template import render

ALGORITHMS = ("naive", "tiled", "blocked")
# Small tiles, so that small matrices have inner tiles and edges; one program for many shapes.
SMALL = {
    "naive": {"WG_M": 2, "WG_N": 4},
    "tiled": {"TILE": 8, "UNROLL": 4},
    "blocked": {
        "TILE_M": 8, "TILE_N": 16, "TILE_K": 8, "WORK_M": 2, "WORK_N": 4, "VECTOR_WIDTH": 4,
        "VECTOR_ROWS": 2, "LOCAL_PAD": 1, "UNROLL": 2, "STAGE_A": True, "STAGE_B": True,
        "STAGE_UNROLL": 1,
    },
}  # fmt: skip
SHAPES = [
    (0, 0, 0), (0, 5, 3), (5, 0, 3), (4, 3, 0), (1, 1, 1), (1, 9, 1), (9, 1, 5), (1, 1, 70),
    (8, 16, 8), (16, 32, 16), (7, 15, 9), (9, 17, 7), (33, 31, 35), (3, 70, 2), (70, 3, 130),
    (64, 64, 64),
]  # fmt: skip


def matrices(rng, m, n, k, dtype="float32", trans_a=False, trans_b=False):
    a = rng.uniform(-1, 1, (k, m) if trans_a else (m, k)).astype(dtype)
    b = rng.uniform(-1, 1, (n, k) if trans_b else (k, n)).astype(dtype)
    c = rng.uniform(-1, 1, (m, n)).astype(dtype)
    return a, b, c


def assert_product(result, a, b, c=None, alpha=1.0, beta=0.0):
    """Compare with NumPy in long double, within the bound of a sum of k products."""
    wide = np.longdouble
    right = alpha * (a.astype(wide) @ b.astype(wide))
    size = abs(alpha) * (abs(a).astype(wide) @ abs(b).astype(wide))
    if c is not None:
        right, size = right + beta * c.astype(wide), size + abs(beta) * abs(c).astype(wide)
    assert result.dtype == a.dtype
    assert result.shape == right.shape
    bound = (a.shape[1] + 4) * np.finfo(a.dtype).eps * size
    assert (abs(result - right) <= bound).all()


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_shape_and_transposition(algorithm, trans_a, trans_b, rng, queue):
    for m, n, k in SHAPES:
        a, b, c = matrices(rng, m, n, k, trans_a=trans_a, trans_b=trans_b)
        before = [x.tobytes() for x in (a, b, c)]
        options = {"trans_a": trans_a, "trans_b": trans_b, "algorithm": algorithm}
        options |= {"config": SMALL[algorithm], "queue": queue}
        op_a, op_b = a.T if trans_a else a, b.T if trans_b else b
        assert_product(gemm(a, b, **options), op_a, op_b)
        result = gemm(a, b, alpha=-1.5, beta=0.75, c=c, **options)
        assert_product(result, op_a, op_b, c, -1.5, 0.75)
        assert [x.tobytes() for x in (a, b, c)] == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
def test_default_configurations(algorithm, dtype, rng, queue, device):
    if dtype == "float64" and not device.capabilities.fp64:
        pytest.skip("no double precision")
    for m, n, k in [(1, 1, 1), (130, 131, 129), (257, 19, 300)]:
        a, b, c = matrices(rng, m, n, k, dtype)
        result = gemm(a, b, alpha=2, beta=-1, c=c, algorithm=algorithm, queue=queue)
        assert_product(result, a, b, c, 2, -1)


CORNERS = [
    ("naive", {"WG_M": 1, "WG_N": 1}),
    ("naive", {"WG_M": 32, "WG_N": 4}),
    ("tiled", {"TILE": 8, "LOCAL_PAD": 0, "UNROLL": 1}),
    ("tiled", {"TILE": 16, "LOCAL_PAD": 1, "UNROLL": 16}),
    ("tiled", {"TILE": 5, "LOCAL_PAD": 3, "UNROLL": 5}),
    *(
        ("blocked", {**SMALL["blocked"], **changes})
        for changes in (
            {"STAGE_A": False, "VECTOR_ROWS": 1},
            {"STAGE_B": False},
            {
                "STAGE_A": False,
                "STAGE_B": False,
                "VECTOR_ROWS": 1,
                "LOCAL_PAD": 0,
                "STAGE_UNROLL": 0,
            },
            {"VECTOR_WIDTH": 1, "VECTOR_ROWS": 1},
            {"VECTOR_WIDTH": 2, "LOCAL_PAD": 0, "UNROLL": 8},
            {"VECTOR_WIDTH": 8, "WORK_N": 16, "VECTOR_ROWS": 1},
            {"VECTOR_WIDTH": 16, "WORK_N": 16, "VECTOR_ROWS": 1, "STAGE_B": False},
            {"TILE_M": 2, "TILE_N": 4, "TILE_K": 1, "UNROLL": 1},
            {"TILE_M": 6, "WORK_M": 3, "TILE_K": 12, "UNROLL": 3, "VECTOR_ROWS": 1},
            {"TILE_M": 64, "TILE_N": 64, "TILE_K": 64, "WORK_M": 16, "WORK_N": 4},
        )
    ),
]


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize(("algorithm", "config"), CORNERS)
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
    for stage in (True, False) if algorithm == "blocked" else (True,):
        if algorithm == "blocked":
            changes = {
                "STAGE_A": stage,
                "STAGE_B": stage,
                "LOCAL_PAD": 0,
                "VECTOR_ROWS": 1,
                "STAGE_UNROLL": 0,
            }
            options["config"] = {**SMALL["blocked"], **changes}
        a, b, _ = matrices(rng, 19, 21, 13)
        a[18, 12], b[3, 20] = np.nan, np.inf
        right = np.zeros((19, 21), bool)
        right[18], right[:, 20] = True, True
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
    stored, turned = problems._stored(device_a.T, queue)
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


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.ones((2, 3), np.int32)}, "a is int32, b is float32; convert with astype"),
        ({"b": np.ones((3, 4), np.float64)}, "a is float32, b is float64"),
        ({"a": np.ones((2, 3), np.float16), "b": np.ones((3, 4), np.float16)}, "a is float16"),
        ({"a": np.ones((2, 3), np.complex64)}, "a is complex64"),
        ({"c": np.ones((2, 4), np.float64), "beta": 1}, "c is float64"),
        ({"a": np.ones((5, 2, 3), np.float32)}, "a has 3 dimensions; .*batches are not supported"),
        ({"b": np.ones(3, np.float32)}, "b has 1 dimension, not 2; reshape"),
        ({"trans_a": True}, "sums of length 2 and b of length 3: a is 2 x 3, transposed"),
        ({"b": np.ones((4, 4), np.float32)}, "sums of length 3 and b of length 4"),
        ({"beta": 0.5}, "beta is 0.5, so c is needed"),
        ({"c": np.ones((4, 2), np.float32)}, r"c must have the shape of the result, \(2, 4\)"),
        ({"precision": "tf32"}, "no precision 'tf32' for gemm; there is: native"),
        ({"alpha": 1j}, "alpha must be a real number, not 1j"),
        ({"beta": "much"}, "beta must be a real number"),
        ({"alpha": np.complex64(2)}, "alpha must be a real number"),
        ({"trans_a": "yes"}, "trans_a must be True or False, or N, T or C as in BLAS, not 'yes'"),
        ({"trans_b": 3}, "trans_b must be True or False"),
        ({"trans_b": None}, "trans_b must be True or False"),
        ({"out": np.ones((2, 3), np.float32)}, r"out must have shape \(2, 4\) and dtype float32"),
        ({"out": np.ones((2, 4), np.float64)}, "not .* and float64"),
    ],
)
def test_invalid_problems(change, message, queue):
    given = {"a": np.ones((2, 3), np.float32), "b": np.ones((3, 4), np.float32), **change}
    with pytest.raises(InvalidProblem, match=message):
        gemm(**given, queue=queue)


def test_transposition_in_the_words_of_blas(rng, queue):
    a, b, _ = matrices(rng, 6, 7, 8, trans_b=True)
    right = gemm(a, b, trans_b=True, queue=queue)
    for no, yes in (("N", "T"), ("n", "c"), (0, 2), (np.False_, np.True_), (np.int8(0), "C")):
        result = gemm(a, b, trans_a=no, trans_b=yes, queue=queue)
        np.testing.assert_array_equal(result, right)
        problem = GEMM.problem(m=6, n=7, k=8, trans_a=no, trans_b=yes)
        assert problem == GemmProblem(6, 7, 8, trans_b=True)


def test_a_text_is_no_scalar():
    a = np.ones((2, 2), np.float32)
    with pytest.raises(InvalidProblem, match="alpha must be a real number, not '2'"):
        gemm(a, a, alpha="2")


def test_scalars_beyond_the_dtype_are_infinities_or_zeros(queue):
    """As for BLAS, which gets them rounded, and without a warning, which is an error here."""
    a = np.ones((6, 8), np.float32)
    nan = np.full((6, 6), np.nan, np.float32)
    for alpha in (1e40, -(10**400), np.longdouble("1e4000")):
        expected = np.full((6, 6), np.copysign(np.inf, float(np.sign(alpha))))
        np.testing.assert_array_equal(gemm(a, a, alpha=alpha, trans_b=True, queue=queue), expected)
    beside = {"c": nan / nan, "trans_b": True, "queue": queue}
    result = gemm(a, a, beta=1e-50, **beside)  # c is not read
    np.testing.assert_array_equal(result, np.full((6, 6), 8))
    np.testing.assert_array_equal(
        gemm(a, nan[:, :1].repeat(8, 1), alpha=1e-50, **beside), 0 * result
    )
    assert np.isnan(gemm(a, a, beta=1e40, **beside)).all()
    assert np.isinf(gemm(a, a, beta=1e40, **{**beside, "c": result})).all()
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(
        gemm(wide, wide, alpha=1e40, trans_b=True, queue=queue), np.full((6, 6), 8e40)
    )
    assert GemmProblem(1, 1, 1, alpha=0.1).alpha == 0.1  # others stay as they were given


def test_invalid_problem_records():
    with pytest.raises(InvalidProblem, match="not be negative, not 1, -2 and 3"):
        GemmProblem(1, -2, 3)
    with pytest.raises(InvalidProblem, match=r"dtype int32; supported: float32, float64"):
        GemmProblem(1, 2, 3, np.dtype("int32"))


def test_problem_from_options():
    assert GEMM.problem(size=7) == GemmProblem(7, 7, 7)
    assert GEMM.problem(size=7, m=0, k=2, dtype="float64") == GemmProblem(
        0, 7, 2, np.dtype("float64")
    )
    with pytest.raises(InvalidProblem, match="m is given by the input files"):
        GEMM.problem_of({"a": np.ones((2, 2)), "b": np.ones((2, 2))}, m=2)
    problem, inputs = GEMM.problem_of(
        {"a": np.ones((2, 3), int), "b": np.ones((3, 4), int)}, dtype="float32"
    )
    assert problem == GemmProblem(2, 4, 3)
    assert inputs["a"].dtype == np.float32
    assert GEMM.problem(size=2).as_dict()["dtype"] == "float32"


def test_work_counts_what_is_needed():
    assert GemmProblem(2, 3, 5).work.flops == 60
    assert GemmProblem(2, 3, 5).work.bytes == 4 * (10 + 15 + 6)
    assert GemmProblem(2, 3, 5, beta=1.0).work.bytes == 4 * (10 + 15 + 12)
    assert GemmProblem(2, 3, 5, alpha=0.0).work.flops == 0
    assert GemmProblem(0, 3, 5).work.bytes == 0


# ------------------------------------------------------------------ comparing and references


def test_compare_accepts_rounding_and_refuses_a_lost_product():
    problem = GEMM.problem(size=200, alpha=2.0, beta=0.5)
    inputs = GEMM.generate(problem, 3)
    expected = GEMM.expected(problem, inputs)
    assert expected["result"].dtype == np.float32
    single = 2 * (inputs["a"] @ inputs["b"]) + np.float32(0.5) * inputs["c"]
    difference = GEMM.compare(problem, inputs, expected, {"result": single})
    assert difference.ok
    assert 0 < difference.max_abs < 1e-3
    reference = expected["result"].astype(np.float64)
    relative = np.max(abs(reference - single) / (abs(reference) + 1e-12))
    assert difference.max_rel == pytest.approx(relative)
    lost = single.copy()
    lost[17, 5] -= np.float32(2) * inputs["a"][17, 199] * inputs["b"][199, 5]
    assert not GEMM.compare(problem, inputs, expected, {"result": lost}).ok
    wide = {"result": single.astype(np.float64)}
    assert not GEMM.compare(problem, inputs, expected, wide).ok


def test_compare_looks_at_every_chunk(monkeypatch):
    monkeypatch.setattr(operation, "CHUNK", 70)
    problem = GemmProblem(20, 30, 4)
    inputs = GEMM.generate(problem, 1)
    expected = GEMM.expected(problem, inputs)
    assert GEMM.compare(problem, inputs, expected, expected).ok
    for place in ((0, 0), (3, 29), (19, 29)):
        wrong = expected["result"].copy()
        wrong[place] += 1
        difference = GEMM.compare(problem, inputs, expected, {"result": wrong})
        assert not difference.ok
        assert difference.max_abs == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_compare_matches_what_is_not_finite(value):
    problem = GemmProblem(3, 4, 5)
    inputs = GEMM.generate(problem, 1)
    expected = GEMM.expected(problem, inputs)
    wrong = expected["result"].copy()
    wrong[1, 1] = value
    difference = GEMM.compare(problem, inputs, expected, {"result": wrong})
    assert not difference.ok
    assert difference.max_abs == np.inf
    inputs["a"][2, 2] = value
    expected = GEMM.expected(problem, inputs)
    assert GEMM.compare(problem, inputs, expected, {"result": expected["result"].copy()}).ok
    assert not GEMM.compare(problem, inputs, expected, {"result": np.zeros((3, 4), np.float32)}).ok


CASES = [
    {"m": 0, "n": 3, "k": 2},
    {"m": 1, "n": 1, "k": 1},
    {"m": 4, "n": 3, "k": 0, "beta": 2.0},
    {"m": 5, "n": 6, "k": 7, "alpha": 0.0, "beta": 2.0},
    {"m": 33, "n": 129, "k": 65},
    {"m": 70, "n": 131, "k": 140, "alpha": -2.0, "beta": 0.5, "trans_a": True},
    {"m": 31, "n": 200, "k": 64, "trans_b": True},
    {"m": 65, "n": 40, "k": 99, "dtype": "float64", "trans_a": True, "trans_b": True},
]


@pytest.mark.parametrize("reference", GEMM.references, ids=lambda item: item.name)
@pytest.mark.parametrize("options", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_references_against_numpy(reference, options):
    execute = pytest.importorskip("opencl_lab.reference.execute")
    reason = getattr(reference, "unavailable", lambda: None)()
    if reason is not None:
        pytest.skip(f"{reference.name}: {reason}")
    problem = GEMM.problem(**options)
    inputs = GEMM.generate(problem, 5)
    if problem.alpha == 0:
        inputs["a"][:] = np.nan
    expected = GEMM.expected(problem, inputs)
    like = {"result": (expected["result"].shape, expected["result"].dtype)}
    prepared = execute.prepare(reference, problem, inputs, like, 2)
    try:
        prepared.run()
        assert GEMM.compare(problem, inputs, expected, prepared.outputs()).ok
    finally:
        prepared.close()


def test_generated_inputs_are_seeded_and_spread():
    problem = GEMM.problem(m=30, n=40, k=50, beta=1.0, trans_a=True)
    first, again = GEMM.generate(problem, 1), GEMM.generate(problem, 1)
    assert {name: x.shape for name, x in first.items()} == {
        "a": (50, 30), "b": (50, 40), "c": (30, 40),
    }  # fmt: skip
    for name, values in first.items():
        assert values.dtype == np.float32
        assert -1 <= values.min() < -0.9
        assert 0.9 < values.max() < 1
        np.testing.assert_array_equal(values, again[name])
    assert (GEMM.generate(problem, 2)["a"] != first["a"]).any()


# ------------------------------------------------------------------ plans, without a device


def made_device(kind="gpu", max_work_group=256, local_memory=32 << 10, units=8, **capabilities):
    return Device(
        "made", kind, compute_units=units, max_work_items=(max_work_group,) * 3,
        capabilities=Capabilities(
            **{"fp64": True, **capabilities},
            max_work_group=max_work_group, local_memory=local_memory,
        ),
    )  # fmt: skip


DEVICES = [
    made_device("gpu", 1024, 48 << 10, 132),
    made_device("gpu", 256, 16 << 10),
    made_device("gpu", 64, 8 << 10),
    made_device("gpu", 1, 1 << 10),
    made_device("cpu", 4096, 1 << 20, 2, vector_bytes=32),
    made_device("cpu", 8192, 256 << 10, 64),
    made_device("accelerator", 128, 32 << 10),
]
PROBLEMS = [
    GemmProblem(*shape, dtype=np.dtype(dtype), trans_a=trans)
    for shape in (
        (0, 4, 4),
        (1, 1, 1),
        (4, 4, 0),
        (100, 100, 100),
        (4096, 4096, 4096),
        (9, 5000, 3),
    )
    for dtype in ("float32", "float64")
    for trans in (False, True)
]


@pytest.mark.parametrize("algorithm", GEMM.algorithms, ids=lambda item: item.name)
@pytest.mark.parametrize("made", DEVICES, ids=lambda d: f"{d.kind}-{d.max_work_items[0]}")
def test_default_plans_fit_any_device(algorithm, made):
    for problem in PROBLEMS:
        if algorithm.supports(problem, made) is not None:
            assert made.max_work_items[0] < 64
            continue
        plan = algorithm.plan(problem, algorithm.configure(problem, made), made)
        check_plan(plan, made)
        assert len(plan.launches) == (1 if problem.m * problem.n else 0)
        for launch in plan.launches:
            source = render(launch.template, launch.params).text
            declared = re.findall(r"__local real_t \w+\[(\d+)\](?:\[(\d+)\])?", source)
            elements = sum(int(x) * int(y or 1) for x, y in declared)
            assert launch.local_bytes == elements * problem.dtype.itemsize
            assert ("double" in source.split("*/")[1]) == (problem.dtype == np.float64)


def test_every_problem_has_an_algorithm_on_any_device():
    for made in (*DEVICES, made_device(barriers_in_loops=False)):
        for problem in PROBLEMS:
            GEMM.choose(problem, made)
    names = [a.name for a in GEMM.algorithms if a.supports(PROBLEMS[2], made) is None]
    assert names == ["naive"]
    with pytest.raises(InvalidConfig, match="no double precision"):
        GEMM.choose(GemmProblem(1, 1, 1, np.dtype("float64")), made_device(fp64=False))


def test_plan_chooses_the_width_of_indices_and_of_loads():
    blocked = GEMM.algorithm("blocked")
    narrow, wide = DEVICES[0], DEVICES[4]
    for shape, index in (((46_340,) * 3, "uint"), ((46_341,) * 3, "ulong")):
        for trans in (False, True):
            problem = GemmProblem(*shape, trans_a=trans, trans_b=trans)
            launch = blocked.plan(problem, blocked.configure(problem, narrow), narrow).launches[0]
            assert launch.params["INDEX_T"] == index
            assert launch.arguments["m"].dtype.itemsize == {"uint": 4, "ulong": 8}[index]
    problem = GemmProblem(500, 500, 500)
    config = blocked.configure(problem, wide)
    assert config["VECTOR_WIDTH"] == 16
    assert blocked.plan(problem, config, wide).launches[0].params["LOAD_WIDTH"] == 8
    assert blocked.plan(problem, config, narrow).launches[0].params["LOAD_WIDTH"] == 4


def test_plan_passes_alpha_and_beta_by_value():
    for algorithm in GEMM.algorithms:
        problem = GemmProblem(3, 4, 5, alpha=2.5, beta=-1.0)
        launch = algorithm.plan(problem, algorithm.configure(problem, DEVICES[0]), DEVICES[0])
        arguments = launch.launches[0].arguments
        assert arguments["alpha"] == np.float32(2.5)
        assert arguments["beta"] == np.float32(-1)
        assert "c" in arguments
        assert [b.name for b in launch.with_role("in")] == ["a", "b", "c"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_64_bit_indices_give_the_same_result(algorithm, rng, queue, monkeypatch):
    monkeypatch.setattr(kernels, "INDEX_LIMIT", 1)
    a, b, c = matrices(rng, 23, 29, 31, trans_b=True)  # a shape that no other test has cached
    result = gemm(
        a, b, beta=1, c=c, trans_b=True, algorithm=algorithm, config=SMALL[algorithm], queue=queue
    )
    assert_product(result, a, b.T, c, 1, 1)


BROKEN = {
    "naive": [{"WG_M": 0}, {"WG_N": -1}],
    "tiled": [{"TILE": 0}, {"UNROLL": 0}, {"LOCAL_PAD": -1}, {"UNROLL": 3}],
    "blocked": [
        *({name: 0} for name in ("TILE_M", "TILE_N", "TILE_K", "WORK_M", "WORK_N", "UNROLL")),
        {"VECTOR_WIDTH": 3},
        {"VECTOR_ROWS": 3},
        {"LOCAL_PAD": -1},
        {"TILE_M": 9},
        {"TILE_N": 18},
        {"WORK_N": 2},
        {"WORK_M": 1},
        {"VECTOR_ROWS": 4, "VECTOR_WIDTH": 2, "WORK_M": 4},
        {"UNROLL": 3},
        {"TILE_K": 1, "UNROLL": 1},
        {"TILE_M": 64, "TILE_N": 4, "TILE_K": 1, "UNROLL": 1},
        {"STAGE_A": False},
        {"STAGE_A": False, "STAGE_B": False, "VECTOR_ROWS": 1},
        {"STAGE_UNROLL": -1},
        {"STAGE_A": False, "STAGE_B": False, "VECTOR_ROWS": 1, "LOCAL_PAD": 0},
        {"TILE_M": 64, "TILE_N": 64, "WORK_M": 32, "WORK_N": 32},
        {"TILE_M": 32, "WORK_M": 32, "TILE_N": 16, "WORK_N": 16},
        {"TILE_M": 16, "WORK_M": 16, "TILE_K": 16, "WORK_N": 16, "UNROLL": 16},
    ],
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_constraint_can_be_broken_and_says_why(name):
    algorithm = GEMM.algorithm(name)
    default = algorithm.default_config(GemmProblem(500, 500, 500), DEVICES[0])
    whole = default.replace(**SMALL[name])
    assert algorithm.space.violation(default) is None
    assert algorithm.space.violation(whole) is None
    seen = [algorithm.space.violation(whole.replace(**changes)) for changes in BROKEN[name]]
    assert set(seen) == {constraint.reason for constraint in algorithm.space.constraints}
    with pytest.raises(InvalidConfig, match="must be positive"):
        algorithm.space.check({algorithm.space.names[0]: 0}, default)

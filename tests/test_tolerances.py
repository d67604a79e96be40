"""The error of a result over its bound: the largest of all values, and what the verdict is by."""

import numpy as np
import pytest

from opencl_lab.lab.measuring.difference import (
    Difference,
    errors_of,
    largest_share,
    shares_of_bound,
)
from opencl_lab.lab.ops.conv2d import expected_fft, tolerance
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT, TOLERANCE
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.kernel_results import compare_outputs
from opencl_lab.ops.conv2d.problem import Conv2dProblem

CASES = {
    "sort": ({"n": 200, "dtype": "float32"}, {"n": 50, "dtype": "float64"}),
    "gemm": ({"size": 40, "beta": 0.5}, {"m": 30, "n": 20, "k": 10, "dtype": "float64"}),
    "conv2d": (
        {"size": 40, "ksize": 5},
        {"size": 30, "filter": "sobel", "boundary": "wrap"},
        {"size": 30, "dtype": "uint8"},
        {"size": 30, "dtype": "float16"},
    ),
    "dft": ({"n": 90, "batch": 3}, {"n": 64, "dtype": "float64"}),
}


def judged(name, options, seed=1):
    """Return a function that judges a result, and the right one."""
    operation = get_operation(name)
    complete = operation.with_defaults(options)
    problem = operation.problem(**complete)
    inputs = operation.generate(problem, seed, **complete)
    expected = operation.expected(problem, inputs)
    output = operation.output

    def judge(array):
        return operation.compare(problem, inputs, expected, {output: array})

    return judge, expected[output]


@pytest.mark.parametrize(
    ("name", "options"), [(name, case) for name, cases in CASES.items() for case in cases]
)
def test_the_verdict_is_by_the_error_over_its_bound(name, options, rng):
    judge, right = judged(name, options)
    same = judge(right.copy())
    assert same.ok and same.error_over_bound == same.max_abs == 0
    verdicts = set()
    for power in range(-8, 3):
        changed = right.astype(np.complex128 if right.dtype.kind == "c" else np.float64)
        place = rng.integers(0, right.size)
        changed.reshape(-1)[place] += (1 + abs(changed.reshape(-1)[place])) * 10.0**power
        found = judge(changed.astype(right.dtype))
        assert found.ok is bool(found.error_over_bound <= 1), power
        assert (found.error_over_bound == 0) is (found.max_abs == 0)
        verdicts.add(found.ok)
    assert False in verdicts
    if right.dtype.kind in "fc":
        for strange in (np.nan, np.inf):
            changed = right.copy()
            changed.reshape(-1)[3] = strange
            found = judge(changed)
            assert not found.ok and found.error_over_bound == np.inf
    for unlike in (right.reshape(-1)[:-1], right.astype(np.clongdouble)):
        assert not judge(unlike).ok and judge(unlike).error_over_bound == np.inf


def sums_of_sizes(problem, image, weights):
    """Return the sums of the sizes of all products, by SciPy."""
    signal = pytest.importorskip("scipy.signal")
    around = [(taps // 2, (taps - 1) // 2) for taps in weights.shape]
    if problem.flip:
        weights, around = weights[::-1, ::-1], [pair[::-1] for pair in around]
    if problem.mode == "full":
        around = [(taps - 1, taps - 1) for taps in weights.shape]
    how = {"constant": {"constant_values": abs(problem.cval)}, "reflect": {"mode": "symmetric"}}
    wide = np.pad(abs(image), [(0, 0), *around, (0, 0)], **how[problem.boundary])
    sizes = abs(weights).astype(np.float64)[None, :, :, None]
    return signal.correlate(wide.astype(np.float64), sizes, mode="valid", method="direct")


@pytest.mark.parametrize("transforms", [False, True])
def test_the_share_of_a_convolution_is_the_largest_of_all_values(transforms, monkeypatch, rng):
    monkeypatch.setattr(tolerance, "COMPARED", 300)
    monkeypatch.setattr(expected_fft, "pays", lambda problem: transforms)
    for options in ({}, {"boundary": "reflect", "flip": True}, {"cval": -3.0, "mode": "full"}):
        problem = Conv2dProblem(30, 40, 5, 4, batch=2, channels=3, **options)
        shape = problem.image_shape
        inputs = {
            "image": rng.standard_normal(shape).astype(np.float32),
            "weights": rng.standard_normal((5, 4)).astype(np.float32),
        }
        right = CONV2D.expected(problem, inputs)["result"]
        given = right + rng.standard_normal(right.shape).astype(np.float32) * np.float32(1e-6)
        sums = sums_of_sizes(problem, **inputs)
        growth = (20 + 12) * 2.0**-24
        error = np.abs(right.astype(np.float64) - given)
        largest = (error / (growth / (1 - growth) * sums)).max()
        found = tolerance.compare(problem, inputs, right, given)
        assert found.error_over_bound == pytest.approx(largest, rel=1e-5)
        assert 0.05 < largest < 20


def test_products_are_judged_in_all_of_their_parts(monkeypatch):
    monkeypatch.setattr("opencl_lab.lab.ops.gemm.operation.CHUNK", 100)
    judge, right = judged("gemm", {"m": 30, "n": 20, "k": 10})
    for row in (0, 14, 29):
        changed = right.copy()
        changed[row, 7] += 1
        found = judge(changed)
        assert not found.ok and found.max_abs == pytest.approx(1, rel=1e-5)


def test_transforms_are_judged_each_by_its_norm():
    problem = DFT.problem(**DFT.with_defaults({"n": 16, "batch": 2}))
    right = np.ones((2, 16, 1), np.complex64)
    given = right.copy()
    given[1, 0] += 1e-3
    found = DFT.compare(problem, {}, {"spectrum": right}, {"spectrum": given})
    assert found.rel_l2 == pytest.approx(1e-3 / 4, rel=1e-3)
    tolerance_of_all = found.rel_l2 / found.error_over_bound
    assert tolerance_of_all == pytest.approx(TOLERANCE["complex64"])
    given[1, 0] = 1 + 4 * tolerance_of_all * 0.9
    assert DFT.compare(problem, {}, {"spectrum": right}, {"spectrum": given}).ok
    given[1, 0] = 1 + 4 * tolerance_of_all * 1.1
    assert not DFT.compare(problem, {}, {"spectrum": right}, {"spectrum": given}).ok


def test_outputs_of_own_kernels_fill_the_share():
    right = {"doubled": np.array([1.0, -4.0, np.nan])}
    given = {"doubled": np.array([1.001, -4.0, np.nan])}
    assert compare_outputs(right, given, 1e-3).error_over_bound == pytest.approx(0.25)
    assert compare_outputs(right, given, 0.0).error_over_bound == np.inf
    assert compare_outputs(right, right, 0.0).error_over_bound == 0
    for wrong in ([1.0, -4.0, 3.0], [np.nan, -4.0, np.nan], [np.inf, -4.0, np.nan]):
        assert not compare_outputs(right, {"doubled": np.array(wrong)}, 1e-3).ok
    more = {"last": np.arange(3)}  # the worst of all outputs counts
    assert compare_outputs(right | more, given | more, 0.0).error_over_bound == np.inf


def test_shares_of_bounds_have_no_nan():
    error = np.array([0.0, 0.0, 1.0, np.inf, np.inf, np.nan, 1.0])
    bound = np.array([0.0, np.nan, 0.0, 2.0, np.inf, 1.0, np.nan])
    np.testing.assert_equal(shares_of_bound(error, bound), [0.0, 0.0] + 5 * [np.inf])
    assert largest_share(np.zeros(0), np.zeros(0)) == 0
    assert largest_share(np.array([1.0, 3.0]), 2.0) == 1.5
    assert not Difference(0.0, 0.0, error_over_bound=np.nan).ok
    assert not Difference(0.0, 0.0, error_over_bound=None).ok


def test_bounds_of_huge_values_are_finite(rng):
    gemm = get_operation("gemm")
    problem = gemm.problem(m=9, n=8, k=5, dtype="float64")
    inputs = {"a": rng.random((9, 5)) * 1e200, "b": rng.random((5, 8)) * 1e-150}
    expected = gemm.expected(problem, inputs)
    assert gemm.compare(problem, inputs, expected, expected).ok
    wrong = {"result": expected["result"] * 1.5}
    assert not gemm.compare(problem, inputs, expected, wrong).ok

    problem = CONV2D.problem(size=20, ksize=5)
    image = np.full_like(CONV2D.generate(problem, 1)["image"], 2e38)
    weights = np.tile(np.float32([1, -1]), 13)[:25].reshape(5, 5)
    inputs = {"image": image, "weights": weights}
    expected = CONV2D.expected(problem, inputs)
    wrong = {"result": expected["result"] + np.float32(1e37)}
    assert 1 < CONV2D.compare(problem, inputs, expected, wrong).error_over_bound < np.inf


def test_errors_of_values_that_are_no_numbers_and_of_those_that_wrap_around():
    right = np.array([1.0, np.nan, np.nan, np.inf, np.inf, 2.0, 0.0])
    given = np.array([1.5, np.nan, 1.0, np.inf, -np.inf, np.nan, 0.0])
    absolute, relative = errors_of(right, given)
    assert absolute.tolist() == [0.5, 0, np.inf, 0, np.inf, np.inf, 0]
    assert relative.tolist() == pytest.approx([0.5, 0, np.inf, 0, np.inf, np.inf, 0])
    wrapped, _ = errors_of(np.array([255.0, 3.0]), np.array([0.0, 5.0]), 256.0)
    assert wrapped.tolist() == [1, 2]

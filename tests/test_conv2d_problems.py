"""Problems of the convolution: outs, filters, values without an end, comparing."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conv2d_checks import ALGORITHMS, assert_close, check, right

from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.conv2d import tolerance
from opencl_lab.lab.ops.conv2d.filters import named_filter
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.ops.conv2d.arguments import weight_inputs
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import Conv2dProblem


def test_out_may_be_the_weights(rng, queue):
    image, weights = rng.random((9, 9), np.float32), rng.random((9, 9), np.float32)
    same = weights.copy()
    conv2d(image, same, out=same, queue=queue)
    assert_close(same, right(image, weights), weights)


@pytest.mark.parametrize(
    ("image", "weights", "options", "words"),
    [
        (np.ones(3, np.float32), np.ones((3, 3)), {}, "2 dimensions"),
        (np.ones((3, 3), "M8[s]"), np.ones((3, 3)), {}, "datetime64"),
        (np.ones((3, 3), np.float32), np.array([[0.0, 1e39]]), {}, "beyond the range of float32"),
        (np.ones((3, 3), np.float32), [[10**400]], {}, "beyond the range of float32"),
        (
            np.ones((3, 3)),
            (np.full(3, 1e200), np.full(3, 1e200)),
            {},
            "beyond the range of float64",
        ),
        (np.ones((3, 3), np.uint8), np.ones((1, 1), int), {"mode": "full", "cval": "x"}, "cval"),
        (np.ones((3, 3), np.uint8), [[2**64]], {}, "are too long"),
        (np.ones((3, 3), np.uint64), np.full((1, 3), 2**62), {}, "are too long"),
        (np.ones((3, 3)), np.ones(3), {}, "two dimensions"),
        (np.ones((3, 3)), np.ones((0, 3)), {}, "needs weights"),
        (np.ones((3, 3)), np.ones((3, 3), complex), {}, "real"),
        (np.ones((3, 3)), np.ones((3, 3)), {"mode": "most"}, "mode"),
        (np.ones((3, 3)), np.ones((3, 3)), {"boundary": "cliff"}, "boundary"),
        (np.ones((3, 3)), np.ones((3, 3)), {"cval": "much"}, "cval"),
        (np.ones((3, 3)), np.ones((3, 3)), {"cval": np.complex64(2)}, "cval"),
        (np.ones((3, 3)), np.ones((3, 3)), {"channels_last": True}, "channels"),
        (np.ones((9, 7, 3)), np.ones((3, 3)), {}, "channels_last=True"),
        (np.ones((2, 5, 5, 4)), np.ones((3, 3)), {}, "a stack of images of 5 x 4"),
        (np.ma.masked_less(np.eye(3), 1), np.ones((3, 3)), {}, "masks are not supported"),
        (np.ones((3, 3)), np.ma.masked_less(np.eye(3), 1), {}, "masks are not supported"),
    ],
)
def test_what_is_no_problem_says_why(image, weights, options, words, queue):
    with pytest.raises(InvalidProblem, match=words):
        conv2d(image, weights, queue=queue, **options)


def test_stacks_that_look_like_colours_are_filtered_if_asked(rng, queue):
    stack, weights = rng.random((9, 7, 3), np.float32), rng.random((3, 3))
    planes = conv2d(stack, weights, channels_last=False, queue=queue)
    for shape in ((9, 4, 3), (4, 7, 3), (9, 7, 5)):  # which do not look so
        part = np.resize(stack, shape)
        np.testing.assert_array_equal(
            conv2d(part, weights, queue=queue),
            conv2d(part, weights, channels_last=False, queue=queue),
        )
    for plane, image in zip(planes, stack, strict=True):
        assert_close(plane, right(image, weights), weights)
    assert not np.ma.is_masked(np.ma.asarray(stack))
    np.testing.assert_array_equal(
        conv2d(np.ma.asarray(stack), weights, channels_last=False, queue=queue), planes
    )


def test_a_value_beyond_the_edges_that_float32_cannot_hold_is_an_infinity(rng, queue):
    image, weights = rng.random((30, 40), np.float32), rng.uniform(0.5, 1, (3, 5))
    for cval in (1e40, 10**400):
        result = conv2d(image, weights, cval=cval, queue=queue)
        assert np.isinf(result[0]).all() and np.isfinite(result[1:-1, 2:-2]).all()


def test_separable_filters_are_found(rng, queue):
    image = rng.random((40, 61), np.float32)
    pair = rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 6)
    full = np.outer(*pair)
    result = conv2d(image, pair, cval=2.0, algorithm="separable", queue=queue)
    assert_close(result, right(image, full, cval=2.0), full, 2.0)
    for weights in (full, full.astype(np.float32), np.zeros((7, 6))):
        check(image, weights, 2.0, cval=2.0, algorithm="separable", queue=queue)
    device = select_device()
    for size, name in ((3, "register"), (9, "separable")):
        assert CONV2D.choose(CONV2D.problem(filter="box", ksize=size), device).name == name
    full[3, 3] += 1e-3
    with pytest.raises(InvalidConfig, match="outer product"):
        conv2d(image, full, algorithm="separable", queue=queue)
    nested = [[1, 2], [3, 4]]  # two rows and no pair of vectors
    np.testing.assert_allclose(conv2d(image, nested, queue=queue), right(image, nested), rtol=1e-4)


def small_beside_large():
    """Return a filter and an image of which only a small weight and a large pixel meet."""
    weights, image = np.zeros((7, 7)), np.zeros((32, 32), np.float32)
    weights[3, 3], weights[0, 0], image[10, 10] = 1, 1e-7, 1e9
    return weights, image


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_filter_is_split_only_if_every_weight_stays(dtype, rng, queue):
    weights, image = small_beside_large()
    assert conv2d(image.astype(dtype), weights, queue=queue)[13, 13] == pytest.approx(100)
    on_device = cl.array.to_device(queue, image)
    assert conv2d(on_device, weights).get()[13, 13] == pytest.approx(100)

    def found(weights):
        return "row" in weight_inputs(weights, np.dtype(dtype)).inputs

    assert not found(weights)
    for power in (-60, 0, 60):  # magnitudes wide apart, with zeros, of either sign
        column, row = (rng.choice([-1, 0, 1], 9) * 10.0 ** rng.uniform(-6, 6, 9) for _ in range(2))
        whole = np.outer(column, row) * 2.0**power
        assert found(whole) and found(whole.astype(dtype))
        for change in (1 + 1e-5, 0):
            changed = whole.copy()
            changed[np.unravel_index(np.abs(whole).argmax(), whole.shape)] *= change
            assert not found(changed)
        places = np.flatnonzero(whole == 0)
        changed = whole.copy()
        changed.flat[places[0]] = 1e-30 * np.abs(whole).max()
        assert not found(changed)
    named = ("box", "gaussian", "sobel", "sobel-y")
    assert all(found(named_filter(name, size)) for name in named for size in (7, 31, 63))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_a_pair_is_its_outer_product_in_every_algorithm(dtype, queue):
    image = np.zeros((5, 5), dtype)
    image[2, 2] = 1
    lines = [
        np.array([1, 20, 1], np.uint8), np.array([3, -100, 3], np.int8),
        np.array([1, 70_000, 1], np.int32), np.array([1, 2 ** (30 if dtype == "uint8" else 40), 1]),
        np.array([1, 300, 1], np.float16), np.array([1 / 3, 0.1, 1 / 3], np.float32),
    ]  # fmt: skip
    for line in lines:
        kind = np.float64 if line.dtype.kind == "f" else object
        right = np.outer(line.astype(kind), line.astype(kind))
        whole = right if kind is np.float64 else right.tolist()
        how = {"flip": True, "queue": queue}
        results = [conv2d(image, weights, **how) for weights in ((line, line), whole)]
        np.testing.assert_array_equal(*results)
        if dtype == "uint8":
            right = np.rint(right.astype(float)).clip(0, 255)
        np.testing.assert_array_equal(results[0][1:4, 1:4], right.astype(dtype))
        if dtype != "uint8":
            for algorithm in (*ALGORITHMS, "separable"):
                result = conv2d(image, (line, line), algorithm=algorithm, **how)
                np.testing.assert_allclose(result, results[0], 4 * np.finfo(dtype).eps)


def test_the_comparison_judges_each_value_by_what_is_under_the_filter():
    weights, image = small_beside_large()
    image[20, 20] = 1e-3
    for options in ({"flip": True}, {"boundary": "wrap"}, {"mode": "full"}, {"cval": 1e-3}):
        problem = Conv2dProblem(32, 32, 7, 7, **options)
        inputs = {"image": image[None, ..., None], "weights": weights.astype(np.float32)}
        expected = CONV2D.expected(problem, inputs)
        exact = expected["result"]
        sizes = tolerance.magnitudes(problem, inputs)
        np.testing.assert_allclose(exact, sizes, rtol=1e-6)  # nothing is negative here
        for place in ((exact > 50) & (exact < 200), abs(exact - 1e-3) < 1e-4, exact == 0):
            changed = exact.copy()
            changed[place] += 1e-4 * exact[place] + 1e-9
            assert place.any() and not tolerance.compare(problem, inputs, exact, changed).ok
        assert tolerance.compare(problem, inputs, exact, exact * (1 + np.float32(3e-7))).ok


def test_bytes_may_be_off_by_one():
    problem = CONV2D.problem(size=20, dtype="uint8")
    inputs = CONV2D.generate(problem, 1)
    right_bytes = CONV2D.expected(problem, inputs)["result"]
    assert tolerance.compare(problem, inputs, right_bytes, right_bytes + np.uint8(1)).ok
    assert not tolerance.compare(problem, inputs, right_bytes, right_bytes + np.uint8(3)).ok

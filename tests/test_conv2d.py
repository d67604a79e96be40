"""Convolutions: SciPy's results for every mode, boundary, type and kind of array."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage, signal

from opencl_lab import files
from opencl_lab.device import Device, select_device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operations.conv2d.arguments import weight_inputs
from opencl_lab.operations.conv2d.expected import correlate, extend
from opencl_lab.operations.conv2d.filters import FILTERS, named_filter
from opencl_lab.operations.conv2d.functions import conv2d
from opencl_lab.operations.conv2d.operation import CONV2D
from opencl_lab.operations.conv2d.problem import BOUNDARIES, Conv2dProblem
from opencl_lab.operations.conv2d.tolerance import compare, magnitudes
from opencl_lab.plan import check_plan
from opencl_lab.template import render

ALGORITHMS = ("register", "tiled", "naive")
# Small blocks, so that small images have an inside and edges.
SMALL = {
    "naive": {"WG_X": 8, "WG_Y": 2},
    "tiled": {"WG_X": 8, "WG_Y": 4, "WORK_PER_ITEM": 2},
    "register": {
        "WG_X": 1, "WG_Y": 1, "VECTOR_WIDTH": 4, "VECTORS": 2, "ROWS": 3, "STEPS_X": 2,
        "STEPS_Y": 2, "UNROLL": 4, "WINDOW": False,
    },
}  # fmt: skip
SHAPES = [(1, 1), (1, 40), (40, 1), (9, 8), (37, 45)]
FILTER_SHAPES = [(1, 1), (3, 3), (4, 4), (2, 5), (7, 1), (11, 13)]


def assert_close(result, right, weights, largest=1.0):
    """Compare within the bound of a sum of so many products."""
    assert result.shape == right.shape
    eps = np.finfo(np.float64 if result.dtype == np.float64 else np.float32).eps
    bound = 2 * (weights.size + 12) * eps * largest * np.abs(weights).sum()
    if result.dtype == np.float16:
        bound = bound + np.finfo(np.float16).eps * np.abs(right)
    assert (np.abs(result.astype(np.float64) - right) <= bound).all()


def right(image, weights, **options):
    filter_image = ndimage.convolve if options.pop("flip", False) else ndimage.correlate
    options["mode"] = options.pop("boundary", "constant")
    return filter_image(image.astype(np.float64), weights, **options)


@pytest.mark.parametrize(
    ("algorithm", "boundary", "flips"),
    [
        *(("naive", boundary, (False, True)) for boundary in BOUNDARIES),
        *(("tiled", boundary, (boundary == "mirror",)) for boundary in BOUNDARIES),
    ],
)
def test_same_is_that_of_ndimage(algorithm, boundary, flips, rng, queue):
    options = {"boundary": boundary, "cval": -1.5}
    more = {"algorithm": algorithm, "config": SMALL[algorithm], "queue": queue}
    for shape, filter_shape in itertools.product(SHAPES, FILTER_SHAPES):
        image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, filter_shape)
        for flip in flips:
            result = conv2d(image, weights, flip=flip, **options, **more)
            assert result.dtype == np.float32
            assert_close(result, right(image, weights, flip=flip, **options), weights, 1.5)


@pytest.mark.parametrize(
    ("boundary", "filter_shape", "flip"),
    [
        *((boundary, (3, 3), False) for boundary in BOUNDARIES),
        ("constant", (4, 6), True),
        ("reflect", (2, 9), True),
        ("wrap", (7, 1), False),
    ],
)
def test_register_is_that_of_ndimage(boundary, filter_shape, flip, rng, queue):
    options = {"boundary": boundary, "cval": 0.5}
    for shape in [(1, 1), (2, 70), (70, 2), (37, 45)]:
        image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, filter_shape)
        config = SMALL["register"]
        more = {"algorithm": "register", "config": config, "queue": queue}
        result = conv2d(image, weights, flip=flip, **options, **more)
        assert_close(result, right(image, weights, flip=flip, **options), weights)


SCIPY_BOUNDARIES = {"constant": "fill", "reflect": "symm", "wrap": "wrap"}


@pytest.mark.parametrize("mode", ["valid", "full"])
@pytest.mark.parametrize("flip", [False, True])
def test_valid_and_full_are_those_of_signal(mode, flip, rng, queue):
    reference = signal.convolve2d if flip else signal.correlate2d
    for shape, filter_shape in itertools.product([(9, 8), (20, 33)], [(1, 1), (4, 3), (9, 8)]):
        image, weights = rng.random(shape), rng.uniform(-1, 1, filter_shape)
        for boundary, name in SCIPY_BOUNDARIES.items():
            expected = reference(image, weights, mode, name, 2.0)
            options = {"mode": mode, "boundary": boundary, "cval": 2.0, "flip": flip}
            result = conv2d(image, weights, algorithm="naive", queue=queue, **options)
            assert_close(result, expected, weights, 2.0)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_filters_larger_than_the_image(algorithm, flip, rng, queue):
    reference = signal.convolve2d if flip else signal.correlate2d
    image, weights = rng.random((5, 6), np.float32), rng.uniform(-1, 1, (9, 11))
    for mode in ("valid", "full"):
        options = {"mode": mode, "flip": flip, "algorithm": algorithm, "queue": queue}
        assert_close(conv2d(image, weights, **options), reference(image, weights, mode), weights)
    for boundary in BOUNDARIES:
        options = {"boundary": boundary, "flip": flip}
        result = conv2d(image, weights, algorithm="naive", queue=queue, **options)
        assert_close(result, right(image, weights, **options), weights)
    with pytest.raises(InvalidProblem, match="one direction only"):
        conv2d(image, rng.random((9, 3)), mode="valid", queue=queue)


WINDOWS = [
    {"WINDOW": True, "VECTOR_WIDTH": 4, "VECTORS": 1, "ROWS": 2, "WG_X": 4, "STEPS_X": 1},
    {"WINDOW": True, "VECTOR_WIDTH": 8, "VECTORS": 2, "ROWS": 1, "UNROLL": 16},
    {"WINDOW": True, "VECTOR_WIDTH": 2, "VECTORS": 1, "ROWS": 6, "UNROLL": 2, "WG_Y": 2},
    {"WINDOW": False, "VECTOR_WIDTH": 1, "VECTORS": 3, "ROWS": 4, "WG_X": 8},
    {"WINDOW": False, "VECTOR_WIDTH": 16, "VECTORS": 1, "ROWS": 2, "UNROLL": 3},
]


@pytest.mark.parametrize("config", WINDOWS, ids=str)
def test_ways_along_a_row(config, rng, queue):
    more = {"algorithm": "register", "config": {**SMALL["register"], **config}, "queue": queue}
    # Rows whose length is a multiple of four are read in aligned pieces, others are not.
    for shape in ((21, 64), (21, 67)):
        image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, (5, 5))
        result = conv2d(image, weights, boundary="mirror", **more)
        assert_close(result, right(image, weights, boundary="mirror"), weights)
        if queue.device.host_unified_memory:  # the kernel gets this memory as it is
            raw = np.zeros(image.size + 1, np.float32)
            raw[1:] = image.ravel()
            result = conv2d(raw[1:].reshape(shape), weights, boundary="mirror", **more)
            assert_close(result, right(image, weights, boundary="mirror"), weights)


def test_a_filter_in_parts_of_local_memory(rng, queue):
    device = select_device()
    capabilities = replace(device.capabilities, local_memory=2048)
    small = replace(device, capabilities=capabilities)
    image, weights = rng.random((30, 50), np.float32), rng.uniform(-1, 1, (21, 27))
    problem = CONV2D.problem(height=30, width=50, ksize=27)
    problem = replace(problem, filter_height=21)
    algorithm = CONV2D.algorithm("tiled")
    plan = algorithm.plan(problem, algorithm.default_config(problem, small), small)
    check_plan(plan, small)
    parts = plan.launches[0].arguments
    assert parts["part_height"] < 21 and parts["part_width"] <= 27
    from opencl_lab.runtime.execute import execute
    from opencl_lab.runtime.session import session_of

    executable = session_of(queue).executable(("parts", problem), lambda: plan)
    inputs = {"image": image[None, ..., None], "weights": weights.astype(np.float32)}
    result = execute(executable, inputs, queue).outputs["result"][0, ..., 0]
    assert_close(result, right(image, weights), weights)


def test_filters_that_do_not_fit_into_constant_memory(rng, queue):
    image, weights = rng.random((20, 30), np.float32), rng.uniform(-1, 1, (129, 129))
    device = replace(select_device(), constant_memory=64 << 10)
    problem = CONV2D.problem(ksize=129)
    for algorithm in map(CONV2D.algorithm, ALGORITHMS):
        config = algorithm.default_config(problem, device).replace(CONSTANT_WEIGHTS=True)
        launch = algorithm.plan(problem, config, device).launches[0]
        assert not launch.params["PIXELS"].constant_weights
        config = {"CONSTANT_WEIGHTS": False}
        options = {"algorithm": algorithm.name, "config": config, "queue": queue}
        assert_close(conv2d(image, weights, **options), right(image, weights), weights)


@pytest.mark.parametrize(
    ("dtype", "algorithm"),
    [("uint8", "naive"), ("uint8", "register"), ("int16", "wide"), ("int16", "tiled")],
)
def test_integers_are_exact_with_integer_weights(dtype, algorithm, rng, queue):
    limits = np.iinfo(dtype)
    image = rng.integers(limits.min, limits.max, (23, 37), dtype, endpoint=True)
    if algorithm == "wide":
        config = {**SMALL["register"], "VECTOR_WIDTH": 16, "VECTORS": 1, "STEPS_X": 1}
        options = {"algorithm": "register", "config": config, "queue": queue}
    else:
        options = {"algorithm": algorithm, "config": SMALL[algorithm], "queue": queue}
    for factor in (1, 70_000):  # sums that need more than 32 bits
        weights = rng.integers(-9, 9, (3, 4)) * factor
        exact = ndimage.correlate(image.astype(np.int64), weights, mode="nearest")
        wrapped = conv2d(image, weights, boundary="nearest", **options)
        assert wrapped.dtype == dtype
        np.testing.assert_array_equal(wrapped, exact.astype(dtype))
        clipped = conv2d(image, weights, boundary="nearest", saturate=True, **options)
        np.testing.assert_array_equal(clipped, exact.clip(limits.min, limits.max).astype(dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_integers_wrap_around_however_large_the_sums(dtype, rng, queue):
    image = (256 * rng.integers(0, 256, (9, 40)) >> (8 if dtype == "uint8" else 0)).astype(dtype)
    for weight in (40_001.0, -40_001.0, 2.0**40, 1e30, np.inf):  # products exact in float32
        weights = np.full((1, 1), weight)
        with np.errstate(all="ignore"):
            right = image.astype(float) * weight
            low = np.where(np.isfinite(right), np.fmod(right, 2**16), 0).astype(int).astype(dtype)
        for algorithm in ("naive", "register"):
            result = conv2d(image, weights, algorithm=algorithm, queue=queue)
            np.testing.assert_array_equal(result, low, err_msg=f"{algorithm} {weight}")
        problem = Conv2dProblem(*image.shape, 1, 1, image.dtype)
        expected = correlate(problem, image[None, ..., None], weights)
        np.testing.assert_array_equal(expected[0, ..., 0], low)


@pytest.mark.parametrize("algorithm", ["separable", "register"])
def test_integers_with_real_weights_are_rounded(algorithm, rng, queue):
    image = rng.integers(0, 255, (23, 40), np.uint8, endpoint=True)
    config = {} if algorithm == "separable" else {"config": SMALL[algorithm]}
    options = {"algorithm": algorithm, "queue": queue, **config}
    flat = np.full((9, 9), 7, np.uint8)
    weights = np.full((3, 3), 1 / 9)
    np.testing.assert_array_equal(conv2d(flat, weights, boundary="wrap", **options), flat)
    sums = right(image, weights)
    result = conv2d(image, weights, saturate=True, **options)
    assert (np.abs(result - sums) <= 0.5 + 1e-4).all()
    sums = right(image, 4 * weights)
    result = conv2d(image, 4 * weights, saturate=True, **options)
    assert result.max() == 255 and (np.abs(result - sums.clip(0, 255)) <= 0.5 + 1e-3).all()
    result = conv2d(image, -weights, **options)
    assert (np.abs((result.astype(int) - 256) % -256 - right(image, -weights)) <= 0.5 + 1e-4).all()


@pytest.mark.parametrize("algorithm", ["separable", "register"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floating_points(dtype, algorithm, rng, queue, device):
    if dtype == "float64" and not device.capabilities.fp64:
        pytest.skip("no double precision")
    image = rng.uniform(-1, 1, (33, 48)).astype(dtype)
    weights = np.outer(rng.uniform(-1, 1, 5), rng.uniform(-1, 1, 3))
    result = conv2d(image, weights, boundary="reflect", algorithm=algorithm, queue=queue)
    assert result.dtype == dtype
    assert_close(result, right(image, weights, boundary="reflect"), weights)


@pytest.mark.parametrize("algorithm", ["separable", "register", "naive"])
def test_batches_colours_and_views(algorithm, rng, queue):
    weights = np.outer(rng.random(3), rng.random(4))
    options = {"boundary": "wrap", "algorithm": algorithm, "queue": queue}
    stack = rng.random((2, 3, 14, 30), np.float32)
    result = conv2d(stack, weights, **options)
    for place in np.ndindex(2, 3):
        assert_close(result[place], right(stack[place], weights, boundary="wrap"), weights)
    colours = rng.random((14, 30, 3), np.float32)
    result = conv2d(colours, weights, channels_last=True, mode="full", **options)
    for channel in range(3):
        expected = conv2d(colours[..., channel], weights, mode="full", **options)
        assert_close(result[..., channel], expected, weights)
    view = stack[1, 0, ::-2, 1::3].T
    assert not view.flags.c_contiguous
    assert_close(conv2d(view, weights, **options), right(view, weights, boundary="wrap"), weights)
    swapped = view.astype(view.dtype.newbyteorder())
    assert_close(
        conv2d(swapped, weights, **options), right(view, weights, boundary="wrap"), weights
    )


@pytest.mark.parametrize("mode", ["same", "full"])
def test_empty_images(mode, queue):
    weights = np.ones((3, 4))
    for shape in ((0, 5), (5, 0), (0, 0), (0, 7, 6)):
        result = conv2d(np.zeros(shape, np.float32), weights, mode=mode, cval=2.0, queue=queue)
        assert result.shape == (
            shape if mode == "same" else (*shape[:-2], shape[-2] + 2, shape[-1] + 3)
        )
        assert (result == 24).all()
    with pytest.raises(InvalidProblem, match="without pixels"):
        conv2d(np.zeros((0, 3)), weights, mode="full", boundary="wrap", queue=queue)


def test_device_arrays_stay_on_the_device(rng, queue):
    host_image, weights = rng.random((40, 60), np.float32), rng.random((3, 5)).astype(np.float32)
    image = cl.array.to_device(queue, host_image)
    for given_weights in (weights, cl.array.to_device(queue, weights)):
        result = conv2d(image, given_weights)
        assert isinstance(result, cl.array.Array) and result.queue == queue and result.events
        assert_close(result.get(), right(host_image, weights), weights)
    result = conv2d(image[3:, ::2], weights, mode="valid")
    assert_close(result.get(), signal.correlate2d(host_image[3:, ::2], weights, "valid"), weights)
    out = cl.array.empty_like(image)
    assert conv2d(image, weights, out=out) is out
    assert_close(out.get(), right(host_image, weights), weights)
    with pytest.raises(InvalidProblem, match="weights"):
        conv2d(host_image, cl.array.to_device(queue, weights))
    with pytest.raises(InvalidProblem, match="float32"):
        conv2d(image, cl.array.to_device(queue, weights.astype(np.int32)))
    empty = conv2d(cl.array.empty(queue, (0, 4), np.float32), weights, mode="full")
    assert empty.shape == (2, 8) and not empty.get().any()


def test_out_may_be_the_weights(rng, queue):
    image, weights = rng.random((9, 9), np.float32), rng.random((9, 9), np.float32)
    expected = right(image, weights)
    same = weights.copy()
    conv2d(image, same, out=same, queue=queue)
    assert_close(same, expected, weights)


def test_out_may_be_the_image(rng, queue):
    image, weights = rng.random((40, 61), np.float32), rng.random((3, 3))
    expected = right(image, weights)
    before = image.copy()
    conv2d(image, weights, queue=queue)
    assert image.tobytes() == before.tobytes()
    strided = np.zeros((61, 40), np.float32).T
    assert conv2d(image, weights, out=strided, queue=queue) is strided
    assert_close(strided, expected, weights)
    assert conv2d(image, weights, out=image, queue=queue) is image
    assert_close(image, expected, weights)
    with pytest.raises(InvalidProblem, match="out must have shape"):
        conv2d(image, weights, out=np.zeros((3, 3), np.float32), queue=queue)


@pytest.mark.parametrize(
    ("image", "weights", "options", "words"),
    [
        (np.ones(3, np.float32), np.ones((3, 3)), {}, "2 dimensions"),
        (np.ones((3, 3), np.int64), np.ones((3, 3)), {}, "int64"),
        (np.ones((3, 3), complex), np.ones((3, 3)), {}, "complex"),
        (np.ones((3, 3)), np.ones(3), {}, "two dimensions"),
        (np.ones((3, 3)), np.ones((0, 3)), {}, "needs weights"),
        (np.ones((3, 3)), np.ones((3, 3), complex), {}, "real"),
        (np.ones((3, 3)), np.ones((3, 3)), {"mode": "most"}, "mode"),
        (np.ones((3, 3)), np.ones((3, 3)), {"boundary": "cliff"}, "boundary"),
        (np.ones((3, 3)), np.ones((3, 3)), {"cval": "much"}, "cval"),
        (np.ones((3, 3)), np.ones((3, 3)), {"cval": np.complex64(2)}, "cval"),
        (np.ones((3, 3)), np.ones((3, 3)), {"channels_last": True}, "channels"),
    ],
)
def test_what_is_no_problem_says_why(image, weights, options, words, queue):
    with pytest.raises(InvalidProblem, match=words):
        conv2d(image, weights, queue=queue, **options)


def test_a_value_beyond_the_edges_that_float32_cannot_hold_is_an_infinity(rng, queue):
    image, weights = rng.random((30, 40), np.float32), rng.uniform(0.5, 1, (3, 5))
    for cval in (1e40, 10**400):
        result = conv2d(image, weights, cval=cval, queue=queue)
        assert np.isinf(result[0]).all() and np.isfinite(result[1:-1, 2:-2]).all()


def test_separable_filters_are_found(rng, queue):
    image = rng.random((40, 61), np.float32)
    pair = rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 6)
    full = np.outer(*pair)
    for weights in (pair, full, full.astype(np.float32), np.zeros((7, 6))):
        result = conv2d(image, weights, cval=2.0, algorithm="separable", queue=queue)
        whole = full if isinstance(weights, tuple) else weights
        assert_close(result, right(image, whole, cval=2.0), whole, 2.0)
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_filter_is_split_only_if_every_weight_stays(dtype, rng, queue):
    weights, image = small_beside_large()
    assert conv2d(image.astype(dtype), weights, queue=queue)[13, 13] == pytest.approx(100)
    on_device = cl.array.to_device(queue, image)
    assert conv2d(on_device, weights).get()[13, 13] == pytest.approx(100)

    def found(weights):
        return "row" in weight_inputs(weights, np.dtype(dtype))[0]

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
    assert all(found(named_filter(name, size)) for name in named for size in (7, 31, 101))


@pytest.mark.parametrize("shape", [(1, 100), (100, 1), (9, 100)])
def test_sums_of_separated_filters_do_not_overflow(shape, queue):
    image, weights = np.full((120, 210), 3e37, np.float32), np.full(shape, 1 / math.prod(shape))
    direct, result = (
        conv2d(image, weights, algorithm=name, queue=queue) for name in ("naive", "separable")
    )
    np.testing.assert_allclose(result, direct, rtol=1e-4)


def test_infinities_and_nan_stay_under_the_filter(rng, queue):
    image, weights = rng.random((30, 40), np.float32), rng.uniform(0.5, 1, (3, 5))
    image[3, 7], image[20, 33] = np.nan, np.inf
    for algorithm in ALGORITHMS:
        result = conv2d(image, weights, algorithm=algorithm, queue=queue)
        wide = signal.correlate2d(image.astype(np.float64), weights, "same")
        np.testing.assert_array_equal(np.isnan(result), np.isnan(wide))
        np.testing.assert_array_equal(np.isinf(result), np.isinf(wide))


sides = st.integers(1, 40)
taps = st.integers(1, 12)


@given(
    height=sides, width=sides, rows=taps, columns=taps, flip=st.booleans(),
    boundary=st.sampled_from(BOUNDARIES),
    channels=st.integers(1, 3), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_geometry(height, width, rows, columns, flip, boundary, channels, seed):
    rng = np.random.default_rng(seed)
    image = rng.random((height, width, channels), np.float32)
    weights = rng.uniform(-1, 1, (rows, columns))
    options = {"boundary": boundary, "flip": flip, "cval": 0.25}
    result = conv2d(image, weights, channels_last=True, algorithm="naive", **options)
    for channel in range(channels):
        plane = image[..., channel]
        assert_close(result[..., channel], right(plane, weights, **options), weights)


@given(size=st.integers(1, 9), far=st.integers(0, 40), boundary=st.sampled_from(BOUNDARIES))
def test_the_host_continues_images_as_ndimage_does(size, far, boundary):
    line = np.arange(1, size + 1)
    places = extend(np.arange(-far, size + far), size, boundary)
    reference = ndimage.correlate1d(  # a shift by k reads the value k places on
        line.astype(float), np.eye(2 * far + 1)[0], mode=boundary, cval=-7
    )
    values = np.where(places < 0, -7, line[places])
    np.testing.assert_array_equal(values[:size], reference)


def test_the_comparison_judges_each_value_by_what_is_under_the_filter():
    weights, image = small_beside_large()
    image[20, 20] = 1e-3
    for options in ({"flip": True}, {"boundary": "wrap"}, {"mode": "full"}, {"cval": 1e-3}):
        problem = Conv2dProblem(32, 32, 7, 7, **options)
        inputs = {"image": image[None, ..., None], "weights": weights.astype(np.float32)}
        expected = CONV2D.expected(problem, inputs)
        exact = expected["result"]
        sizes = magnitudes(problem, inputs, np.arange(exact.size)).reshape(exact.shape)
        np.testing.assert_allclose(exact, sizes, rtol=1e-6)  # nothing is negative here
        for place in ((exact > 50) & (exact < 200), abs(exact - 1e-3) < 1e-4, exact == 0):
            changed = exact.copy()
            changed[place] += 1e-4 * exact[place] + 1e-9
            assert place.any() and not compare(problem, inputs, exact, changed).ok
        assert compare(problem, inputs, exact, exact * (1 + np.float32(3e-7))).ok


def test_the_comparison_sees_what_is_wrong(rng):
    problem = CONV2D.problem(size=20)
    inputs = CONV2D.generate(problem, 1)
    expected = CONV2D.expected(problem, inputs)

    def ok(changed):
        return CONV2D.compare(problem, inputs, expected, {"result": changed}).ok

    exact = expected["result"]
    assert ok(exact) and ok(exact * (1 + np.float32(1e-7)))
    assert not ok(exact + np.float32(1e-4)) and not ok(exact[:, 1:])
    for bad in (np.nan, np.inf):
        changed = exact.copy()
        changed[0, 3, 4] = bad
        assert not ok(changed)
    whole = CONV2D.problem(size=20, dtype="uint8")
    inputs = CONV2D.generate(whole, 1)
    right_bytes = CONV2D.expected(whole, inputs)["result"]
    assert compare(whole, inputs, right_bytes, right_bytes + np.uint8(1)).ok
    assert not compare(whole, inputs, right_bytes, right_bytes + np.uint8(3)).ok


@pytest.mark.parametrize("name", FILTERS)
def test_named_filters(name):
    for size in (3, 7):
        weights = named_filter(name, size)
        assert weights.shape == (size, size)
        total = 0 if name in ("sobel", "sobel-y", "laplacian") else 1
        assert weights.sum() == pytest.approx(total, abs=1e-12)
    if name not in ("box", "gaussian"):
        with pytest.raises(InvalidProblem, match="odd ksize"):
            named_filter(name, 4)


def test_named_filters_are_the_known_ones():
    np.testing.assert_array_equal(named_filter("sobel"), [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    np.testing.assert_array_equal(named_filter("sobel-y"), named_filter("sobel").T)
    np.testing.assert_array_equal(named_filter("sharpen"), [[0, -1, 0], [-1, 5, -1], [0, -1, 0]])
    np.testing.assert_allclose(named_filter("emboss"), [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    impulse = np.zeros((41, 41))
    impulse[20, 20] = 1
    blurred = ndimage.gaussian_filter(impulse, 2.0, truncate=3.0)
    np.testing.assert_allclose(blurred[14:27, 14:27], named_filter("gaussian", sigma=2.0), 1e-9)
    for name, size, sigma in (("box", 3, 1.0), ("box", 0, None), ("gaussian", 3, -1.0)):
        with pytest.raises(InvalidProblem):
            named_filter(name, size, sigma)


def test_plans_fit_small_devices():
    small = Device("toy", "gpu", max_work_group=16, max_work_items=(16, 16, 16), local_memory=1024)
    small = replace(
        small, capabilities=replace(small.capabilities, max_work_group=16, local_memory=1024)
    )
    for options in ({}, {"ksize": 15}, {"dtype": "uint8"}, {"filter": "box", "channels": 3}):
        problem = CONV2D.problem(**options)
        for algorithm in CONV2D.algorithms:
            if algorithm.supports(problem, small) is None:
                plan = algorithm.plan(problem, algorithm.default_config(problem, small), small)
                check_plan(plan, small)
                for launch in plan.launches:
                    assert launch.kernel in render(launch.template, launch.params).text


@pytest.mark.parametrize(("native", "widths"), [(16, (8, 4)), (32, (8, 4)), (64, (16, 8))])
def test_vectors_of_a_cpu_are_those_it_compiles_to(native, widths):
    device = Device("toy", "cpu", native_vector_bytes=native)
    for dtype, width in zip(("float32", "float64"), widths, strict=True):
        problem = CONV2D.problem(dtype=dtype)
        config = CONV2D.algorithm("register").default_config(problem, device)
        assert config["VECTOR_WIDTH"] == width


def test_many_images_are_more_than_one_launch():
    problem = Conv2dProblem(3, 3, 3, 3, batch=70_000)
    device = Device("toy", "cpu")
    algorithm = CONV2D.algorithm("naive")
    launches = algorithm.plan(problem, algorithm.default_config(problem, device), device).launches
    assert [launch.global_size[2] for launch in launches] == [65_535, 4_465]
    assert [int(launch.arguments["first_image"]) for launch in launches] == [0, 65_535]


def test_problem_of_files(rng):
    photo = rng.integers(0, 255, (20, 30, 4), np.uint8)
    problem, inputs = CONV2D.problem_of({"image": photo}, filter="box")
    assert problem == Conv2dProblem(
        20, 30, 3, 3, np.dtype(np.uint8), channels=4, boundary="reflect", saturate=True,
        separable=True,
    )  # fmt: skip
    outputs = CONV2D.expected(problem, inputs)
    shown = CONV2D.present({"image": photo}, outputs)
    assert shown.shape == photo.shape
    np.testing.assert_array_equal(shown[..., 3], photo[..., 3])
    problem, _ = CONV2D.problem_of({"image": photo}, filter="sobel")
    assert problem.dtype == np.float32 and not problem.saturate
    assert problem.boundary == "reflect"
    for options in ({"boundary": "constant"}, {"cval": 7.0}):
        assert (
            CONV2D.problem_of({"image": photo}, filter="box", **options)[0].boundary == "constant"
        )
    problem, _ = CONV2D.problem_of({"image": photo}, filter="sobel", dtype="int16")
    assert problem.dtype == np.int16 and problem.saturate
    problem, _ = CONV2D.problem_of({"image": np.arange(12).reshape(3, 4)}, filter="box")
    assert problem.dtype == np.float64 and problem.channels == 1
    for options, words in (({}, "which filter"), ({"filter": "box", "size": 3}, "size is given")):
        with pytest.raises(InvalidProblem, match=words):
            CONV2D.problem_of({"image": photo}, **options)


def test_pictures_keep_their_colours(tmp_path, rng):
    for shape, dtype in (
        ((9, 7), np.uint8),
        ((9, 7, 3), np.uint8),
        ((9, 7, 4), np.uint8),
        ((9, 7), np.uint16),
    ):
        array = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        path = tmp_path / "picture.png"
        files.write_array(path, array)
        found = files.read_array(path, files.PICTURES)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, array)
    files.write_array(tmp_path / "grey.pgm", np.arange(12, dtype=np.uint8).reshape(3, 4))
    assert (tmp_path / "grey.pgm").read_bytes().startswith(b"P5")
    with pytest.raises(InvalidProblem, match="rows and columns"):
        files.write_array(path, np.zeros(3))
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(InvalidProblem, match=r"bad\.png"):
        files.read_array(tmp_path / "bad.png", files.PICTURES)
    with pytest.raises(InvalidProblem, match="must end in"):
        files.read_array(path)


def test_the_range_of_a_picture_is_that_of_its_source(tmp_path):
    values = np.array([[-300.0, -1.4], [0.6, np.nan]])
    sources = {
        "uint8": (np.zeros((2, 2), np.uint8), np.uint8, [[255, 1], [1, 0]]),
        "uint16": (np.zeros((2, 2), np.uint16), np.uint16, [[300, 1], [1, 0]]),
        "up to 1": (np.array([[1.0, np.nan]]), np.uint8, [[255, 255], [153, 0]]),
        "up to 255": (np.array([[-255.0]]), np.uint8, [[255, 1], [1, 0]]),
        "up to 65535": (np.array([[256]]), np.uint16, [[300, 1], [1, 0]]),
        "itself": (None, np.uint16, [[300, 1], [1, 0]]),
    }
    path = tmp_path / "picture.png"
    for name, (source, dtype, shown) in sources.items():
        files.write_array(path, values, like=source)
        found = files.read_array(path, files.PICTURES)
        assert found.dtype == dtype, name
        np.testing.assert_array_equal(found, shown, err_msg=name)
    files.write_array(path, values[..., None].repeat(3, -1), like=sources["uint16"][0])
    np.testing.assert_array_equal(files.read_array(path, files.PICTURES)[0, 0], [1, 1, 1])
    with pytest.raises(InvalidProblem, match=r"reach 70000.*scale"):
        files.write_array(path, values, like=np.array([[7e4]]))


def test_palettes_and_opacity_are_resolved(tmp_path, rng):
    colours = rng.integers(0, 255, (8, 8, 3), np.uint8)
    Image.fromarray(colours).quantize(4).save(tmp_path / "palette.png")
    assert files.read_array(tmp_path / "palette.png", files.PICTURES).shape == (8, 8, 3)
    Image.fromarray(colours[..., 0]).convert("LA").save(tmp_path / "clear.png")
    clear = files.read_array(tmp_path / "clear.png", files.PICTURES)
    assert clear.shape == (8, 8, 4)
    files.write_array(tmp_path / "again.png", clear)
    with Image.open(tmp_path / "again.png") as again:
        assert again.mode == "LA"
    Image.fromarray(colours[..., 0]).convert("1").save(tmp_path / "ink.png")
    assert files.read_array(tmp_path / "ink.png", files.PICTURES).shape == (8, 8)


def test_files_of_long_integers_and_complex_numbers():
    image = np.arange(100, dtype=np.int64).reshape(10, 10) + 2**30
    problem, inputs = CONV2D.problem_of({"image": image}, filter="sobel")
    result = CONV2D.expected(problem, inputs)["result"].reshape(10, 10)
    assert problem.dtype == np.float64
    np.testing.assert_array_equal(result, ndimage.sobel(image, mode="reflect"))
    with pytest.raises(InvalidProblem, match="complex128: give real"):
        CONV2D.problem_of({"image": image + 1j}, filter="box", dtype="float32")

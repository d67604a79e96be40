"""Convolutions: SciPy's results for every mode, boundary, type and kind of array."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conv2d_checks import ALGORITHMS, assert_close, check, right
from scipy import ndimage, signal

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.ops.conv2d import expected
from opencl_lab.ops.conv2d import rolling
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import BOUNDARIES, EXACT_TYPES, Conv2dProblem
from opencl_lab.ops.conv2d.solver import CONV2D_SOLVER

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


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("algorithm", "boundary", "filter_shapes", "flip"),
    [
        *(("naive", boundary, FILTER_SHAPES, place % 2) for place, boundary in
          enumerate(BOUNDARIES)),
        ("tiled", "wrap", FILTER_SHAPES, False),
        ("tiled", "mirror", FILTER_SHAPES, True),
        ("register", "mirror", [(3, 3)], False),
        ("register", "constant", [(4, 6)], True),
        ("register", "reflect", [(2, 9)], True),
        ("register", "wrap", [(7, 1)], False),
    ],
)  # fmt: skip
def test_same_is_that_of_ndimage(algorithm, boundary, filter_shapes, flip, rng, queue):
    """The matrix of all tests has each boundary for each algorithm."""
    options = {"boundary": boundary, "cval": -1.5, "flip": bool(flip)}
    more = {"algorithm": algorithm, "config": SMALL[algorithm], "queue": queue}
    for shape, filter_shape in itertools.product(SHAPES, filter_shapes):
        image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, filter_shape)
        check(image, weights, 1.5, **options, **more)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("algorithm", "flip"),
    [("register", False), ("tiled", True), ("naive", False), ("naive", True)],
)
def test_filters_larger_than_the_image(algorithm, flip, rng, queue):
    reference = signal.convolve2d if flip else signal.correlate2d
    image, weights = rng.random((5, 6), np.float32), rng.uniform(-1, 1, (9, 11))
    for mode in ("valid", "full"):
        options = {"mode": mode, "flip": flip, "algorithm": algorithm, "queue": queue}
        assert_close(conv2d(image, weights, **options), reference(image, weights, mode), weights)
    for boundary in BOUNDARIES if algorithm == "naive" else ():
        check(image, weights, algorithm=algorithm, queue=queue, boundary=boundary, flip=flip)
    with pytest.raises(InvalidProblem, match="one direction only"):
        conv2d(image, rng.random((9, 3)), mode="valid", queue=queue)


WINDOWS = [
    {"WINDOW": True, "VECTOR_WIDTH": 4, "VECTORS": 1, "ROWS": 2, "WG_X": 4, "STEPS_X": 1},
    {"WINDOW": True, "VECTOR_WIDTH": 8, "VECTORS": 2, "ROWS": 1, "UNROLL": 16},
    {"WINDOW": True, "VECTOR_WIDTH": 2, "VECTORS": 1, "ROWS": 6, "UNROLL": 2, "WG_Y": 2},
    {"WINDOW": False, "VECTOR_WIDTH": 1, "VECTORS": 3, "ROWS": 4, "WG_X": 8},
    {"WINDOW": False, "VECTOR_WIDTH": 16, "VECTORS": 1, "ROWS": 2, "UNROLL": 3},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("config", WINDOWS, ids=str)
def test_ways_along_a_row(config, rng, queue):
    more = {"algorithm": "register", "config": {**SMALL["register"], **config}, "queue": queue}
    # Rows whose length is a multiple of four are read in aligned pieces, others are not.
    for shape in ((21, 64), (21, 67)):
        image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, (5, 5))
        raw = np.zeros(image.size + 1, np.float32)  # which the kernel may get as it is
        raw[1:] = image.ravel()
        for given in (image, raw[1:].reshape(shape)):
            check(given, weights, boundary="mirror", **more)


def exact_sums(image, weights, dtype, saturate):
    """Return the sums of Python's integers over an image that continues by reflection."""
    around = [(size // 2, size - 1 - size // 2) for size in weights.shape]
    wide = np.pad(image.astype(object), around, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(wide, weights.shape)
    sums = (windows * weights.astype(object)).sum((2, 3))
    if dtype.kind == "b":
        return sums != 0
    limits = np.iinfo(dtype)
    if saturate:
        return sums.clip(limits.min, limits.max).astype(dtype)
    least = int(limits.min)
    return ((sums - least) % 2**limits.bits + least).astype(dtype)


EXACT = [(name, saturate) for name in EXACT_TYPES for saturate in (True, False)]


@pytest.mark.few(4)
@pytest.mark.parametrize(("dtype", "saturate"), EXACT)
def test_images_of_all_integers_are_filtered_exactly(dtype, saturate, rng, queue):
    kind = np.dtype(dtype)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    image = rng.integers(*limits, (17, 40), np.uint8 if dtype == "bool" else kind, endpoint=True)
    if dtype == "bool":
        image = image.view(bool) & (np.arange(40) < 20)
    for large in (3, 2**20, 2**45):
        weights = rng.integers(-large, large + 1, (3, 4))
        weights[1] = 1, 1, -2, 1
        right = exact_sums(image, weights, kind, saturate)
        for algorithm in ("auto", "naive") if saturate else ("auto", *ALGORITHMS):
            options = {"boundary": "reflect", "saturate": saturate, "algorithm": algorithm}
            result = conv2d(image, weights, queue=queue, **options)
            assert result.dtype == kind
            np.testing.assert_array_equal(result, right, err_msg=f"{algorithm} {large}")
        there = cl.array.to_device(queue, image)
        result = conv2d(there, weights, boundary="reflect", saturate=saturate)
        np.testing.assert_array_equal(result.get(), right)


def test_exact_sums_whatever_the_weights_and_the_value_outside(queue):
    white, most = np.full((1, 2), 255, np.uint8), np.full((1, 3), 65535, np.uint16)
    near = {"boundary": "nearest", "queue": queue}
    assert (conv2d(white, [[2**31 + 1, -(2**31)]], **near) == 255).all()
    assert (conv2d(white, [[2**70 + 3]], saturate=False, queue=queue) == 253).all()
    for cval in (0.5, np.nan):  # no window reaches it
        wrapped = conv2d(most, np.array([[257, 3, 5]]), cval=cval, saturate=False, **near)
        assert (wrapped == 65271).all()
    for cval, first in ((2**31, 65535), (-(2**31), 0), (1e12, 65535)):
        for saturate, value in ((True, first), (False, int(cval) % 2**16)):
            how = {"cval": cval, "saturate": saturate, "queue": queue}
            assert conv2d(most, np.array([[1, 0, 0]]), **how).tolist() == [[value, 65535, 65535]]
    there = cl.array.to_device(queue, white)
    for weights in ([[2**57]], [[2**57, 1 - 2**57]]):
        filtered = conv2d(there, cl.array.to_device(queue, np.array(weights)), boundary="nearest")
        assert (filtered.get() == 255).all()
    # Lists of different integers that are one list of floats.
    one = np.ones((1, 2), np.uint64)
    for more in (0, 1, 0):
        how = {"boundary": "wrap", "saturate": False, "queue": queue}
        assert (conv2d(one, [[2**63 + more, -1]], **how) == 2**63 - 1 + more).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["int32", "bool", "uint32", "int64", "uint64"])
def test_real_weights_on_other_integers(dtype, rng, queue, device):
    if dtype != "bool" and not device.capabilities.fp64:
        pytest.skip("no double precision")
    kind, real = np.dtype(dtype), rng.uniform(-1, 1, (3, 3))
    image = rng.integers(0, 2 if dtype == "bool" else 2**31, (20, 30)).astype(kind)
    image = image if dtype == "bool" else image << kind.type(8 * kind.itemsize - 32)
    sums = right(image, real)
    for algorithm in ("register", "separable"):
        weights = np.outer(real[0], real[1]) if algorithm == "separable" else real
        sums = right(image, weights)
        options = {"algorithm": algorithm, "queue": queue}
        clipped = conv2d(image, weights, **options)
        if dtype == "bool":
            np.testing.assert_array_equal(clipped, np.rint(sums) != 0)
            continue
        limits, room = np.iinfo(kind), 2.0 ** (kind.itemsize * 8)
        assert (np.abs(clipped - sums.clip(limits.min, limits.max)) <= 0.5 + room * 1e-15).all()
        wrapped = conv2d(image, 9 * weights, saturate=False, **options) - 9 * sums
        assert (np.abs(wrapped - np.rint(wrapped / room) * room) <= 0.5 + room * 1e-14).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # sums by pyopencl
def test_complex_images_are_those_of_ndimage(dtype, rng, queue, device):
    if dtype == "complex128" and not device.capabilities.fp64:
        pytest.skip("no double precision")

    def numbers(*shape):
        return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)

    image = numbers(2, 12, 17).astype(dtype)
    pair = numbers(3), numbers(4).real
    filters = [(w, w) for w in (numbers(3, 4).real, numbers(3, 4))]
    for weights, whole in (*filters, (pair, np.outer(*pair))):
        for flip in (False, True):
            filter_image = ndimage.convolve if flip else ndimage.correlate
            planes = [filter_image(plane, whole, mode="constant", cval=2 - 1j) for plane in image]
            expected, options = np.stack(planes), {"cval": 2 - 1j, "flip": flip}
            result, out = conv2d(image, weights, queue=queue, **options), image.copy()
            assert result.dtype == dtype and conv2d(out, weights, out=out, **options) is out
            there = conv2d(cl.array.to_device(queue, image), weights, **options)
            assert isinstance(there, cl.array.Array)
            bound = 60 * np.finfo(dtype).eps * np.abs(whole).sum()
            for given in (result, out, there.get()):
                assert np.abs(given - expected).max() <= bound


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_integers_wrap_around_however_large_the_sums(dtype, rng, queue):
    image = (256 * rng.integers(0, 256, (9, 40)) >> (8 if dtype == "uint8" else 0)).astype(dtype)
    for weight in (40_001.0, -40_001.0, 2.0**40, 1e30, np.inf):  # products exact in float32
        weights = np.full((1, 1), weight)
        with np.errstate(all="ignore"):
            right = image.astype(float) * weight
            low = np.where(np.isfinite(right), np.fmod(right, 2**16), 0).astype(int).astype(dtype)
        for algorithm in ("naive", "register"):
            result = conv2d(image, weights, saturate=False, algorithm=algorithm, queue=queue)
            np.testing.assert_array_equal(result, low, err_msg=f"{algorithm} {weight}")
        problem = Conv2dProblem(*image.shape, 1, 1, image.dtype)
        exact = expected.correlate(problem, image[None, ..., None], weights)
        np.testing.assert_array_equal(exact[0, ..., 0], low)


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", ["separable", "register"])
def test_integers_with_real_weights_are_rounded(algorithm, rng, queue):
    image = rng.integers(0, 255, (23, 40), np.uint8, endpoint=True)
    options = {"algorithm": algorithm, "config": SMALL["register"], "queue": queue}
    flat = np.full((9, 9), 7, np.uint8)
    weights = np.full((3, 3), 1 / 9)
    np.testing.assert_array_equal(conv2d(flat, weights, boundary="wrap", **options), flat)
    for factor in (1, 4):
        sums = right(image, factor * weights)
        result = conv2d(image, factor * weights, **options)
        assert (np.abs(result - sums.clip(0, 255)) <= 0.5 + 1e-3).all()
    assert result.max() == 255
    result = conv2d(image, -weights, saturate=False, **options)
    assert (np.abs((result.astype(int) - 256) % -256 - right(image, -weights)) <= 0.5 + 1e-4).all()


@pytest.mark.few(1)
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
    for given in (view, view.astype(view.dtype.newbyteorder())):
        assert_close(conv2d(given, weights, **options), right(view, weights, boundary="wrap"),
                     weights)  # fmt: skip


def test_more_images_than_a_grid_has_in_one_dimension(rng, queue):
    images = rng.random((70_000, 3, 3), np.float32)
    result = conv2d(images, np.ones((1, 1)), channels_last=False, algorithm="naive", queue=queue)
    np.testing.assert_array_equal(result, images)


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
    with pytest.raises(InvalidProblem, match="weights"):
        conv2d(host_image, cl.array.to_device(queue, weights))
    with pytest.raises(InvalidProblem, match="float32"):
        conv2d(image, cl.array.to_device(queue, weights.astype(np.int32)))
    pixels, factors = (
        rng.integers(0, 256, (40, 60), np.uint8),
        rng.integers(-9, 9, (3, 5), np.int32),
    )
    there = [cl.array.to_device(queue, array) for array in (pixels, factors)]
    exact = ndimage.correlate(pixels.astype(int), factors, mode="constant")
    np.testing.assert_array_equal(conv2d(*there).get(), exact.clip(0, 255))
    np.testing.assert_array_equal(conv2d(*there, saturate=False).get(), exact.astype(np.uint8))
    empty = conv2d(cl.array.empty(queue, (0, 4), np.float32), weights, mode="full")
    assert empty.shape == (2, 8) and not empty.get().any()


# ----------------------------------------------------------------- one thread

MODES = ("same", "full", "valid")


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "float64"])
def test_one_thread_rolls_sums_down_columns(dtype, serial, rng, monkeypatch):
    """As `naive` does, for tiles of any size, each boundary and mode."""
    monkeypatch.setattr(rolling, "MOST_COLUMNS", 128)
    filters = [rng.uniform(-1, 1, (3, 4)), np.outer(rng.random(6), rng.random(5))]
    filters.append(rng.integers(-3, 4, (2, 2)))
    filters += [rng.uniform(-1, 1, (rows, 3)) for rows in rng.choice(range(1, 16), 3, False)]
    shapes = rng.permutation([(1, 1, 1), (5, 8, 1), (40, 150, 1), (18, 65, 3), (30, 30, 2)])
    for boundary, shape in zip(BOUNDARIES, shapes, strict=True):
        weights = filters[int(rng.integers(len(filters)))]
        image = (100 * rng.random(shape)).astype(dtype)
        fits = all(size >= taps for size, taps in zip(shape, weights.shape, strict=False))
        mode = MODES[int(rng.integers(2 + fits))]
        options = {
            "boundary": boundary, "cval": -2, "flip": bool(rng.integers(2)), "mode": mode,
            "channels_last": True, "saturate": bool(rng.integers(2)), "device": serial,
        }  # fmt: skip
        config = {"TILE_BYTES": int(rng.choice([1 << 10, 1 << 16]))}
        got = conv2d(image, weights, algorithm="rolling", config=config, **options)
        expected = conv2d(image, weights, algorithm="naive", **options)
        if got.dtype.kind in "iu":
            apart = (got - expected).view(f"i{got.itemsize}")
            assert (np.abs(apart) <= (weights.dtype.kind == "f")).all()
        else:
            assert_close(got, expected, weights, 100)


def test_images_for_which_a_gpu_has_items_enough_share_a_program():
    cuda = Device("toy", "gpu", compute_units=8, compute_capability=(9, 0))
    names = {(90, 3): "naive", (64, 15): "naive", (92, 3): "register", (64, 16): "register"}
    for (size, taps), name in names.items():
        problem = Conv2dProblem(size, size, taps, taps)
        assert CONV2D_SOLVER.choose(problem, cuda).name == name
        assert CONV2D_SOLVER.choose(problem, replace(cuda, compute_capability=None)).name != "naive"
    assert (
        CONV2D_SOLVER.choose(Conv2dProblem(64, 64, 7, 7, separable=True), cuda).name == "separable"
    )


def test_one_thread_takes_small_filters_and_images():
    room = Capabilities(fp64=True, local_memory=1 << 18)
    one = Device("toy", "cpu", compute_units=1, native_vector_bytes=64, capabilities=room)
    names = {
        (64, 3): "rolling", (64, 13): "rolling", (64, 15): "register", (4000, 3): "register",
    }  # fmt: skip
    for (size, taps), name in names.items():
        problem = Conv2dProblem(size, size, taps, taps)
        assert CONV2D_SOLVER.choose(problem, one).name == name
        assert next(iter(CONV2D_SOLVER.ranked(problem, replace(one, compute_units=2)))) != "rolling"
    separable = Conv2dProblem(64, 64, 7, 5, separable=True)
    sizes = [Conv2dProblem(64, 64, 3, 3), Conv2dProblem(9, 700, 11, 6), separable]
    launches = [CONV2D_SOLVER.plan(problem, one, "rolling").launches[0] for problem in sizes]
    assert all(launch.params == launches[0].params for launch in launches)  # a program for all
    large = [Conv2dProblem(2000, 2000, 6, 5), Conv2dProblem(999, 3000, 11, 15)]
    launches = [CONV2D_SOLVER.plan(problem, one, "register").launches[0] for problem in large]
    assert launches[0].params == launches[1].params
    rolling_of = CONV2D_SOLVER.algorithm("rolling")
    assert rolling_of.supports(Conv2dProblem(64, 64, 3, 3), replace(one, kind="gpu"))
    small = replace(one, capabilities=Capabilities(local_memory=1 << 10))
    assert "no room" in rolling_of.supports(Conv2dProblem(64, 64, 3, 3), small)
    assert rolling_of.supports(Conv2dProblem(64, 64, 1, 20, channels=100), one)
    assert not rolling_of.supports(Conv2dProblem(64, 64, 15, 15, separable=True), one)

"""The kernels of minima, maxima and ranks beside NumPy: edges, modes, sizes, types, groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ndimage_checks import both

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.ops.filters.networks import Network
from opencl_lab.ops.filters.problem import LinesProblem, Window, WindowProblem
from opencl_lab.ops.filters.solver import LINES, WINDOW

PADS = {
    "reflect": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "constant": "constant",
}
NETWORKS = {"RESULTS": 2, "WIDE": 8, "WG_SIZE": 16}
EXTREMES = {"ROWS": 4, "BLOCK": 1, "WG_SIZE": 16}


def under(image, windows):
    """Return the values under the window of each place, in a last axis."""
    padded = image
    for one in windows:
        around = [(0, 0)] * image.ndim
        around[one.axis] = one.before, one.size - 1 - one.before
        more = {"constant_values": 1} if one.mode == "constant" else {}
        padded = np.pad(padded, around, mode=PADS[one.mode], **more)
    sizes = [1] * image.ndim
    for one in windows:
        sizes[one.axis] = one.size
    return np.lib.stride_tricks.sliding_window_view(padded, sizes).reshape(*image.shape, -1)


def drawn(rng, dtype, shape):
    """Return numbers of which many are equal, and some are NaN."""
    image = rng.integers(0, 40, shape).astype(dtype)
    if image.dtype.kind == "f":
        image[rng.random(shape) < 0.02] = np.nan
    return image


def reduced(values, place):
    """Return the values of a rank; NaN if there is one."""
    right = np.sort(values, -1)[..., place]
    return np.where((values != values).any(-1), np.nan, right).astype(values.dtype)


@pytest.mark.parametrize("seed", range(40))
def test_networks_find_ranks_of_all_windows(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 3)
    places = np.argwhere(rng.random(sizes) < (1 if seed % 2 else 0.6)).tolist() or [[0, 0, 0]]
    rank, results = int(rng.integers(len(places))), int(rng.integers(1, 9))
    network = Network(tuple(map(tuple, places)), rank, results)
    steps, found = network.steps()
    shape = (*np.add(sizes, (0, results, 0)), 50)
    image = rng.integers(0, 20, shape)
    values = {
        f"v_{plane}_{row}_{column}": image[plane, row, column]
        for (plane, row), columns in network.read().items()
        for column in columns
    }
    for step in steps:
        least = np.minimum if step.kind == "LESSER" else np.maximum
        values[step.name] = least(values[step.one], values[step.other])
    for result, name in enumerate(found):
        window = np.sort([image[plane, row + result, column] for plane, row, column in places], 0)
        np.testing.assert_array_equal(values[name], window[rank])


def test_what_windows_share_is_compared_once():
    """Of 3 x 3 and 5 x 5 medians; a network of each window takes 40 and 202."""
    for size, most in ((3, 20), (5, 84)):
        places = tuple((0, y, x) for y in range(size) for x in range(size))
        steps, _ = Network(places, size * size // 2, 4).steps()
        assert len(steps) <= 4 * most


WINDOWS = [
    ("float32", (19, 53), ((0, 3, 1), (1, 3, 1)), (), "rank", 4, "mirror"),
    ("float64", (2, 9, 40), ((1, 4, 3), (2, 5, 0)), (0, 7, 19), "rank", 11, "wrap"),
    ("uint8", (23, 21, 3), ((0, 5, 2), (1, 3, 2)), (), "rank", 7, "constant"),
    ("float32", (5, 7, 6), ((0, 3, 1), (1, 3, 1), (2, 3, 1)), (), "max", 26, "reflect"),
    ("int64", (40, 33), ((0, 6, 1),), (2,), "min", 0, "constant"),
    ("float32", (3, 1, 90), ((0, 2, 0), (2, 7, 3)), (), "rank", 6, "nearest"),
    ("uint16", (150,), ((0, 9, 8),), (), "rank", 2, "reflect"),
]


@pytest.mark.parametrize(
    ("dtype", "shape", "windows", "holes", "reduce", "place", "mode"),
    WINDOWS,
    ids=[f"{reduce} of {shape}" for _, shape, _, _, reduce, _, _ in WINDOWS],
)
def test_small_windows(dtype, shape, windows, holes, reduce, place, mode, device, rng):
    kind, image = np.dtype(dtype), drawn(rng, dtype, shape)
    found = tuple(Window(*one, mode) for one in windows)
    values = np.delete(under(image, found), holes, -1)
    count = math.prod(one.size for one in found) - len(holes)
    assert count == values.shape[-1]
    problem = WindowProblem(shape, *[kind] * 3, reduce, (1, 1), False, found, count, place, holes)
    for config in (None, NETWORKS):
        run = WINDOW.run(
            problem, {"image": image}, algorithm="networks", config=config, queue=device.queue()
        )
        np.testing.assert_array_equal(run.outputs["result"], reduced(values, place))


def test_which_windows_no_network_takes(device):
    kind = np.dtype(np.float32)
    for reduce, size in (("sum", 3), ("rank", 50)):
        problem = WindowProblem(
            (99,), *[kind] * 3, reduce, (0, 0), False, (Window(0, size, 0, "wrap"),), size
        )
        with pytest.raises(InvalidConfig, match="networks"):
            WINDOW.choose(problem, device, "networks")


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("reduce", ["min", "max"])
def test_extremes_along_axes(reduce, seed, device):
    """Windows of all sizes share their programs, so many of them take little time."""
    rng = np.random.default_rng(seed)
    kind, ndim = np.dtype(np.float32 if seed % 3 else np.int16), 1 + seed % 4
    shape = tuple(int(n) for n in rng.integers(1, (2500, 70, 20, 9)[ndim - 1], ndim))
    if seed % 5 == 0:
        shape = (*shape[:-1], 3)
    image, modes = drawn(rng, kind, shape), rng.choice(list(PADS), ndim)
    windows = []
    for axis in range(ndim):
        size = int(rng.integers(1, (60, 30, 9, 5)[ndim - 1]))
        if axis == ndim - 1 or rng.random() < 0.75:
            windows.append(Window(axis, size, int(rng.integers(size)), str(modes[axis])))
    problem = LinesProblem(shape, *[kind] * 3, reduce, (1, 1), False, (tuple(windows),))
    right = getattr(under(image, windows), reduce)(-1)
    for config in (None, EXTREMES):
        run = LINES.run(
            problem, {"image": image}, algorithm="extremes", config=config, queue=device.queue()
        )
        np.testing.assert_array_equal(run.outputs["result"], right)


def test_a_configuration_that_leaves_no_room_is_refused(device):
    kind = np.dtype(np.float32)
    problem = LinesProblem((99,), *[kind] * 3, "max", (0, 0), False, ((Window(0, 50, 9, "wrap"),),))
    with pytest.raises(InvalidConfig, match="no room for a window of 50 values"):
        LINES.plan(problem, device, "tiled", {"BLOCK": 1 << 24})


def test_minima_are_cut_to_the_type_of_the_result_after_each_axis(rng):
    """As in SciPy, whatever the size of a full window; with holes, once."""
    x = rng.integers(-(2**31), 2**31, (20, 30)).astype(np.int32)
    for size in (3, 9):
        right, found = both("minimum_filter", x, size, output="uint8")
        np.testing.assert_array_equal(found, right)
    right, found = both("maximum_filter", x, None, footprint=[[0, 1], [1, 1]], output="uint8")
    np.testing.assert_array_equal(found, right)

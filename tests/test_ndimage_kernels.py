"""Kernels of linear filters: tiles that divide nothing, edges, short lines; GPUs' on any device."""

from __future__ import annotations

import numpy as np
import pytest
from ndimage_checks import both, is_near, numbers, scipy_ndimage
from tuning_runs import GPU

import opencl_lab as ol
from opencl_lab import ndimage
from opencl_lab.core.space import Config
from opencl_lab.ops.conv2d.trials import BOUNDARIES
from opencl_lab.ops.filters.lines import TiledLines
from opencl_lab.ops.filters.near import NearCross, NearWindow
from opencl_lab.ops.filters.problem import LinesProblem, Window, WindowProblem
from opencl_lab.ops.filters.sheets import Sheets
from opencl_lab.ops.filters.trials import lines
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of


def on_any_device(algorithm, problem, inputs, **config):
    """Return the result of an algorithm that need not be for this device."""
    device = ol.select_device()
    chosen = Config(**{**algorithm.default_config(problem, GPU), **config})
    plan = algorithm.plan(problem, chosen, device)
    executable = session_of(device.queue()).executable(object(), lambda: plan)
    return execute(executable, inputs, device.queue()).outputs["result"], plan


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32"])
@pytest.mark.parametrize("shape", [(3, 70, 90), (40, 50, 3), (9, 12, 65)])
def test_two_axes_in_one_launch_on_gpus(reduce, dtype, shape, rng):
    """Parts and bands whose sizes divide nothing, windows longer than an axis, edges."""
    windows = (Window(0, 5, 2, "wrap"), Window(1, 30, 15, "mirror"))
    for window in (
        windows,
        tuple(Window(w.axis + 1, w.size, w.before, "reflect") for w in windows),
    ):
        problem, inputs, right = lines(reduce, dtype, window, rng, shape)
        small = {"ROWS": 4, "TILE": 100, "BAND": 12, "WG_SIZE": 32}
        for config in ({"WG_SIZE": 64}, small):
            found, plan = on_any_device(Sheets(), problem, inputs, **config)
            assert is_near(found, right)
            assert [one.kernel for one in plan.launches] == ["filter_sheet"]


def test_a_window_of_one_value_along_long_rows(rng):
    """Each place has more values than a tile, and nothing lies around it."""
    windows = Window(0, 5, 2, "wrap"), Window(1, 1, 0, "mirror")
    problem, inputs, right = lines("sum", "float32", windows, rng, (20, 6, 600))
    found, plan = on_any_device(Sheets(), problem, inputs, WG_SIZE=64)
    assert is_near(found, right) and len(plan.launches) == 1


def test_three_axes_and_terms_on_gpus(rng):
    """Columns alone, then two axes; several filters of the same axes in one launch, and a root."""
    kind, shape = np.dtype(np.float32), (20, 30, 45)
    windows = tuple(
        Window(axis, 7, 3, mode) for axis, mode in enumerate(("wrap", "mirror", "nearest"))
    )
    problem, inputs, right = lines("sum", "float32", windows, rng, shape)
    found, plan = on_any_device(Sheets(), problem, inputs, WG_SIZE=64)
    assert is_near(found, right) and len(plan.launches) == 2
    terms = tuple(tuple(windows[:2]) for _ in range(2))
    weights = rng.standard_normal(28).astype(kind)
    for root in (False, True):
        whole = LinesProblem(shape, kind, kind, kind, "sum", (0, 0), False, terms, root)
        image = inputs["image"]
        found, plan = on_any_device(Sheets(), whole, {"image": image, "weights": weights})
        parts = []
        for first in (0, 14):
            part = image.astype(np.float64)
            for axis in (0, 1):
                line = weights[first + 7 * axis :][:7]
                part = scipy_ndimage.correlate1d(part, line, axis, mode=windows[axis].mode)
            parts.append(part)
        right = np.hypot(*parts) if root else sum(parts)
        assert is_near(found, right.astype(kind)) and len(plan.launches) == 1


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(5, 3, 2), (3, 7), (1, 4, 4)])
def test_small_windows_straight_from_the_image(sizes, layers, rng):
    shape = (7, 21, 40)[-len(sizes) :]
    modes = ("mirror", "wrap", "reflect")
    windows = tuple(
        Window(axis, size, size - 1, mode)
        for axis, (size, mode) in enumerate(zip(sizes, modes, strict=False))
    )
    kind = np.dtype(np.float32)
    count = int(np.prod(sizes))
    problem = WindowProblem(shape, *[kind] * 3, "sum", (0, 0), False, windows, count)
    image, weights = numbers(rng, kind, shape), numbers(rng, kind, sizes)
    inputs = {"image": image, "weights": weights.ravel(), "distances_0": np.zeros(count, np.int64)}
    found, _ = on_any_device(NearWindow(), problem, inputs, LAYERS=layers, ROWS=4, WG_SIZE=64)
    around = [(size - 1, 0) for size in sizes]
    padded = image.astype(np.float64)
    for axis, window in enumerate(windows):
        edges = [around[axis] if d == axis else (0, 0) for d in range(len(sizes))]
        padded = np.pad(padded, edges, mode=BOUNDARIES[window.mode])
    right = np.einsum(
        "...ij,ij" if len(sizes) == 2 else "...ijk,ijk",
        np.lib.stride_tricks.sliding_window_view(padded, sizes),
        weights,
    )
    assert is_near(found, right.astype(kind))


@pytest.mark.parametrize("shape", [(30, 50), (6, 7, 40), (20, 30, 3), (9, 3)])
def test_laplacians_in_one_launch(shape, rng):
    """Edges nearer than a vector, and axes that lie apart."""
    x = numbers(rng, "float32", shape)
    for axes in (None, (0, len(shape) - 1)):
        modes = ("wrap", "mirror", "reflect")[: len(axes or shape)]
        assert is_near(*both("laplace", x, None, axes=axes, mode=modes)[::-1])
    image = numbers(rng, "uint8", shape)
    np.testing.assert_array_equal(*both("laplace", image, None))
    windows = tuple((Window(axis, 3, 1, "reflect"),) for axis in range(len(shape)))
    problem = LinesProblem(shape, *[x.dtype] * 3, "sum", (0, 0), False, windows)
    weights = np.array([1, -2, 1] * len(shape), x.dtype)
    inputs = {"image": x, "weights": weights}
    for algorithm in (NearCross(), TiledLines()):
        found, _ = on_any_device(algorithm, problem, inputs, WG_SIZE=64)
        assert is_near(found, scipy_ndimage.laplace(x))


@pytest.mark.parametrize("size", [2, 7, 8, 9, 16, 31, 100])
def test_means_share_what_they_add(size, rng):
    """Windows shorter and longer than the rows of a step, and rows of several sums."""
    for shape in ((40, 70), (90, 1100), (31, 40, 3)):
        for dtype in ("float32", "int16", "uint8", "uint16"):
            x = numbers(rng, dtype, shape)
            if x.dtype.kind != "f":
                limits = np.iinfo(dtype)
                x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            right, found = both("uniform_filter", x, size, mode="mirror", axes=(0, 1))
            assert is_near(found, right)


def test_means_of_integers_are_cut_to_the_type_of_the_result_after_each_axis(rng):
    """Also if two axes could take one launch; a far value beyond the edges does not wrap around."""
    x = rng.integers(-1000, 1000, (60, 300)).astype(np.int16)
    for output in ("uint8", "uint32"):
        columns = ndimage.uniform_filter1d(x, 5, 0, output=output)
        found = ndimage.uniform_filter(x, 5, output=output)
        np.testing.assert_array_equal(found, ndimage.uniform_filter1d(columns, 5, 1))
    flat = np.full(9, 7, np.int16)
    edge = ndimage.uniform_filter1d(flat, 3, mode="constant", cval=3 * 2**30, output="int32")
    assert edge.tolist() == [2**30 + 4, *[7] * 7, 2**30 + 4]


@pytest.mark.parametrize("name", ["correlate1d", "uniform_filter1d", "maximum_filter1d"])
def test_short_lines_are_filtered_together(name, rng):
    """Colours, pairs, lines of one value: by vectors, and the lines that are left over."""
    for shape in ((37, 61, 3), (1000, 1), (333, 2, 2), (5, 7)):
        for dtype in ("float32", "uint8", "complex64")[: 3 if name == "correlate1d" else 2]:
            x, size = numbers(rng, dtype, shape), [1, -2, 0, 3, 1] if name == "correlate1d" else 5
            for axis in (-1, -2):
                for mode in ("reflect", "constant"):
                    right, found = both(name, x, size, axis=axis, mode=mode, cval=3)
                    assert is_near(found, right)

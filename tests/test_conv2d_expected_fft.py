"""What is right for large filters, by transforms: as certain as the sums that it stands for."""

from dataclasses import replace

import numpy as np
import pytest

from opencl_lab.lab.engine.request import Point, Request, check_point
from opencl_lab.lab.ops.conv2d import expected, expected_fft
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.ops.conv2d.problem import Conv2dProblem

SHAPES = [
    ("float32", "same", "constant", False, (70, 33)),
    ("float32", "full", "reflect", True, (40, 150)),
    ("float64", "same", "nearest", True, (150, 130)),
    ("float16", "valid", "wrap", False, (90, 40)),
    ("uint8", "same", "mirror", False, (50, 90)),
]


def both(problem, inputs):
    arrays = problem, inputs["image"], inputs["weights"]
    return expected.correlate(*arrays), expected_fft.correlate(*arrays)


@pytest.mark.few(2)
@pytest.mark.parametrize(("dtype", "mode", "boundary", "flip", "taps"), SHAPES)
def test_transforms_give_the_sums(dtype, mode, boundary, flip, taps, monkeypatch):
    monkeypatch.setattr(expected_fft, "EDGE", 64)  # several blocks of the filter and of the image
    problem = Conv2dProblem(
        120, 101, *taps, np.dtype(dtype), 1, 2, mode, boundary, 2.5, flip, saturate=True
    )
    inputs = CONV2D.generate(problem, 1)
    right, found = both(problem, inputs)
    assert CONV2D.compare(problem, inputs, {"result": right}, {"result": found}).ok
    assert np.count_nonzero(right != found) <= (right.size if dtype == "float64" else 3)
    eps = np.finfo(np.float64).eps
    assert np.abs(found.astype(float) - right.astype(float)).max() <= (
        1e4 * eps if dtype == "float64" else 2e-3 if dtype == "float16" else 1
    )


def test_sums_of_integers_are_exact(rng):
    problem = Conv2dProblem(90, 80, 33, 37, np.dtype("uint8"), accumulator=np.dtype("int32"))
    inputs = {
        "image": rng.integers(0, 256, problem.image_shape, np.uint8),
        "weights": rng.integers(-9, 10, problem.filter_shape, np.int32),
    }
    right, found = both(problem, inputs)
    np.testing.assert_array_equal(found, right)
    inputs["weights"] <<= 26  # too large for transforms to tell their sums apart
    assert both(problem, inputs)[1] is None


def test_small_values_beside_large_ones_are_not_lost(rng):
    problem = Conv2dProblem(150, 140, 33, 35)
    image = rng.random(problem.image_shape, np.float32)
    image[:, :60] = 0  # exactly nothing under the whole filter, and then very little
    image[0, 140, 130] = 1e8
    weights = rng.random(problem.filter_shape, np.float32) - 0.5
    right, found = both(problem, {"image": image, "weights": weights})
    sizes = expected.correlate(problem, abs(image), abs(weights))
    assert (found[right == 0] == 0).all() and (right == 0).any()
    growth = weights.size * np.finfo(np.float32).eps / 2
    assert (abs(found - right) <= growth * sizes / 4).all()
    image[0, :, 130] = 1e15 * rng.random((150, 1))  # too many to be summed one by one
    assert both(problem, {"image": image, "weights": weights})[1] is None
    image[0, 0, 0] = np.nan
    assert both(problem, {"image": image, "weights": weights})[1] is None


def test_what_forms_all_products_of_a_large_filter_is_asked_for_by_name(device):
    huge = CONV2D.problem(size=2048, ksize=301)
    everything = Request(algorithms="all", against="all")
    schedule = check_point(Point(CONV2D, huge, dict, everything), device)
    assert [name for name, _, _ in schedule.runs] == ["fft", "adaptive"]
    small = replace(huge, filter_height=31, filter_width=31)
    schedule = check_point(Point(CONV2D, small, dict, Request(algorithms="all")), device)
    names = [name for name, _, _ in schedule.runs]
    assert {"register", "tiled", "naive"} <= set(names)
    assert CONV2D.sample(huge).products < 2**24

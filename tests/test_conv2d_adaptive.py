"""The convolution that samples the image: what it chooses, and that both ways are right."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from conv2d_checks import assert_close, check, right
from scipy import signal

from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.ops.conv2d import adaptive
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of


@pytest.fixture
def quick_transforms(monkeypatch):
    """Let the recheck alone decide, on any device and for small images."""
    monkeypatch.setattr(adaptive, "arithmetic", lambda *how: 0.0)


def image_of(kind, shape, rng):
    noise = rng.standard_normal(shape).astype(np.float32)
    if kind == "uniform":
        return rng.random(shape, np.float32)
    if kind == "stars":
        return noise + np.where(rng.random(shape) < 1e-2, np.float32(1e6), 0)
    if kind == "black beside grey":  # products of zeros are left out
        return np.where(np.arange(shape[1]) < shape[1] // 4, 0, 1 + 0 * noise)
    if kind == "infinities":
        return np.where(rng.random(shape) < 1e-2, np.inf, noise)
    return {"black": 0 * noise, "nan": np.nan * noise}[kind]


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("uniform", "fft"),
        ("black", "fft"),
        ("black beside grey", "fft"),
        ("stars", "register"),
        ("infinities", "register"),
        ("nan", "register"),
    ],
)
@pytest.mark.parametrize("group", [None, 8])
def test_the_image_decides(kind, way, group, quick_transforms, rng, queue):
    """Both ways round differently, so a result shows which one made it."""
    image = image_of(kind, (150, 203), rng)
    weights = rng.random((23, 21), np.float32)
    config = {} if group is None else {"WG_SIZE": group}
    result = conv2d(image, weights, algorithm="adaptive", config=config, queue=queue)
    expected = conv2d(
        image, weights, algorithm=way, config=config if way == "fft" else None, queue=queue
    )
    np.testing.assert_array_equal(result, expected)
    if kind in ("uniform", "stars"):
        other = "register" if way == "fft" else "fft"
        assert (conv2d(image, weights, algorithm=other, queue=queue) != result).any()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["uniform", "stars"])
@pytest.mark.parametrize("mode", ["same", "full"])
def test_batches_of_colours_in_rounds(kind, mode, quick_transforms, rng, queue):
    images = image_of(kind, (3, 40, 50, 3), rng)
    weights = rng.uniform(-1, 1, (7, 6))
    more = {"algorithm": "adaptive", "config": {"BLOCK": 32, "PAIRS": 3}, "queue": queue}
    result = conv2d(images, weights, mode=mode, channels_last=True, **more)
    for image in range(3):
        for channel in range(3):
            plane = images[image, ..., channel].astype(np.float64)
            if mode == "full":
                expected = signal.correlate2d(plane, weights, mode)
            else:
                expected = right(plane, weights)
            assert_close(result[image, ..., channel], expected, weights, np.abs(images).max())


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (200, 3), (5, 7)])
def test_images_smaller_than_the_sample(shape, quick_transforms, rng, queue):
    image, weights = rng.random(shape, np.float32), rng.uniform(-1, 1, (9, 9))
    check(image, weights, algorithm="adaptive", queue=queue)


def test_calls_in_a_row_decide_each_for_itself(quick_transforms, rng, queue):
    """The counter of the groups that have come is zero again after each call."""
    weights = rng.random((23, 21), np.float32)
    images = [image_of(kind, (150, 203), rng) for kind in ("uniform", "stars")]
    expected = [
        conv2d(image, weights, algorithm=way, queue=queue)
        for image, way in zip(images, ("fft", "register"), strict=True)
    ]
    for turn in range(6):
        result = conv2d(images[turn % 2], weights, algorithm="adaptive", queue=queue)
        np.testing.assert_array_equal(result, expected[turn % 2])
    algorithm, device = CONV2D.algorithm("adaptive"), session_of(queue).device
    problem = Conv2dProblem(150, 203, 23, 21)
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    executable = Executable(plan, session_of(queue))
    execute(executable, CONV2D.generate(problem, 0), queue)
    for spec in plan.with_role("zeros"):
        left = np.ones(spec.shape, spec.dtype)
        cl.enqueue_copy(queue, left, executable._zeros[queue.int_ptr][spec.name])
        assert not left.any()
    assert "arrived" in {spec.name.split("_")[0] for spec in plan.with_role("zeros")}

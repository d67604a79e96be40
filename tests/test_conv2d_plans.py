"""Filters by name, plans of the convolution, and pictures in files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.lab import files
from opencl_lab.lab.ops.conv2d.filters import FILTERS, SIGNED, named_filter
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.ops.conv2d.problem import Conv2dProblem


@pytest.mark.parametrize("name", FILTERS)
def test_named_filters(name):
    for size in (3, 7):
        weights = named_filter(name, size)
        assert weights.shape == (size, size)
        total = 0 if name in SIGNED else 1
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


def test_tiles_leave_local_memory_for_their_argument():
    """NVIDIA's driver takes an element of the 48 KiB for each argument in local memory."""
    claims = Capabilities(max_work_group=1024, local_memory=48 << 10, fp64=True)
    device = Device("toy", "gpu", max_work_items=(1024,) * 3, capabilities=claims)
    algorithm = CONV2D.algorithm("tiled")
    for size in (3, 63, 79, 80, 95, 96, 127):
        for dtype in ("float32", "float64"):
            problem = Conv2dProblem(300, 300, size, size, dtype=np.dtype(dtype))
            if algorithm.supports(problem, device):
                continue
            plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
            check_plan(plan, device)

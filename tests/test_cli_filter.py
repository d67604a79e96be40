"""`oclab filter`, and filters in the lab: files, right results, references, tuning."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import QUICK, oclab, one_sentence
from PIL import Image
from scipy import ndimage

import opencl_lab as ol
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.request import point_of
from opencl_lab.lab.files import read_array, write_array
from opencl_lab.lab.ops.filters.operation import FILTER
from opencl_lab.ops.filters.calls import FILTER_SOLVER, FUNCTIONS, FilterCall, asked
from opencl_lab.tuned import database

FORMATS = (".npy", ".png", ".tif")


def smooth(rng, shape, most):
    x = ndimage.gaussian_filter(rng.random(shape), [3 if size > 4 else 0 for size in shape])
    x = most * (x - x.min()) / np.ptp(x)
    return x.astype(np.uint8 if most == 255 else np.uint16)


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    """A photo with opacity, a grey one of 16 bits, a volume of 16 bits, by Pillow alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("opencl_lab.lab.files.tiff._has_tifffile", lambda: False)
    made = {
        "photo.png": smooth(rng, (40, 60, 4), 255),
        "deep.png": smooth(rng, (50, 70), 65535),
        "volume.tif": smooth(rng, (12, 20, 30), 65535),
        "rays.tif": (smooth(rng, (30, 40), 65535) / 9999 - 2).astype(np.float32),
    }
    for name, array in made.items():
        write_array(tmp_path / name, array)
    return made


def each_channel(function, image, *arguments):
    planes = [function(image[..., i].astype(float), *arguments) for i in range(3)]
    return np.stack(planes, axis=-1)


@pytest.mark.parametrize(
    ("source", "arguments", "target", "right"),
    [
        ("deep.png", ["--gaussian", 2], "x.png", lambda x: ndimage.gaussian_filter(x * 1.0, 2)),
        ("deep.png", ["--minimum", 4], "x.tif", lambda x: ndimage.minimum_filter(x, 4)),
        ("volume.tif", ["--median", 3], "x.tif", lambda x: ndimage.median_filter(x, 3)),
        (
            "volume.tif",
            ["--mean", 5, "--axes", "1,2", "--mode", "wrap"],
            "x.npy",
            lambda x: ndimage.uniform_filter(x * 1.0, (1, 5, 5), mode="wrap"),
        ),
        (
            "volume.tif",
            ["--gradient", 1],
            "x.tif",
            lambda x: ndimage.gaussian_gradient_magnitude(x.astype(np.float32), 1),
        ),
        ("rays.tif", ["--laplace"], "x.tif", ndimage.laplace),
        (
            "rays.tif",
            ["--percentile", 20, "--ksize", 5],
            "x.npy",
            lambda x: ndimage.percentile_filter(x, 20, 5),
        ),
    ],
)
def test_files_of_each_kind(files, source, arguments, target, right):
    """The result has the type of the image, but for derivatives, which are beyond it."""
    result = oclab("filter", source, *arguments, "-o", target, *QUICK)
    assert result.returncode == 0, result.stderr
    found, expected = read_array(target, FORMATS), right(files[source])
    assert found.dtype == (np.float32 if "--gradient" in arguments else files[source].dtype)
    near = 0.51 if found.dtype.kind == "u" else 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=near)


def test_colours_are_filtered_each_by_itself_and_opacity_is_kept(files):
    photo = files["photo.png"]
    for arguments, right in (
        (["--median", 3], each_channel(ndimage.median_filter, photo, 3)),
        (["--gaussian", 1.5], each_channel(ndimage.gaussian_filter, photo, 1.5)),
        (["--sobel", "--axis", 0], abs(each_channel(ndimage.sobel, photo, 0)).clip(0, 255)),
    ):
        result = oclab("filter", "photo.png", *arguments, "-o", "x.png", *QUICK)
        assert result.returncode == 0, result.stderr
        found = np.asarray(Image.open("x.png"))
        np.testing.assert_array_equal(found[..., 3], photo[..., 3])
        np.testing.assert_allclose(found[..., :3], right, atol=0.51)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [("int8", "int8"), ("uint32", "uint32"), ("int64", "float64"), ("longdouble", "float64")],
)
def test_means_have_the_type_of_integers_that_float64_holds(files, dtype, kept):
    image = np.arange(60).reshape(6, 10).astype(dtype)
    np.save("x.npy", image)
    result = oclab("filter", "x.npy", "--mean", 3, "-o", "y.npy", *QUICK)
    assert result.returncode == 0, result.stderr
    assert np.load("y.npy").dtype == kept
    np.testing.assert_allclose(
        np.load("y.npy"), ndimage.uniform_filter(image.astype(float), 3), atol=0.51
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["photo.png"], "which filter? Name one: gaussian"),
        (["photo.png", "--sobel", "--median", 3], "take one, and filter its result next"),
        (["photo.png", "--median", 3, "--size", 9], "size is given by the input file"),
        (["photo.png", "--axes", "0,5", "--mean", 3], "out of bounds for 3 dimensions"),
        (["photo.png", "--sobel", "-o", "x.tif"], "pip install tifffile"),
        (["volume.tif", "--median", 3, "-o", "x.png"], ".tif and .npy hold volumes"),
        (["--median", 0], "must be positive, not 0"),
        (["--gaussian", -1], "positive, not -1"),
        (["--percentile", 101], "percentile"),
        (["--gradient", 1, "--dtype", "uint8"], "take float32"),
        (["--median", 3, "--algorithm", "tiled"], "is one of filter-window"),
        (["--mode", "cliff"], "mode must be one of"),
        (["--median", 3, "--ksize", 5], "ksize is for percentile"),
        (["--median", 3, "--axis", 0], "axis is for sobel and prewitt"),
        (["--minimum", 10**20], "is too large"),
        (["rays.tif", "--median", 3, "--dtype", "uint8"], "cannot be converted to uint8"),
    ],
)
def test_bad_usage_is_one_sentence(files, arguments, words):
    result = oclab("filter", *arguments)
    assert result.returncode == 2 and one_sentence(result) and words in result.stderr


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_filter_is_measured_beside_scipy(name):
    value = [] if name in ("sobel", "prewitt", "laplace") else [3]
    given = (f"--{name}", *value, "--height", 90, "--width", 70, "--channels", 3)
    result = oclab("filter", *given, "--against", "scipy", "--repeats", 1, "--json")
    assert result.returncode == 0, result.stderr
    ours, scipy = json.loads(result.stdout)["results"]
    assert ours["ok"] and scipy["ok"], scipy


def test_titles_tell_axes_apart():
    assert FILTER.problem(size=9, median=3).title == "median 3 of 9 x 9 float32, reflect"
    lines = FILTER.problem(size=9, depth=2, mean=3, axes=(-1, 1)).title
    assert lines == "mean 3 of 2 x 9 x 9 float32 along 1, 2, reflect"
    assert FILTER.problem(size=9, sobel=True).title == "sobel of 9 x 9 float32 along 1, reflect"


def test_wrong_values_are_seen():
    for options in ({"size": 60, "gaussian": 2.0}, {"size": 60, "median": 3, "dtype": "uint8"}):
        point = point_of(FILTER, options, 0)
        inputs = point.make_inputs()
        right = FILTER.expected(point.problem, inputs)["result"]
        off = right.copy()
        off[30, 30] += np.asarray(1e-3 if right.dtype.kind == "f" else 1, right.dtype)
        for found, ok in ((right, True), (off, False), (right.T[:-1], False)):
            outputs = {"result": found}
            assert FILTER.compare(point.problem, inputs, {"result": right}, outputs).ok == ok


@pytest.mark.usefixtures("overlay")
@pytest.mark.parametrize(("name", "algorithm"), [("gaussian", "tiled"), ("median", "window")])
def test_what_is_tuned_serves_the_functions_of_ndimage(device, name, algorithm):
    problem = FilterCall((300, 500), filter=name, value=5.0)
    config = FILTER_SOLVER.algorithm(algorithm).default_config(problem, device)
    config = Config({**config, "WG_SIZE": 64})
    database.store(device, "filter", FILTER_SOLVER.algorithm(algorithm), problem, config, 1.0)
    found = asked(replace(problem, shape=(500, 310), mode="wrap"))
    assert found.solver.algorithm(algorithm).configure(found.problem, device) == config


def test_prepared_calls(rng):
    x, y = rng.random((2, 30, 40), np.float32)
    prepared = ol.prepare("filter", x, median=3)
    np.testing.assert_array_equal(prepared(y, out=x), ndimage.median_filter(y, 3))
    for axes in (0, (-2,)):
        prepared_sobel = ol.prepare("filter", x, sobel=True, axes=axes)
        np.testing.assert_array_equal(prepared_sobel(y), ol.ndimage.sobel(y, axes=axes, axis=0))
    with pytest.raises(ol.InvalidProblem, match="axis must be a whole number"):
        ol.prepare("filter", x, median=3, axes="0")
    with pytest.raises(ol.InvalidProblem, match="out must be of float32"):
        prepared(y, out=np.empty((30, 40)))

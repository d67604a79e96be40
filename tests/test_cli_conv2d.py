"""`oclab conv2d` and its sweeps through the real entry point."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import QUICK, oclab, one_sentence
from PIL import Image
from scipy import ndimage

from opencl_lab.lab.ops.conv2d.filters import named_filter


@pytest.fixture
def photo(tmp_path, rng):
    path = tmp_path / "photo.png"
    smooth = ndimage.gaussian_filter(rng.random((40, 60, 3)), (3, 3, 0))
    pixels = (255 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_a_picture_of_edges(photo, tmp_path):
    out, plot = tmp_path / "edges.png", tmp_path / "plot.png"
    result = oclab("conv2d", photo, "--filter", "sobel", "-o", out, "--plot", plot, *QUICK)
    assert result.returncode == 0, result.stderr
    before, after = np.asarray(Image.open(photo)), np.asarray(Image.open(out))
    assert after.shape == before.shape and after.dtype == np.uint8
    weights = named_filter("sobel")[..., None]
    right = ndimage.correlate(before.astype(float), weights, mode="reflect")
    np.testing.assert_array_equal(after, np.abs(right).clip(0, 255))
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.full
def test_weights_from_a_file_and_every_reference(photo, tmp_path):
    np.savetxt(tmp_path / "w.csv", [[1, 2], [3, -4], [5, 6]], fmt="%d", delimiter=",")
    arguments = (photo, "--weights", tmp_path / "w.csv", "--boundary", "mirror", "--repeats", 1)
    result = oclab("conv2d", *arguments, "--algorithm", "all", "--against", "all", "--json")
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content["problem"]["accumulator"] == "int32" and content["problem"]["saturate"]
    rows = {row["implementation"]: row for row in content["results"]}
    assert {"opencl:register", "opencl:tiled", "opencl:naive", "c:seq", "c:omp"} <= set(rows)
    for row in rows.values():
        assert row["status"] in ("correct", "unavailable"), row
        assert row["reason"] or row["max_abs_diff"] == 0
    assert rows["scipy"]["ok"] and "opencv" in rows and "torch" in rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--filter", "sharpest"], "filter"),
        (["--ksize", "0"], "weights"),
        (["--filter", "sobel", "--ksize", "4"], "odd ksize"),
        (["--sigma", "2"], "sigma"),
        (["--weights", "missing.csv"], "missing.csv"),
        (["--boundary", "cliff"], "boundary"),
        (["--mode", "valid", "--height", "2", "--width", "9"], "valid"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, words):
    result = oclab("conv2d", *arguments)
    assert result.returncode == 2 and one_sentence(result) and words in result.stderr


def test_a_reference_that_differs_is_named_and_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.full((9, 9), 1e16))
    np.save("w.npy", [[1e-16, 0.0, 0.0]])  # which SciPy takes as 0
    line = ["conv2d", "x.npy", "--weights", "w.npy", "--boundary", "nearest", "--repeats", 1]
    result = oclab(*line, "--against", "scipy", "-o", "y.npy", "--json")
    assert result.returncode == 0 and np.load("y.npy").tolist() == np.ones((9, 9)).tolist()
    ours, scipy = json.loads(result.stdout)["results"]
    assert ours["ok"] and scipy["status"] == "correctness" and "known to differ" in scipy["reason"]
    assert oclab(*line, "--against", "scipy", "--quiet").returncode == 0


@pytest.mark.parametrize("value", ["WG_X", "WG_X=", "WG_X=many", "BOGUS=1", "WG_X=0"])
def test_a_parameter_that_cannot_vary_so(value):
    result = oclab("conv2d", "--size", 20, "--algorithm", "naive", "--vary", value, *QUICK)
    assert result.returncode == 2 and one_sentence(result) and value[:4] in result.stderr

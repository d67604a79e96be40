"""A user's arrays in files, and what becomes of their values."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from opencl_lab.errors import InvalidProblem
from opencl_lab.files import PICTURES, SOUNDS, convert, read_array, write_array
from opencl_lab.operation import get_operation


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([1 + 0j], "complex128", "float32"),
        ([1.0, np.nan], "float64", "int32"),
        ([np.inf], "float32", "int64"),
        ([-np.inf], "float16", "int64"),
        ([3e10], "float64", "int32"),
        ([2.0**63], "float64", "int64"),
        ([2.0**64], "float32", "uint64"),
        ([-1.0], "float64", "uint8"),
        ([0.5], "float32", "int8"),
        ([300], "int64", "int8"),
        ([-1], "int8", "uint64"),
        ([2**63 + 5], "uint64", "int64"),
        ([1e300], "float64", "float32"),
    ],
)
def test_conversions_that_change_a_value_are_refused(values, source, target):
    with pytest.raises(InvalidProblem, match="convert"):
        convert(np.array([0, *values], source), target)


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([0.1, np.nan, -np.inf, 1e-300], "float64", "float32"),
        ([2**53 + 1], "int64", "float64"),
        ([-128.0, 127.0], "float64", "int8"),
        ([2.0**63, 0.0], "float64", "uint64"),
        ([-(2.0**63)], "float32", "int64"),
        ([127, 0], "uint64", "int8"),
        ([True, False], "bool", "int32"),
        ([1 + 2j], "complex128", "complex64"),
        ([], "float64", "int8"),
    ],
)
def test_other_conversions_are_those_of_numpy(values, source, target):
    array = np.array(values, source)
    result = convert(array, target)
    assert result.dtype == target
    np.testing.assert_array_equal(result, array.astype(target))


@pytest.mark.parametrize("name", ["sort", "gemm"])
def test_operations_keep_the_values_of_files(name):
    chosen = get_operation(name)
    arrays = {name: np.full((4, 4), 1 + 1j) for name in chosen.inputs}
    with pytest.raises(InvalidProblem, match="complex"):
        chosen.problem_of(arrays, dtype="float32")


# ----------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        ("# only\n\n# comments\n", []),
        ("7", [7]),
        ("7,8\n", [7, 8]),
        ("\ufeff3\n1\n", [3, 1]),
        ("# made by hand\nvalue\n3\n1.5\n", [3, 1.5]),
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("nan\n1\n", [np.nan, 1]),
    ],
)
def test_numbers_in_text(tmp_path, text, numbers):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_array(path), np.array(numbers), strict=False)


@pytest.mark.parametrize("text", ["name\n", "a\nb\n1\n", "1\nname\n", "1,b\n2,3\n"])
def test_text_that_is_refused(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidProblem, match=r"cannot read .*x\.csv"):
        read_array(path)


def test_damaged_files_are_named(tmp_path):
    np.savez_compressed(tmp_path / "deflate.npz", np.arange(10_000))
    np.save(tmp_path / "header.npy", np.arange(9))
    np.save(tmp_path / "huge.npy", np.arange(9))
    content = bytearray((tmp_path / "deflate.npz").read_bytes())
    content[60:80] = b"\xff" * 20
    (tmp_path / "deflate.npz").write_bytes(content)
    header = (tmp_path / "header.npy").read_bytes()
    (tmp_path / "header.npy").write_bytes(header.replace(b"}", b" ", 1))
    huge = header.replace(b"(9,), }" + b" " * 15, b"(1" + b"0" * 15 + b",), }", 1)
    assert len(huge) == len(header)
    (tmp_path / "huge.npy").write_bytes(huge)
    for path in tmp_path.iterdir():
        with pytest.raises(InvalidProblem, match=f"cannot read .*{path.name}"):
            read_array(path)


@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_rows_of_complex_numbers_are_read_as_they_were_written(tmp_path, suffix):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    write_array(tmp_path / f"x{suffix}", numbers)
    np.testing.assert_array_equal(read_array(tmp_path / f"x{suffix}"), numbers)


def test_pictures_are_turned_as_the_camera_was_held(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6)
    image = Image.fromarray(pixels)
    tags = image.getexif()
    tags[0x0112] = 6  # the top of the scene is on the right of the file
    image.save(tmp_path / "turned.png", exif=tags)
    read = read_array(tmp_path / "turned.png", PICTURES)
    np.testing.assert_array_equal(read, np.rot90(pixels, -1))


def test_sound_in_floating_point_is_refused_with_a_reason(tmp_path):
    wavfile.write(tmp_path / "x.wav", 8000, np.zeros(10, np.float32))
    with pytest.raises(InvalidProblem, match="only whole-number"):
        read_array(tmp_path / "x.wav", SOUNDS)

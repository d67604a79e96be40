"""A user's arrays in files, and what becomes of their values."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.files import (
    FORMATS,
    PICTURES,
    SOUNDS,
    NpyFile,
    convert,
    read_array,
    read_stored,
    write_array,
)


@pytest.mark.parametrize(
    ("values", "source", "target", "kept"),
    [
        ([1 + 0j], "complex128", "float32", False),
        ([1.0, np.nan], "float64", "int32", False),
        ([-1.0], "float64", "uint8", False),
        ([0.5], "float32", "int8", False),
        ([-1], "int8", "uint64", False),
        ([2**63 + 5], "uint64", "int64", False),
        ([2], "uint8", "bool", False),
        ([0.1, np.nan, -np.inf, 1e-300], "float64", "float32", True),
        ([2**53 + 1], "int64", "float64", True),
        ([2.0**63, 0.0], "float64", "uint64", True),
        ([1 + 2j], "complex128", "complex64", True),
    ],
)
def test_conversions_that_change_a_value_are_refused(values, source, target, kept):
    array = np.array([0, *values], source)
    if kept:
        np.testing.assert_array_equal(convert(array, target), array.astype(target), strict=True)
        return
    with pytest.raises(InvalidProblem, match="convert"):
        convert(array, target)


# ----------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        ("# only\n\n# comments\n", []),
        ("\ufeff3\n1\n", [3, 1]),
        ("# made by hand\nvalue\n3\n1.5\n", [3, 1.5]),
        ('"1","2"\n"3" ,"4"\n', [[1, 2], [3, 4]]),
        ("1;2\n3;4\n", [[1, 2], [3, 4]]),
        ("1\t2\n3\t4 # note; more\n", [[1, 2], [3, 4]]),
        ('# made by hand\n"a, b",c\n\n1,2\n', [[1, 2]]),
    ],
)
def test_numbers_in_text(tmp_path, text, numbers):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_array(path), np.array(numbers), strict=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\n", "no numbers"),
        ("1\nname\n", "line 2, field 1 is not a number: 'name'"),
        ("year,2020\n2,3\n", "line 1, field 1 is not a number: 'year'"),
        ("NA\n1\n", "line 1, field 1 is a missing value, 'NA'"),
        ("'1'\n2\n", "line 1, field 1 is neither a number nor the name"),
        ("1,5;2,5\n3;4\n", "line 1, field 1 .*decimals with a point"),
        ('"1,5","2,5"\n3,4\n', "line 1, field 1 .*decimals with a point"),
        ("a,b\n1\n", "line 1 has 2 names, and line 2 has 1 field"),
        ("1,2\n3,,4\n", "line 2, field 2 is empty"),
        ("1\n1_0\n", "line 2, field 1 is not a number"),
        ('"1,234"\n"2,345"\n', "line 1, field 1 .*: '1,234'; write thousands without commas"),
        (",a\n0,7\n", "line 1, field 1 is empty, .*leave the index out"),
    ],
)
def test_text_that_is_refused(tmp_path, text, words):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidProblem, match=rf"cannot read .*x\.csv: .*{words}"):
        read_array(path)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("9007199254740993\n9007199254740992\n0.5\n", "line 1, field 1: 9007199254740993 becomes"),
        ("id,x\n1,.5\n# y\n-1234567890123456789,5\n", "line 4, field 1: -1234567890123456789 b"),
        ("1\n1j\n2-9007199254740993j\n", "line 3, field 1: 2-9007199254740993j becomes"),
    ],
)
def test_whole_numbers_that_float64_would_change_are_refused(tmp_path, text, lost):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InvalidProblem, match=f"{re.escape(lost)}.*--dtype float64"):
        read_array(path, rounded=False)
    assert read_stored(path, rounded=True).array.dtype in ("float64", "complex128")
    if text.startswith("id"):
        assert read_array(f"{path}:id").tolist() == [1, -1234567890123456789]
        with pytest.raises(InvalidProblem, match=re.escape(lost)):
            read_array(f"{path}:x,id")


@pytest.mark.parametrize("number", ["7" * 5000, "-1e400", "1+1e309j"])
def test_numbers_beyond_float64_are_no_infinities(tmp_path, number):
    path = tmp_path / "x.csv"
    path.write_text(f"a,b\n1,{number}\n")
    for name in (path, f"{path}:b"):
        for rounded in (False, True):
            with pytest.raises(InvalidProblem, match=r"line 2, field 2: .* is beyond the largest"):
                read_stored(name, rounded=rounded)


def test_names_of_columns_are_read_and_written(tmp_path):
    for text, names in (("1 2\n3 4\n", ()), ('"a b"\t"c"\n1 2\n', ("a b", "c"))):
        (tmp_path / "x.txt").write_text(text)
        stored = read_stored(tmp_path / "x.txt")
        assert stored.names == names
        for suffix in (".txt", ".csv"):
            write_array(tmp_path / f"y{suffix}", stored.array, names=stored.names)
            again = read_stored(tmp_path / f"y{suffix}")
            assert again.names == names
            np.testing.assert_array_equal(again.array, stored.array, strict=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_numbers_are_written_shortest_and_read_the_same(tmp_path, dtype):
    array = np.array([0.914, 12.0, -0.0, 1e-7, 1 / 3, 1e4, np.nan, -np.inf], dtype)
    if array.dtype.kind == "c":
        array.imag = array.real[::-1]
    write_array(tmp_path / "x.csv", array)
    texts = (tmp_path / "x.csv").read_text().split()
    again = read_array(tmp_path / "x.csv").astype(dtype)
    np.testing.assert_array_equal(again.view(array.real.dtype), array.view(array.real.dtype))
    assert np.signbit(again.real[2])
    if dtype == "float64":
        third = "0.3333333333333333"
        assert texts == ["0.914", "12", "-0.0", "1e-07", third, "10000", "nan", "-inf"]
    elif dtype == "complex64":
        assert texts[0] == "0.914-infj" and texts[4:6] == ["0.33333334+1e-07j", "10000-0j"]


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


def test_pictures_are_turned_as_the_camera_was_held(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6)
    image = Image.fromarray(pixels)
    tags = image.getexif()
    tags[0x0112] = 6  # the top of the scene is on the right of the file
    image.save(tmp_path / "turned.png", exif=tags)
    read = read_array(tmp_path / "turned.png", PICTURES)
    np.testing.assert_array_equal(read, np.rot90(pixels, -1))


def test_colours_of_16_bits_are_not_cut_to_8(tmp_path):
    (tmp_path / "x.ppm").write_bytes(b"P6\n8 1\n65535\n" + bytes(48))
    with pytest.raises(InvalidProblem, match="its colours have 16 bits"):
        read_array(tmp_path / "x.ppm", PICTURES)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3])
def test_sound_that_scipy_wrote(tmp_path, dtype, channels):
    expected = np.random.default_rng(0).uniform(-0.9, 0.9, (100, channels))
    samples, tolerance = expected.astype(dtype), 1e-6
    if samples.dtype.kind in "iu":
        info = np.iinfo(dtype)
        tolerance = 4.0 / 2 ** min(info.bits, 22)
        centre = (info.max + info.min + 1) // 2
        samples = np.rint(expected * (2.0 ** (info.bits - 1) - 1) + centre).astype(dtype)
    wavfile.write(tmp_path / "x.wav", 44100, samples[:, 0] if channels == 1 else samples)
    stored = read_stored(tmp_path / "x.wav", SOUNDS)
    assert stored.options == {"rate": 44100}
    assert stored.array.dtype == ("float64" if dtype == "float64" else "float32")
    assert stored.array.shape == ((100,) if channels == 1 else (channels, 100))
    np.testing.assert_allclose(np.atleast_2d(stored.array), expected.T, atol=tolerance)


def _wave(form, bits, data, channels=1, size=None, rate=8000):
    """Return a file with a long, extensible description, and a chunk of odd size before it."""
    frame = channels * bits // 8
    described = struct.pack("<HHIIHH", 0xFFFE, channels, rate, rate * frame, frame, bits)
    described += struct.pack("<HHIH", 22, bits, 0, form) + bytes(14)
    size = len(data) if size is None else size
    chunks = struct.pack("<4sI", b"note", 3) + b"abc\0"
    chunks += struct.pack("<4sI", b"fmt ", len(described)) + described
    chunks += struct.pack("<4sI", b"data", size) + data
    return struct.pack("<4sI4s", b"RIFF", len(chunks) + 4, b"WAVE") + chunks


def test_sound_of_the_extensible_form_and_of_unknown_length(tmp_path):
    for content, expected in (
        (_wave(3, 32, np.array([0.25, -1.5], "<f4").tobytes()), [0.25, -1.5]),
        (_wave(1, 24, b"\0\0\x40" + b"\0\0\xe0", size=0xFFFFFFFF), [0.5, -0.25]),
        (_wave(1, 8, b"") + b"\xc0\x40", [0.5, -0.5]),  # of a recorder that was stopped
    ):
        (tmp_path / "x.wav").write_bytes(content)
        read = read_array(tmp_path / "x.wav", SOUNDS)
        np.testing.assert_array_equal(read, np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"RIFX" + bytes(40), "no RIFF WAVE"),
        (_wave(1, 16, b"")[:30], "cut off"),
        (_wave(1, 16, bytes(100), size=102), "cut off: 102 bytes"),
        (_wave(7, 8, bytes(4)), "mu-law, 8 bits"),
        (_wave(1, 16, bytes(4), rate=0), "damaged"),
    ],
)
def test_sound_that_cannot_be_read_says_why(tmp_path, content, words):
    (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(InvalidProblem, match=f"cannot read .*{words}"):
        read_array(tmp_path / "x.wav", SOUNDS)


@pytest.mark.parametrize(
    ("name", "pack", "reason"),
    [
        ("x.csv", gzip.compress, "it is compressed by gzip"),
        ("x.txt", lzma.compress, "it is compressed by xz"),
        ("x.csv", lambda text: "Größe\n".encode("latin-1"), "it is not UTF-8; save it as UTF-8$"),
        ("x.npy", lambda text: b"", "it is empty"),
        ("x.npz", lambda text: b"", "it is empty"),
    ],
)
def test_files_that_hold_something_else_are_called_what_they_are(tmp_path, name, pack, reason):
    (tmp_path / name).write_bytes(pack(b"1\n2\n" * 100))
    with pytest.raises(InvalidProblem, match=reason):
        read_array(tmp_path / name)
    if name == "x.npy":  # as it is opened where it may be sorted in parts
        with pytest.raises(InvalidProblem, match=reason), NpyFile.opened(tmp_path / name):
            pass
    np.savez(tmp_path / "none.npz")
    for part in ("none.npz", "none.npz:a"):
        with pytest.raises(InvalidProblem, match=r"it holds no array$"):
            read_array(str(tmp_path / part))


# --------------------------------------------------------------------- parts


@pytest.fixture
def parted(tmp_path, monkeypatch):
    """A folder with an archive of two arrays, and a table whose columns are not all numbers."""
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", keys=[3, 1, 2], weights=[[1.5]])
    lines = 'day,city,price,"units, sold"\n2024-01-01,"Bonn, DE",3.5,7\n'
    table = f"{lines}2024-01-02,K\u00f6ln,1.25,2 # x\n"
    Path("table.csv").write_text(table, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "values", "names"),
    [
        ("data.npz:keys", [3, 1, 2], ()),
        ("table.csv:price", [3.5, 1.25], ("price",)),
        ("table.csv:units, sold", [7, 2], ("units, sold",)),
        ("./table.csv:price,price", [[3.5, 3.5], [1.25, 1.25]], ("price", "price")),
    ],
)
def test_parts_of_files_are_read_by_their_names(parted, name, values, names):
    found = read_stored(name)
    assert found.array.tolist() == values and found.names == names
    assert found.array.dtype == np.array(values).dtype


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("data.npz", "it holds the arrays keys, weights; name one, as data.npz:keys"),
        ("table.csv:city", "line 2, field 2 is not a number: 'Bonn, DE'"),
        ("table.csv:x", "it has no column 'x'; it has: day, city, price"),
        ("twice.csv:a", "it has several columns 'a'"),
        ("bare.csv:3", "it does not begin with a line of names"),
        ("ragged.csv:a", "line 3 has 3 fields, and there are 2 names"),
        ("gap.csv:b", "line 2, field 2 is empty"),
        ("one.npy:a", "it holds a single array without a name"),
        ("no:such.csv", "No such file"),
    ],
)
def test_parts_that_are_not_there_or_no_numbers_are_refused(parted, name, reason):
    texts = {"twice": "a,a\n1,2", "bare": "3,4\n1,2", "ragged": "a,b\n1,2\n1,2,3", "gap": "a,b\n1,"}
    for stem, text in texts.items():
        Path(f"{stem}.csv").write_text(text)
    np.save("one.npy", [1])
    with pytest.raises(InvalidProblem, match=re.escape(reason)) as raised:
        read_stored(name)
    assert str(raised.value).startswith(f"cannot read {re.match('(no:)?[^:]*', name)[0]}: ")


def test_a_colon_in_the_name_of_a_file_stays_there(parted):
    for name in ("a:b.npy", "data.npz:keys"):
        with Path(name).open("wb") as file:
            np.save(file, [5])
    assert read_array("a:b.npy").tolist() == [5]
    Path("t:1.csv").write_text("a,b:c\n1,2\n")
    assert read_array("t:1.csv:b:c").tolist() == [2]
    with pytest.raises(InvalidProblem, match="its name must end in"):  # which is a file of its own
        read_array("data.npz:keys")


@pytest.mark.parametrize("form", ["npy", "npz", "csv", "txt", "png"])
def test_standard_input_is_what_its_content_says(tmp_path, monkeypatch, form):
    content = io.BytesIO()
    if form == "npy":
        np.save(content, [[1, 2]])
    elif form == "npz":
        np.savez(content, a=[[1, 2]])
    elif form == "png":
        Image.fromarray(np.array([[1, 2]], np.uint8)).save(content, "png")
    else:
        content.write(b"# 1;2\nx y\n1 2\n" if form == "txt" else b"x;y\n1;2\n")
    content.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    for _ in range(2):  # both inputs of an operation may be the same
        assert read_array("-", (*FORMATS, ".png")).tolist() == [[1, 2]]
    if form in ("npz", "csv", "txt"):
        part = read_array("/dev/stdin:a" if form == "npz" else "/dev/stdin:y")
        assert part.tolist() == ([[1, 2]] if form == "npz" else [2])
    if form == "png":
        with pytest.raises(InvalidProblem, match="read /dev/stdin: it must hold one of"):
            read_array("-")
    with pytest.raises(InvalidProblem, match="cannot read -: its name must end in"):
        read_array(Path("./-"))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidProblem, match="standard input: it is closed"):
        read_array("-")

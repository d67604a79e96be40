"""Images and volumes in TIFF files: with Pillow, and with tifffile where it is installed."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from PIL import Image

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.files import TIFFS, read_array, write_array


def tiff_of(array):
    """Return a TIFF file of one page."""
    samples = array.shape[2] if array.ndim == 3 else 1
    kind = {"u": 1, "i": 2, "f": 3}[array.dtype.kind]
    data = array.tobytes()
    many = struct.pack(f"<{samples}H", *[8 * array.itemsize] * samples) + b"\0\0"
    height, width = array.shape[:2]
    bits = 8 * array.itemsize if samples == 1 else 8 + len(data)
    tags = [
        *[(256, width), (257, height), (258, bits), (259, 1), (262, 1 if samples == 1 else 2)],
        *[(273, 8), (277, samples), (278, height), (279, len(data)), (339, kind)],
    ]
    counts = {258: samples}
    entries = [struct.pack("<HHII", t, 3 if t == 258 else 4, counts.get(t, 1), v) for t, v in tags]
    head = struct.pack("<2sHI", b"II", 42, 8 + len(data) + len(many))
    return head + data + many + struct.pack("<H", len(tags)) + b"".join(entries) + bytes(4)


@pytest.mark.parametrize("writer", ["Pillow", "tifffile"])
@pytest.mark.parametrize("shape", [(5, 7), (4, 5, 7), (5, 7, 3), (2, 5, 7, 4)])
def test_images_and_volumes_in_tiff_keep_numbers_and_types(tmp_path, monkeypatch, writer, shape):
    if writer == "tifffile":
        pytest.importorskip("tifffile")
    else:
        monkeypatch.setattr("opencl_lab.lab.files.tiff._has_tifffile", lambda: False)
    coloured, path = shape[-1] in (3, 4), tmp_path / "x.tif"
    for dtype in ("uint8", "uint16", "int32", "float32", "int16", "uint32", "float64"):
        array = (np.arange(np.prod(shape)).reshape(shape) - 30).astype(dtype)
        able = ("uint8",) if coloured else ("uint8", "uint16", "int32", "float32")
        if writer == "Pillow" and dtype not in able:
            with pytest.raises(InvalidProblem, match="pip install tifffile"):
                write_array(path, array)
            continue
        write_array(path, array)
        read = read_array(path, TIFFS)
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, array)
    for refused in (array.astype(complex), array[:0], array.ravel()):
        with pytest.raises(InvalidProblem, match="npy"):
            write_array(path, refused)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "uint32", "float64"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 3)])
def test_numbers_of_tiff_are_never_changed(tmp_path, monkeypatch, dtype, shape):
    """Pillow would read some as others, such as colours of 16 bits as 8."""
    monkeypatch.setattr("opencl_lab.lab.files.tiff._has_tifffile", lambda: False)
    array, path = (np.arange(np.prod(shape)).reshape(shape) - 3).astype(dtype), tmp_path / "x.tif"
    path.write_bytes(tiff_of(array))
    if dtype in (("uint8", "int16", "uint16") if len(shape) == 2 else ("uint8",)):
        read = read_array(path, TIFFS)
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, array)
    else:
        with pytest.raises(InvalidProblem, match="pip install tifffile"):
            read_array(path, TIFFS)
    path.write_bytes(tiff_of(array)[:30])
    with pytest.raises(InvalidProblem, match="cannot read"):
        read_array(path, TIFFS)


@pytest.mark.parametrize("reader", ["Pillow", "tifffile"])
def test_tiff_of_palettes_inks_and_paper_is_read_as_colours(tmp_path, monkeypatch, reader):
    if reader == "tifffile":
        pytest.importorskip("tifffile")
    else:
        monkeypatch.setattr("opencl_lab.lab.files.tiff._has_tifffile", lambda: False)
    colours, path = Image.effect_noise((7, 5), 90).convert("RGB"), tmp_path / "x.tif"
    for mode, like in (("P", "RGB"), ("CMYK", "RGB"), ("LA", "RGBA")):
        image = colours.convert(mode)
        image.save(path)
        np.testing.assert_array_equal(read_array(path, TIFFS), np.asarray(image.convert(like)))
    grey = np.asarray(colours)[..., 0].copy()
    path.write_bytes(
        tiff_of(~grey).replace(
            struct.pack("<HHII", 262, 4, 1, 1), struct.pack("<HHII", 262, 4, 1, 0)
        )
    )
    np.testing.assert_array_equal(read_array(path, TIFFS), grey)

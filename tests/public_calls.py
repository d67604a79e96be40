"""Calls of the public functions, for tests that hold for all of them."""

from __future__ import annotations

import numpy as np

import opencl_lab as ol


def floats(*shape):
    return lambda rng: rng.standard_normal(shape, dtype=np.float32)


def complexes(*shape):
    return lambda rng: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype("c8")


def integers(*shape):
    return lambda rng: rng.integers(-99, 99, shape, np.int32)


BOX = np.ones((3, 3), np.float32)
WAVE = np.outer([1, 2, 1], [1, 0, -1]) + np.eye(3)
CALLS = {
    "sort": (ol.sort, [integers(70)], {}),
    "sort rows": (ol.sort, [integers(5, 70)], {"descending": True}),
    "sort columns": (ol.sort, [integers(70, 5)], {"axis": 0}),
    "argsort": (ol.argsort, [floats(300)], {}),
    "sort_by_key": (ol.sort_by_key, [integers(90), integers(90)], {}),
    "sort_by_key by index": (
        ol.sort_by_key,
        [integers(90), lambda rng: rng.integers(0, 9, 270, np.int32).view("V12")],
        {},
    ),
    "topk": (ol.topk, [integers(300)], {"k": 7}),
    "topk of columns": (ol.topk, [integers(70, 5)], {"k": 2, "axis": 0, "largest": False}),
    "topk of many": (ol.topk, [integers(40_000)], {"k": 7}),
    "searchsorted": (ol.searchsorted, [lambda rng: np.sort(integers(90)(rng)), integers(5, 6)], {}),
    "gemm": (ol.gemm, [floats(20, 20), floats(20, 20)], {}),
    "gemm scaled": (ol.gemm, [floats(20, 30), floats(10, 30)], {"alpha": -2.0, "trans_b": True}),
    "gemm of a stack": (ol.gemm, [floats(3, 2, 9), floats(3, 9, 5)], {"activation": "gelu"}),
    "gemm of one stack": (ol.gemm, [floats(2, 3, 4, 9), floats(9, 5)], {"alpha": np.float32(2)}),
    "gemm with bias": (
        lambda a, b, bias, **more: ol.gemm(a, b, bias=bias, activation="relu", **more),
        [floats(2, 4, 9), floats(9, 5), floats(4, 1)],
        {},
    ),
    "gemm of complex": (ol.gemm, [complexes(4, 9), complexes(9, 5)], {"alpha": 1j, "trans_a": "N"}),
    "conv2d": (ol.conv2d, [floats(30, 40), lambda rng: BOX], {}),
    "conv2d of bytes": (
        ol.conv2d,
        [lambda rng: rng.integers(0, 255, (20, 30), np.uint8), lambda rng: WAVE.astype(int)],
        {"saturate": True},
    ),
    "conv2d valid": (ol.conv2d, [floats(2, 30, 40), lambda rng: WAVE], {"mode": "valid"}),
    "conv2d large": (ol.conv2d, [floats(64, 64), lambda rng: np.ones((33, 33))], {}),
    "dft": (ol.dft, [complexes(3, 50)], {}),
    "dft of real": (ol.dft, [floats(3, 50)], {}),
    "fft": (ol.fft.fft, [complexes(3, 64)], {}),
    "fft middle": (ol.fft.fft, [complexes(3, 64, 2)], {"axis": 1, "norm": "ortho"}),
    "fft cut": (ol.fft.ifft, [complexes(3, 64)], {"n": 30}),
    "fft filled": (ol.fft.fft, [complexes(3, 30)], {"n": 64}),
    "fft prime": (ol.fft.fft, [complexes(4, 211)], {}),
    "fft of real": (ol.fft.fft, [floats(3, 64)], {}),
    "rfft": (ol.fft.rfft, [floats(3, 90)], {}),
    "rfft odd": (ol.fft.rfft, [floats(4, 91)], {}),
    "irfft": (ol.fft.irfft, [complexes(3, 46)], {}),
    "hfft": (ol.fft.hfft, [complexes(3, 46)], {}),
    "fft2": (ol.fft.fft2, [complexes(16, 20)], {}),
    "rfftn": (ol.fft.rfftn, [floats(8, 6, 10)], {}),
    "irfftn": (ol.fft.irfftn, [complexes(8, 6, 6)], {"s": (8, 6, 10)}),
    "ihfft": (ol.fft.ihfft, [floats(3, 90)], {"axis": 0}),
    "hfftn": (ol.fft.hfftn, [complexes(8, 6, 6)], {"s": (8, 6, 10)}),
    "dct": (ol.fft.dct, [floats(3, 40)], {}),
    "dct filled": (ol.fft.dct, [floats(3, 40)], {"n": 50, "axis": 0}),
    "dst of complex": (ol.fft.dst, [complexes(3, 40)], {}),
    "dctn": (ol.fft.dctn, [floats(6, 8)], {"type": 3}),
    "fftshift": (ol.fft.fftshift, [complexes(5, 6)], {}),
    "ifftshift": (ol.fft.ifftshift, [integers(5, 6)], {"axes": 0}),
}
"""Function, what makes its arrays, options."""


def arguments(name, side, rng):
    """Return new arrays for a call; weights stay on the host."""
    function, makers, _ = CALLS[name]
    made = [make(rng) for make in makers]
    resident = made[:1] if function is ol.conv2d else made
    return [*map(side.put, resident), *made[len(resident) :]]

"""A call of each public function, with arrays and options that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.calls import Call, Data

if TYPE_CHECKING:
    from fuzz.drawer import Drawer


SIZES = (1, 2, 3, 4, 8, 12, 17)  # few, as kernels are built for each length of a transform
KEYS = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
SIGNALS = ("f4", "c8", "f4", "c8", "f2", "f8", "c16", "i4", "u1", "bool")
REALS = ("f4", "f4", "f2", "f8", "i2", "bool")
PIXELS = ("f4", "u1", "i2", "u2", "f2", "f8")
NORMS = (None, "backward", "ortho", "forward")
BOUNDARIES = ("constant", "nearest", "reflect", "mirror", "wrap")


def _sorts(d: Drawer, name: str, resident: bool) -> Call:
    shape = (int(d.pick((70, 300, 1000, 5000))),) if d.chance(0.2) else d.shape()
    key = d.dtype(KEYS)
    keys = d.data("keys" if name == "sort_by_key" else "a", shape, key, resident)
    data = [keys]
    if name == "sort_by_key":
        data.append(d.data("values", shape, d.dtype(KEYS), resident, (keys,)))
    options = d.options(
        axis=lambda: d.pick((None, d.axis(len(shape)), d.axis(len(shape)))),
        descending=lambda: d.chance(0.5),
    )
    return Call(name, tuple(data), options)


def _topk(d: Drawer, name: str, resident: bool) -> Call:
    shape = (int(d.pick((70, 300, 1000, 20_000))),) if d.chance(0.3) else d.shape()
    a = d.data("a", shape, d.dtype(KEYS), resident)
    options = d.options(
        axis=lambda: d.pick((None, d.axis(len(shape)), d.axis(len(shape)))),
        largest=lambda: d.chance(0.5),
        algorithm=lambda: d.pick(("auto", "radix-select", "sort")),
    )
    return Call(name, (a,), {**options, "k": int(d.pick((0, 1, 2, 3, 5, 40)))})


def _searchsorted(d: Drawer, name: str, resident: bool) -> Call:
    key = d.dtype(KEYS)
    a = d.data("a", (int(d.pick((0, 1, 5, 70, 300))),), key, resident)
    v = d.data("v", d.shape(), key if d.chance(0.8) else d.dtype(KEYS), resident, (a,))
    return Call(name, (a, v), d.options(side=lambda: d.pick(("left", "right", "up"))))


def _gemm(d: Drawer, name: str, resident: bool) -> Call:
    m, n, k = (int(d.pick((0, 1, 3, 4, 8, 17, 30, 64) if d.chance(0.1) else (1, 4, 8, 17)))
               for _ in range(3))  # fmt: skip
    if d.chance(0.4):
        m = n = k = int(d.pick((4, 8, 17)))  # all may share memory
    dtype = d.dtype(("f4", "f4", "f2", "f8", "c8", "c16"))
    turned = {key: d.pick((True, "T", 1, "C")) for key in ("trans_a", "trans_b") if d.chance(0.3)}
    stacks = d.pick((((), (), ()), ((), (), ()), ((3,), (), (3,)), ((2, 1), (3,), (2, 3))))
    a = d.data("a", (*stacks[0], *((k, m) if "trans_a" in turned else (m, k))), dtype, resident)
    b = d.data(
        "b", (*stacks[1], *((n, k) if "trans_b" in turned else (k, n))), dtype, resident, (a,)
    )
    data: tuple[Data, ...] = (a, b)
    options = {
        **turned,
        **d.options(
            alpha=lambda: d.pick((1, 0, 2.5, -1.0, True, 1j)),
            algorithm=lambda: d.pick(("auto", "auto", "packed", "blocked", "hybrid")),
        ),
    }
    if d.chance(0.4):
        data = (*data, d.data("c", (*stacks[2], m, n), dtype, resident, data))
        options["beta"] = d.pick((0.0, 1, -0.5))
    if d.chance(0.2):
        data = (*data, d.data("bias", d.pick(((n,), (m, 1))), dtype, resident, data))
    if d.chance(0.2):
        options["activation"] = d.pick(("relu", "gelu", None))
    return Call(name, data, options)


def _conv2d(d: Drawer, name: str, resident: bool) -> Call:
    last = d.chance(0.2)
    lead = d.shape(0, 1)
    shape = (*lead, *(int(d.pick((1, 5, 16, 30))) for _ in range(2)), *((3,) if last else ()))
    image = d.data("image", shape, d.dtype(PIXELS), resident)
    small = tuple(int(d.pick((1, 2, 3, 3, 5))) for _ in range(2))
    there = resident and d.chance(0.3)
    kind = "f4" if there and image.dtype != "f8" else d.pick(("f4", "f8", "i4", "u1"))
    weights = d.data("weights", small, kind, there, (image,) if there == resident else ())
    if weights.wrapped or not d.double:
        weights = replace(weights, wrapped="", dtype="f4" if not d.double else weights.dtype)
    options = d.options(
        mode=lambda: d.pick(("same", "valid", "full")),
        boundary=lambda: d.pick(BOUNDARIES),
        cval=lambda: d.pick((0, 1.5, -2)),
        flip=lambda: d.chance(0.5),
        saturate=lambda: d.chance(0.5),
    )
    if last:
        options["channels_last"] = True
    return Call(name, (image, weights), options)


def _one_axis(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(0 if d.chance(0.05) else 1)
    real = name in ("rfft", "ihfft") and d.chance(0.97)
    dtype = d.dtype(REALS if real else SIGNALS)
    cosine = name.lstrip("i") in ("dct", "dst")
    array = d.data("x" if cosine or name == "dft" else "a", shape, dtype, resident)
    options = d.options(axis=lambda: d.axis(len(shape)), norm=lambda: d.pick(NORMS))
    if name == "dft":
        options |= d.options(inverse=lambda: d.chance(0.5))
    elif d.chance(0.5):
        options["n"] = int(d.pick(SIZES))
    if cosine:
        options |= d.options(type=lambda: d.pick((1, 2, 3, 4)), orthogonalize=lambda: d.chance(0.5))
    return Call(name, (array,), options)


def _several_axes(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(2 if name.endswith("2") or d.chance(0.8) else 0)
    real = name in ("rfft2", "rfftn", "ihfft2", "ihfftn") and d.chance(0.97)
    dtype = d.dtype(REALS if real else SIGNALS)
    scipy_s = name.startswith(("hfft", "ihfft")) or name.lstrip("i").startswith(("dct", "dst"))
    array = d.data("x" if scipy_s else "a", shape, dtype, resident)
    options = d.options(norm=lambda: d.pick(NORMS))
    count = 2 if name.endswith("2") else int(d.rng.integers(0, len(shape) + 1))
    if d.chance(0.5) and count <= len(shape):
        options["axes"] = tuple(d.rng.permutation(len(shape))[:count].tolist())
        if d.chance(0.1) and count:
            options["axes"] = (options["axes"][0],) * count
    elif d.chance(0.5):
        count = 2 if name.endswith("2") else len(shape)
    if d.chance(0.4):
        options["s"] = tuple(int(d.pick((*SIZES, -1))) for _ in range(count))
    if name.lstrip("i").startswith(("dct", "dst")):
        options |= d.options(type=lambda: d.pick((1, 2, 3, 4)))
    return Call(name, (array,), options)


def _shift(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(0)
    array = d.data("x", shape, d.dtype((*KEYS, "c8", "c16")), resident)
    options = d.options(
        axes=lambda: d.pick((None, d.axis(len(shape)), tuple(range(len(shape))), (0,), (0, 0)))
    )
    return Call(name, (array,), options)


def _convolve(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(1, 2)
    other = tuple(int(d.pick((1, 2, 3, 5))) for _ in shape)
    a = d.data("a", shape, d.dtype(SIGNALS), resident)
    b = d.data("b", shape if d.chance(0.3) else other, d.dtype(SIGNALS), resident, (a,))
    return Call(name, (a, b), d.options(mode=lambda: d.pick(("full", "same", "valid"))))


def _power(d: Drawer, name: str, resident: bool) -> Call:
    shape = d.shape(1, 2)
    axis = d.axis(len(shape))
    options: dict[str, Any] = {"axis": axis} | d.options(
        fs=lambda: d.pick((1, 44100, 0.5)), scaling=lambda: d.pick(("density", "spectrum"))
    )
    if d.chance(0.4):
        options["window"] = np.hanning(shape[axis] + 2)[1:-1]
    return Call(name, (d.data("x", shape, d.dtype(REALS), resident),), options)


FOURIER = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
COSINE = ("dct", "idct", "dst", "idst")
MAKERS: tuple[tuple[Callable[[Drawer, str, bool], Call], tuple[str, ...]], ...] = (
    (_sorts, ("sort", "argsort", "sort_by_key")),
    (_topk, ("topk",)),
    (_searchsorted, ("searchsorted",)),
    (_gemm, ("gemm",)),
    (_conv2d, ("conv2d",)),
    (_one_axis, (*FOURIER, "dft")),
    (_one_axis, (*COSINE, "dft")),
    (_several_axes, tuple(f"{name}{end}" for name in FOURIER for end in ("2", "n"))),
    (_several_axes, tuple(f"{name}n" for name in COSINE)),
    (_shift, ("fftshift", "ifftshift")),
    (_convolve, ("convolve",)),
    (_power, ("power_spectrum",)),
)

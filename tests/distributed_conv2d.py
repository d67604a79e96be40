"""Checks of the convolution of images on ranks; see `ranks`."""

import itertools

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import opencl_lab as ol
from opencl_lab.core.errors import DeviceNotFound, InvalidConfig, InvalidProblem
from opencl_lab.distributed import DistArray, blocks, device_of, slab
from opencl_lab.distributed.conv2d import conv2d
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.conv2d.solver import CONV2D_SOLVER

PADS = {
    "constant": "constant",
    "nearest": "edge",
    "reflect": "symmetric",
    "mirror": "reflect",
    "wrap": "wrap",
}
CASES = (  # thinner parts than filters, and more ranks than rows
    (1, (5, 4), np.uint8, PADS),
    (5, (5, 4), np.uint8, PADS),
    (64, (5, 4), np.uint8, PADS),
    (25, (11, 1), np.float32, ("constant", "wrap")),
)


def right(image, weights, mode="same", boundary="constant", cval=0.0, flip=False):
    """Return the sums of NumPy, in float64 or in integers."""
    kind = np.int64 if weights.dtype.kind in "iu" else np.float64
    pads = [(0, 0)] * (image.ndim - 2)
    for taps in weights.shape:
        before = (taps - 1) // 2 if flip else taps // 2
        same = (before, taps - 1 - before)
        pads.append({"same": same, "full": (taps - 1, taps - 1), "valid": (0, 0)}[mode])
    value = {"constant_values": cval} if boundary == "constant" else {}
    padded = np.pad(image.astype(kind), pads, mode=PADS[boundary], **value)
    windows = sliding_window_view(padded, weights.shape, (-2, -1))
    return np.einsum("...ij,ij", windows, weights[::-1, ::-1] if flip else weights)


def near(result, expected, weights):
    """Compare the result of all ranks within the bound of the documentation."""
    whole = result.gather()
    assert result.shape == whole.shape == expected.shape
    if whole.dtype.kind in "iu":
        limits = np.iinfo(whole.dtype)
        assert np.array_equal(whole, expected.clip(limits.min, limits.max))
        return
    bound = (weights.size + 2) * np.finfo(whole.dtype).eps * np.abs(weights).sum()
    assert np.abs(whole - expected).max(initial=0) <= bound


def inputs(rng, shape, taps, dtype=np.float32):
    if dtype == np.float32:
        return rng.random(shape, dtype), rng.standard_normal(taps, dtype)
    return rng.integers(0, 255, shape).astype(dtype), rng.integers(-2, 4, taps)


def check_boundaries(comm, rng):
    for rows, taps, dtype, boundaries in CASES:
        for boundary in boundaries:
            x, w = inputs(rng, (rows, 9), taps, dtype)
            flip = dtype == np.uint8
            result = conv2d(DistArray.from_global(x), w, boundary=boundary, flip=flip)
            near(result, right(x, w, boundary=boundary, flip=flip), w)
            assert result.dtype == dtype and result.distribution == slab(0)


def check_modes(comm, rng):
    for mode, boundary in (("full", "constant"), ("full", "reflect"), ("full", "wrap"),
                           ("valid", "constant")):  # fmt: skip
        for rows in (5, 64):
            x, w = inputs(rng, (rows, 9), (5, 4), np.uint8)
            flip = rows > 5 or boundary == "reflect"
            result = conv2d(DistArray.from_global(x), w, mode=mode, boundary=boundary, flip=flip)
            near(result, right(x, w, mode, boundary, flip=flip), w)


def check_values_that_pixels_cannot_have(comm, rng):
    x, w = inputs(rng, (20, 9), (5, 4), np.uint8)
    for cval in (7, -300):
        result = conv2d(DistArray.from_global(x), w, cval=cval)
        near(result, right(x, w, cval=cval), w)
    wrapped = conv2d(DistArray.from_global(x), w, saturate=False)
    assert np.array_equal(wrapped.gather(), right(x, w).astype(np.uint8))


def check_bits_are_those_of_one_device(comm, rng):
    for taps, boundary in (((3, 3), "mirror"), ((5, 4), "constant")):
        x, w = inputs(rng, (64, 9), taps)
        one = ol.conv2d(x, w, boundary=boundary, device=device_of(comm))
        assert np.array_equal(conv2d(DistArray.from_global(x), w, boundary=boundary).gather(), one)


def check_channels_and_stacks(comm, rng):
    x, w = inputs(rng, (2, 30, 8, 3), (3, 3))
    expected = np.moveaxis(right(np.moveaxis(x, -1, 1), w, boundary="wrap"), 1, -1)
    for distribution, after in ((slab(1), slab(1)), (slab(-3), slab(1)), (slab(0), slab(0)),
                                (slab(2), slab(1)), (slab(3), slab(1))):  # fmt: skip
        made = DistArray.from_global(x, distribution)
        result = conv2d(made, w, boundary="wrap", channels_last=True)
        near(result, expected, w)
        assert result.distribution == after
    stack = x[..., 0]
    for distribution in (slab(-2), slab(-1), blocks((1, comm.size, 1))):
        near(conv2d(DistArray.from_global(stack, distribution), w), right(stack, w), w)


def check_uneven_parts(comm, rng):
    x, w = inputs(rng, (40, 9), (5, 4))
    for lengths in ((0,) * (comm.size - 1) + (40,), (40,) + (0,) * (comm.size - 1)):
        made = DistArray.from_global(x, slab(0, lengths))
        for mode in ("same", "valid", "full"):
            near(conv2d(made, w, mode=mode), right(x, w, mode), w)
    mine = np.array_split(x, [4, 5, 9, 9, 30, 33])[comm.rank] if comm.size == 7 else x
    made = DistArray.from_local(mine)
    near(conv2d(made, w, boundary="mirror"), right(made.gather(), w, boundary="mirror"), w)


def check_large_filters(comm, rng):
    column, row = rng.random(31, np.float32), rng.random(9, np.float32)
    x, w = rng.random((50, 40), np.float32), np.multiply.outer(column, row)
    near(conv2d(DistArray.from_global(x), (column, row)), right(x, w), w)
    if comm.size == 2:  # transforms take long to compile
        image, full = rng.random((400, 200), np.float32), rng.random((61, 61), np.float32)
        problem = Conv2dProblem(200, 200, *full.shape)  # of the inside
        chosen = CONV2D_SOLVER.choose(problem, device_of(comm)).name
        assert chosen == "adaptive" or device_of(comm).kind != "cpu"
        near(conv2d(DistArray.from_global(image), full), right(image, full), full)
    small = x[:4, :3]  # this and the filter change roles
    result = conv2d(DistArray.from_global(small), w, mode="valid").gather()
    assert np.array_equal(result, ol.conv2d(small, w, mode="valid", device=device_of(comm)))


def check_parts_on_devices(comm, rng):
    for axis, (rows, mode) in itertools.product((0, 1, 2), ((5, "full"), (40, "same"))):
        x, w = inputs(rng, (2, rows, 9), (3, 3))
        made = DistArray.from_global(x, slab(axis))
        there = made.like(ol.to_device(made.local, device_of(comm)))
        result = conv2d(there, w, mode=mode, boundary="reflect")
        assert result.on_device
        near(result, right(x, w, mode, "reflect"), w)


def check_images_without_pixels(comm, rng):
    w = rng.random((3, 3), np.float32)
    for shape, mode in (((0, 9), "same"), ((0, 9), "full"), ((9, 0), "full"), ((0, 9, 9), "same")):
        x = np.empty(shape, np.float32)
        result = conv2d(DistArray.from_global(x, slab(-2)), w, mode=mode, cval=1.0)
        near(result, ol.conv2d(x, w, mode=mode, cval=1.0, device=device_of(comm)), w)


def check_what_does_not_fit_is_refused_on_all_ranks(comm, rng):
    x, w = inputs(rng, (12, 9), (3, 3))
    made = DistArray.from_global(x)
    colours = DistArray.from_global(np.zeros((9, 9, 3), np.float32))
    there = ol.to_device(w, device_of(comm))
    for image, weights, how, told in (
        (made, w, {"mode": "some"}, "mode must be one of"),
        (made, w, {"boundary": "some"}, "boundary must be one of"),
        (made, w[0], {}, "two dimensions"),
        (made, w[:0], {}, "needs weights"),
        (made, np.ones((13, 2)), {"mode": "valid"}, "in one direction only"),
        (made, w, {"channels_last": True}, "at least 3 dimensions"),
        (made, there, {}, "on the host"),
        (x, w, {}, "must be a DistArray"),
        (colours, w, {}, "looks like pixels"),
        (DistArray((4, 4), complex), w, {}, "complex128"),
    ):
        with pytest.raises(InvalidProblem, match=told):
            conv2d(image, weights, **how)
    with pytest.raises(DeviceNotFound):
        conv2d(made, w, device="99:0")
    if comm.size > 1:
        last = comm.rank == comm.size - 1
        for weights, how in ((w + last, {}), (w, {"cval": 1.0 * last}), (w, {"flip": last})):
            with pytest.raises(InvalidConfig, match="must be the same on all ranks"):
                conv2d(made, weights, **how)
        with pytest.raises(InvalidProblem, match="mode must be"):
            conv2d(made, w, mode="some" if last else "same")
        with pytest.raises(InvalidProblem, match="another communicator"):
            conv2d(made, w, comm=comm.Split(comm.rank))

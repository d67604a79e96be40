"""`out` of every public function: any layout, and the input itself; and the copies behind it."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from public_calls import CALLS, arguments, integers

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.runtime.arrays import overlap
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.copies import Copy, View

ALIKE = {"sort rows", "topk of many", "gemm of one stack", "gemm scaled", "conv2d of bytes"}
ALIKE |= {"conv2d large", "fft middle", "fft prime", "fft of real", "rfft odd", "dct filled"}
"""Calls whose results are written as those of others."""


def layouts(shape):
    """Return what makes arrays of one shape in a larger block: the block's shape, and the view."""
    *rows, columns = shape
    part = (*(slice(1, n + 1) for n in rows), slice(1, None, 2))
    return {
        "plain": (shape, lambda block: block),
        "fortran": (shape[::-1], lambda block: block.T),
        "part": ((*(n + 2 for n in rows), 2 * columns + 1), lambda block: block[part]),
    }


def at_home(array):
    return array.get() if isinstance(array, cl.array.Array) else array


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [name for name in CALLS if name not in ALIKE])
def test_out_of_any_layout(name, side, rng):
    function, _, options = CALLS[name]
    function = partial(function, **options)
    put, get = side.put, side.get
    given = arguments(name, side, rng)
    before = [np.array(at_home(array)) for array in given]

    def again():
        pairs = zip(given, before, strict=True)
        return [put(kept) if isinstance(one, side.kind) else kept for one, kept in pairs]

    right = function(*given)
    several = isinstance(right, tuple)
    right = [get(array) for array in (right if several else (right,))]
    for shape, view in layouts(right[0].shape).values():
        fill = [np.ones(shape, array.dtype) for array in right]
        blocks = [put(block) for block in fill]
        outs = [view(block) for block in blocks]
        arrays = again()
        result = function(*arrays, out=tuple(outs) if several else outs[0])
        assert isinstance(result, tuple) == several
        for got, out in zip(result if several else (result,), outs, strict=True):
            assert got is out
        for expected, block, around in zip(right, blocks, fill, strict=True):
            view(around)[:] = expected
            np.testing.assert_array_equal(get(block), around)  # and nothing around it
        for array, kept in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(at_home(array), kept)
    for turn in (1, -1):  # the inputs themselves, also crosswise
        arrays = again()
        outs = arrays[::turn][: len(right)]
        if all(
            isinstance(out, side.kind) and (out.shape, out.dtype) == (array.shape, array.dtype)
            for out, array in zip(outs, right, strict=True)
        ):
            function(*arrays, out=tuple(outs) if several else outs[0])
            for out, expected in zip(outs, right, strict=True):
                np.testing.assert_array_equal(get(out), expected)
    if not several:
        with pytest.raises(InvalidProblem, match="out must have shape"):
            function(*again(), out=put(np.zeros((3, 3), right[0].dtype)))
        with pytest.raises(InvalidProblem, match="same side"):
            on_device = side.name == "device"
            other = right[0] if on_device else cl.array.to_device(side.queue, right[0])
            function(*again(), out=other)
        if side.name == "host":
            locked = np.zeros_like(right[0])
            locked.flags.writeable = False
            with pytest.raises(InvalidProblem, match="read-only"):
                function(*again(), out=locked)


def test_pairs_must_be_apart(side, rng):
    a, put = integers(50)(rng), side.put
    block = put(np.zeros((50, 2), np.int32))
    sorted_keys, places = ol.sort_by_key(
        put(a), put(np.arange(50, dtype=np.int32)), out=(block[:, 0], block[:, 1])
    )
    order = np.argsort(a, kind="stable")
    np.testing.assert_array_equal(side.get(block), np.stack([a[order], order], 1))
    on_device = side.name == "device"
    assert sorted_keys.base_data is block.base_data if on_device else places.base is block
    flat = block.ravel()
    for out in ((flat[:50], flat[49:99]), (flat[:50], flat[:50])):
        with pytest.raises(InvalidProblem, match="share memory"):
            ol.sort_by_key(put(a), put(a), out=out)
    for wrong in (flat[:50], (flat[:50],), 3):
        with pytest.raises(InvalidProblem, match="a pair of arrays"):
            ol.sort_by_key(put(a), put(a), out=wrong)
    assert not overlap(flat[:50], flat[50:]) and overlap(flat[::2], flat[50:])


# ---------------------------------------------------------------- copies


def copied_by_numpy(source, shape, dtype, conjugate, shifts):
    target = np.zeros(shape, dtype)
    target[tuple(map(slice, source.shape))] = source
    return np.roll(np.conj(target) if conjugate else target, shifts, tuple(range(len(shape))))


PAIRS = [
    ("u1", "u1"), ("f2", "f4"), ("f2", "c8"), ("i4", "f4"), ("?", "c8"), ("f4", "c8"),
    ("c16", "c16"), ("i8", "f8"), ("c8", "c16"), ("u8", "c16"),
]  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("types", "case"),
    [*((("c8", "c8"), case) for case in range(8)), *((pair, 1) for pair in PAIRS)],
)
def test_copies_are_those_of_numpy(types, case, queue, rng, device):
    source_type, target_type = map(np.dtype, types)
    double = target_type.name in ("float64", "complex128") and source_type != target_type
    if double and not device.capabilities.fp64:
        pytest.skip("no double precision")
    ndim = 1 + case % 3
    have = rng.integers(1, 5, ndim)
    shape = tuple((have + (rng.integers(0, 4, ndim) if case % 2 else 0)).tolist())
    shifts = tuple(rng.integers(-9, 9, ndim).tolist()) if case % 4 > 1 else ()
    conjugate = case > 4
    order = rng.permutation(ndim)
    values = rng.integers(-99, 99, have[order] * 2)
    block = (values * (1 - 2j) if source_type.kind == "c" else values).astype(source_type)
    part = tuple(slice(rng.integers(2), None, 2) for _ in order)
    source = block[part].transpose(np.argsort(order))
    resident = cl.array.to_device(queue, block)[part].transpose(np.argsort(order).tolist())
    target = cl.array.to_device(queue, np.full((*shape[::-1], 2), 7, target_type))
    view = target.transpose([*range(ndim - 1, -1, -1), ndim])[..., 1]
    views = View.of(resident), View.of(view)
    Copy(*views, source_type, target_type, conjugate, shifts).enqueue(Call(queue), resident, target)
    found = target.get()
    right = copied_by_numpy(source, shape, target_type, conjugate, shifts or (0,) * ndim)
    np.testing.assert_array_equal(found[..., 1].T, right)
    assert (found[..., 0] == 7).all()  # nothing else is written


def on_queues():
    """Return the public functions that take a queue, with their first arguments that are arrays."""
    arrays = {"weights", "values", "v", "in2", "b"}
    for home in (ol, ol.fft, ol.ndimage, ol.signal):
        for name in home.__all__:
            function = getattr(home, name)
            if inspect.isfunction(function):
                given = inspect.signature(function).parameters
                if "queue" in given:
                    first, *others = given
                    needed = [n for n in others if given[n].default is inspect.Parameter.empty]
                    also = sorted(arrays & set(needed))
                    name = f"{home.__name__}.{name}"
                    yield pytest.param(function, first, needed, also, id=name)


@pytest.mark.parametrize(("function", "first", "needed", "arrays"), [*on_queues()])
def test_bare_memory_is_refused_with_a_recipe(function, first, needed, arrays, queue):
    plain = np.ones(4 if function.__name__.endswith("1d") else (4, 4))
    given = {name: plain if name in (first, *arrays) else 1 for name in (first, *needed)}
    memory = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 128)
    for name in (first, *arrays):
        with pytest.raises(InvalidProblem, match=r"pass pyopencl\.array\.Array\(queue, shape"):
            function(**{**given, name: memory})


@pytest.mark.parametrize("name", ["sort", "searchsorted", "gemm", "conv2d", "rfftn", "fftshift"])
def test_the_recipe_for_bare_memory_works(name, queue, rng):
    function, makers, options = CALLS[name]
    host = [make(rng) for make in makers]
    there = []
    for array in host:
        memory = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=array)
        there.append(cl.array.Array(queue, array.shape, array.dtype, data=memory))
    result = function(*there, **options)
    expected = function(*host, **options)
    np.testing.assert_allclose(result.get(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [20, 21])
def test_real_transforms_in_one_padded_array(side, n, rng):
    """As FFTW and cuFFT have it, and as docs/fft.md shows."""
    data = rng.random((6, n), np.float32)
    padded = side.put(np.pad(data, ((0, 0), (0, 2 - n % 2))))
    real, spectrum = padded[:, :n], padded.view(np.complex64)
    for function, back, options in (
        (ol.fft.rfft, ol.fft.irfft, {"n": n}),
        (ol.fft.rfft2, ol.fft.irfft2, {"s": (6, n)}),
    ):
        for _ in range(3):
            assert function(real, out=spectrum) is spectrum
            expected = getattr(np.fft, function.__name__)(data)
            np.testing.assert_allclose(side.get(spectrum), expected, rtol=1e-4, atol=1e-4)
            assert back(spectrum, out=real, **options) is real
            np.testing.assert_allclose(side.get(padded)[:, :n], data, rtol=1e-4, atol=1e-5)

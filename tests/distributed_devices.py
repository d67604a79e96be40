"""Checks of parts on devices that seem to have memory of their own; see `ranks`."""

import itertools
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from distributed_arrays import GRIDS
from distributed_sort import alike, even, keys_of, parts_of
from sort_checks import stable_order

import opencl_lab as ol
from opencl_lab.distributed import (
    DistArray,
    block_cyclic,
    blocks,
    conv2d,
    device_exchange,
    device_of,
    node,
    slab,
)
from opencl_lab.distributed import fft as dist_fft
from opencl_lab.distributed import gemm as multiply
from opencl_lab.distributed.node import node_of
from opencl_lab.distributed.sort import argsort, sort, sort_by_key
from opencl_lab.runtime.pinned import Pinned
from opencl_lab.runtime.session import session_of

SHAPES = [(12, 35), (0, 4), (3, 1)]


@contextmanager
def own_memory(comm, pinned=True):
    """Let the device seem to have its own memory; yield it. Ranks with a window must use it."""
    device, down, used = device_of(comm), Pinned.down, []
    session = session_of(device.queue())
    before, session.device = session.device, replace(device, unified_memory=False)
    Pinned.down = lambda *given: used.append(down(*given))
    try:
        yield session.device
    finally:
        session.device, Pinned.down = before, down
    assert not pinned or bool(used) == (node_of(comm) is not None)


def there(x, device):
    """Return an array with its parts on devices, in the middle of a larger one."""
    local = np.zeros((x.local.shape[0] + 2, *x.local.shape[1:]), x.dtype)
    local[1:-1] = x.local
    return x.like(ol.to_device(local, device)[1:-1])


def check_parts_move_between_devices(comm, rng):
    if comm.size > 1 and node_of(comm) is None:
        return  # by messages devices have no part, see `distributed_arrays`
    grids = GRIDS[comm.size]
    every = [slab(0), slab(1), *map(blocks, grids), block_cyclic(grids[0], (2, 3))]
    with own_memory(comm) as device:
        for shape, dtype in zip(SHAPES, (np.complex64, np.uint8, np.float32), strict=True):
            x = (rng.random(shape) * 250).astype(dtype)
            for before, after in itertools.product(every, repeat=2):
                made = there(DistArray.from_global(x, before), device)
                moved = made.redistribute(after)
                assert moved.on_device
                assert np.array_equal(moved.host(), DistArray.from_global(x, after).local)
                assert np.array_equal(moved.gather(), x)


def check_only_some_parts_on_devices(comm, rng):
    x = rng.random((30, 20)).astype("f4")
    made = DistArray.from_global(x)
    mixed = there(made, device_of(comm)) if comm.rank else made
    assert np.array_equal(mixed.redistribute(1).gather(), x)
    w = rng.random((5, 3)).astype("f4")
    assert np.allclose(conv2d(mixed, w).gather(), ol.conv2d(x, w, device=device_of(comm)))
    assert np.allclose(dist_fft.fft2(mixed).gather(), np.fft.fft2(x), atol=1e-3)
    row = DistArray.from_global(x.reshape(-1))
    mixed = there(row, device_of(comm)) if comm.rank else row
    assert np.allclose(dist_fft.fft(mixed).gather(), np.fft.fft(x.reshape(-1)), atol=1e-3)
    with own_memory(comm, pinned=False) as device:
        empty = there(DistArray.from_global(np.empty((0, 20, 9), "f4"), slab(1)), device)
        assert conv2d(empty, w).shape == (0, 20, 9)


def check_products_and_transforms_stay_on_devices(comm, rng):
    a, b = (rng.standard_normal(shape).astype("f4") for shape in ((45, 60), (60, 52)))
    x = rng.standard_normal((24, 30)).astype("c8")
    with own_memory(comm) as device:
        for cut_a, cut_b in itertools.product((slab(0), slab(1)), repeat=2):
            left, right = (
                there(DistArray.from_global(one, cut), device)
                for one, cut in ((a, cut_a), (b, cut_b))
            )
            made = multiply(left, right)
            assert made.on_device and np.allclose(made.gather(), a @ b, atol=1e-4)
        row = x.reshape(-1)
        for name in ("fft", "ifft", "irfft", "rfft"):
            given = row.real.copy() if name == "rfft" else row
            made = getattr(dist_fft, name)(there(DistArray.from_global(given), device))
            right = getattr(np.fft, name)(given)
            assert made.on_device and np.allclose(made.gather(), right, atol=1e-3)
        made = dist_fft.fft2(there(DistArray.from_global(x), device))
        assert made.on_device and np.allclose(made.gather(), np.fft.fft2(x), atol=1e-3)


def check_parts_of_the_host_go_between_devices(comm, rng):
    x, keys = rng.standard_normal((24, 30)).astype("c8"), rng.integers(-9, 9, 301).astype("i4")
    least, device_exchange.LEAST_PLACED = device_exchange.LEAST_PLACED, 0
    try:
        with own_memory(comm):
            a, row = DistArray.from_global(x), DistArray.from_global(x.reshape(-1))
            found = [multiply(a, a, trans_b="T"), dist_fft.fft2(a), dist_fft.ifft(row)]
            found += [sort(DistArray.from_global(keys)), dist_fft.fft2(a.like(a.local.real))]
            right = [x @ x.T, np.fft.fft2(x), np.fft.ifft(x.reshape(-1))]
            right += [np.sort(keys), np.fft.fft2(x.real)]
            for one, other in zip(found, right, strict=True):
                assert not one.on_device and np.allclose(one.gather(), other, atol=1e-3)
    finally:
        device_exchange.LEAST_PLACED = least


def check_borders_of_images_stay_on_devices(comm, rng):
    lengths = [7, 1, 5, 3, 6, 2, 4][: comm.size]
    lengths[-1] += 28 - sum(lengths)
    w = rng.random((5, 3)).astype("f4")
    with own_memory(comm) as device:
        for axis, boundary in itertools.product((0, 1), ("constant", "reflect", "wrap")):
            x = rng.random((28, 9) if axis == 0 else (2, 28, 9)).astype("f4")
            made = there(DistArray.from_global(x, slab(axis, lengths)), device)
            result = conv2d(made, w, boundary=boundary)
            assert result.on_device
            assert np.array_equal(
                result.gather(), ol.conv2d(x, w, boundary=boundary, device=device)
            )


def check_where_memory_is_not_pinned_the_host_copies(comm, rng):
    if node_of(comm) is None:
        return
    a, b = (rng.integers(-9, 9, (24, 24)).astype("f4") for _ in range(2))
    part, pinned = comm.Dup(), node.pinned_or_none
    node.pinned_or_none = lambda *given: None
    try:
        for cuts in itertools.product((slab(0), slab(1)), repeat=2):
            given = [
                DistArray.from_global(x, cut, part) for x, cut in zip((a, b), cuts, strict=True)
            ]
            for sides in ((True, False), (False, True)):
                with own_memory(comm, pinned=False) as device:
                    both = zip(given, sides, strict=True)
                    placed = [there(x, device) if moved else x for x, moved in both]
                    assert np.array_equal(multiply(*placed).gather(), a @ b)
        keys = DistArray.from_global(a.reshape(-1), comm=part)
        with own_memory(comm, pinned=False) as device:
            assert np.array_equal(sort(there(keys, device)).gather(), np.sort(a, axis=None))
    finally:
        node.pinned_or_none = pinned
        part.Free()


def check_sorts_stay_on_devices(comm, rng):
    """Parts of any lengths, all keys on one rank, and none."""
    uneven, one = parts_of(rng, 3000, comm.size), [0] * (comm.size - 1) + [500]
    cases = [
        ("f4", "few", uneven),
        ("i8", "reversed", one),
        ("?", "few", uneven),
        ("i4", "few", [0] * comm.size),
    ]
    with own_memory(comm) as device:
        for dtype, kind, sizes in cases:
            x = keys_of(rng, dtype, sum(sizes), kind)
            order = stable_order(x, kind == "few")
            given = there(DistArray.from_global(x, slab(0, sizes)), device)
            values = given.like(ol.to_device(np.arange(x.size)[given.local_slice()], device))
            how = {"descending": kind == "few"}
            made = sort(given, **how), argsort(given, **how), *sort_by_key(given, values, **how)
            for found, expected in zip(made, (x[order], order, x[order], order), strict=True):
                assert found.on_device
                alike(even(found, x.size, comm), expected)

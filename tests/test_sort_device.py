"""Sorting arrays of a device, queues of a user, and configurations."""

from __future__ import annotations

from functools import partial

import numpy as np
import public_calls
import pyopencl as cl
import pyopencl.array
import pytest
from sort_checks import SMALL

import opencl_lab as ol
from opencl_lab.drivers.discovery import device_of
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.session import session_of

# -------------------------------------------------------------- device arrays


def test_device_out_may_be_the_input_of_merging(rng, queue):
    """Without a tile, the first launch writes elements that others have yet to read."""
    keys = rng.integers(0, 500, (300, 2), np.int32)
    given = cl.array.to_device(queue, keys)
    config = {"WG_SIZE": 1, "TILE": 0, "WORK_PER_ITEM": 1}
    ol.sort(given, out=given, algorithm="odd-even-merge", config=config)
    np.testing.assert_array_equal(given.get(), np.sort(keys))


def test_host_and_device_do_not_mix(queue):
    host = np.arange(5, dtype=np.int32)
    device = cl.array.to_device(queue, host)
    for keys, out in ((host, device), (device, host)):
        with pytest.raises(ol.InvalidProblem, match="out must be on the same side"):
            ol.sort(keys, out=out, queue=queue)
        with pytest.raises(ol.InvalidProblem, match="both be host arrays or both device arrays"):
            ol.sort_by_key(keys, out, queue=queue)


# -------------------------------------------------------- queues and contexts


QUEUES = {
    "plain": 0,
    "profiling": cl.command_queue_properties.PROFILING_ENABLE,
    "out-of-order": cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", QUEUES)
def test_queue_of_the_user_in_a_context_of_the_user(kind, device, rng):
    context = cl.Context([device.handle])
    mine = cl.CommandQueue(context, properties=QUEUES[kind])
    keys = rng.integers(0, 500, 3_000, np.int32)
    np.testing.assert_array_equal(ol.sort(keys, queue=mine, **SMALL), np.sort(keys))
    given = cl.array.to_device(mine, keys)
    # Each step needs the one before, and scratch memory is shared between them.
    once = ol.sort(given[::-1], **SMALL)
    twice = ol.sort(once[::-1], **SMALL, descending=True)
    order = ol.argsort(twice, **SMALL)
    _, places = ol.sort_by_key(given, given, **SMALL)
    assert order.queue is mine
    assert order.context == context
    np.testing.assert_array_equal(twice.get(), np.sort(keys)[::-1])
    np.testing.assert_array_equal(order.get(), np.argsort(np.sort(keys)[::-1], kind="stable"))
    np.testing.assert_array_equal(places.get(), np.sort(keys))


def test_device_array_without_a_queue(rng, queue):
    keys = rng.integers(0, 500, 1_000, np.int32)
    homeless = cl.array.to_device(queue, keys).with_queue(None)
    with pytest.raises(ol.InvalidProblem, match="the device array has no queue"):
        ol.sort(homeless)
    result = ol.sort(homeless, queue=queue, **SMALL)
    np.testing.assert_array_equal(result.with_queue(queue).get(), np.sort(keys))


def test_arrays_of_different_contexts(device, queue, own_queue):
    keys = cl.array.to_device(queue, np.arange(5, dtype=np.int32))
    other = own_queue(device.handle)
    foreign = cl.array.zeros(other, 5, np.int32)
    homeless = foreign.with_queue(None)
    for call in (
        lambda: ol.sort(keys, queue=other),
        lambda: ol.sort(keys, out=foreign),
        lambda: ol.sort_by_key(keys, foreign),
        lambda: ol.sort(homeless, queue=queue),
        lambda: ol.sort(homeless, device=device),
        lambda: ol.to_device(homeless, device=device),
    ):
        with pytest.raises(ol.InvalidProblem, match="different contexts"):
            call()


@pytest.fixture
def parts(device):
    """Two halves of the device: others than it, and than each other."""
    try:
        return device.handle.create_sub_devices([cl.device_partition_property.EQUALLY, 1])
    except cl.Error as error:
        pytest.skip(f"the device cannot be divided: {error}")


def test_part_of_a_device(parts, own_queue, rng):
    mine = own_queue(parts[0])
    keys = rng.integers(0, 500, 1_000, np.int32)
    assert session_of(mine).device.compute_units == 1
    np.testing.assert_array_equal(ol.sort(keys, queue=mine, **SMALL), np.sort(keys))
    for part in parts[:2]:  # of equal records, so that nothing but their handle tells them
        assert ol.to_device(keys, device=device_of(part)).queue.device == part
    with pytest.raises(ol.DeviceNotFound, match="no OpenCL device matches 'abacus'"):
        ol.sort([2, 1], device="abacus")


ASKED = {
    name: public_calls.CALLS[name]
    for name in (
        *("sort", "argsort", "sort_by_key", "topk", "searchsorted", "gemm", "conv2d", "dft"),
        *("fft", "ihfft", "hfftn", "dctn", "fftshift"),
    )
}
ASKED["unique"] = ol.unique, [public_calls.integers(70)], {}
ASKED["prepare"] = (
    lambda x, **where: ol.prepare("sort", x, **where)(x), [public_calls.floats(70)], {},
)  # fmt: skip


def first(result):
    """Return the first array of a result."""
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ASKED)
def test_a_device_that_is_asked_for(name, device, parts, queue, rng):
    function, makers, options = ASKED[name]
    call, given = partial(function, **options), [make(rng) for make in makers]
    expected = first(call(*given))
    for wish in (device, device.spec):
        for _ in range(2):  # the second time from what was recorded
            np.testing.assert_array_equal(first(call(*given, device=wish)), expected)
    with pytest.raises(ol.InvalidProblem, match="queue= or device=, not both"):
        call(*given, queue=queue, device=device)
    there = [cl.array.to_device(queue, x) for x in given]
    result = first(call(*there, device=device))  # where they are already
    assert result.queue == queue
    # Host arrays may have been on the serial side of the device, whose sums differ.
    np.testing.assert_array_equal(result.get(), first(call(*given, queue=queue)))
    with pytest.raises(ol.InvalidProblem, match=r"the array is on .*, and device= says"):
        call(*there, device=device_of(parts[0]))


@pytest.mark.parametrize("name", ASKED)
def test_masked_arrays_are_refused(name, rng):
    function, makers, options = ASKED[name]
    x, *more = (make(rng) for make in makers)
    with pytest.raises(ol.InvalidProblem, match="masks are not supported"):
        function(np.ma.masked_less(x, 0), *more, **options)


# --------------------------------------------- algorithms, configurations, limits


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NO_SUCH": 1}, "unknown parameter NO_SUCH"),
        ([1], r"config must map parameters to values, not be \[1\]"),
        ({"WG_SIZE": "64"}, "WG_SIZE must be int, not '64'"),
        ({"WG_SIZE": True}, "WG_SIZE must be int, not True"),
        ({"WG_SIZE": 0}, "WG_SIZE must be positive"),
        ({"WG_SIZE": -8}, "WG_SIZE must be positive"),
        ({"WORK_PER_ITEM": 0}, "WORK_PER_ITEM must be positive"),
        ({"TILE": 100}, "0 or a power of two"),
        ({"WG_SIZE": 64, "TILE": 32}, "multiple of WG_SIZE"),
        ({"WG_SIZE": 1 << 20, "TILE": 0}, "work-group of 1048576 items"),
        ({"TILE": 1 << 26}, "of local memory"),
    ],
)
def test_configurations_that_cannot_run(config, message, queue):
    with pytest.raises(ol.InvalidConfig, match=message):
        ol.sort([2, 1], algorithm="odd-even-merge", config=config, queue=queue)
    names = "auto, radix, merge-path, sample-sort, odd-even-merge"
    with pytest.raises(ol.InvalidConfig, match=f"no algorithm 'bogo'; it has: {names}"):
        ol.sort([2, 1], algorithm="bogo", queue=queue)


@pytest.mark.parametrize("extra", [0, 2**31, 2**40])
@pytest.mark.parametrize("options", [{}, {"indices": True}, {"value_bytes": 16}])
def test_arrays_too_large_for_the_device(extra, options, device, queue):
    problem = SortProblem(device.max_allocation // 4 + 1 + extra, np.dtype(np.int32), **options)
    with pytest.raises(ol.InvalidProblem, match=r"allocates at most|of device memory"):
        SORT.run(problem, {}, queue=queue)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n": -1}, "n must not be negative"),
        ({"n": 5, "rows": -1}, "rows must not be negative, not -1"),
        ({"n": 5, "value_bytes": 3}, "values of 3 bytes"),
        ({"n": 5, "dtype": np.dtype("complex64")}, "cannot sort keys"),
        ({"n": 5, "dtype": np.dtype(">i4")}, "cannot sort keys"),
    ],
)
def test_problems_that_make_no_sense(fields, message):
    with pytest.raises(ol.InvalidProblem, match=message):
        SortProblem(**{"dtype": np.dtype(np.int32), **fields})

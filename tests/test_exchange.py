"""Arrays that go to a device and back, and to other libraries by DLPack."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import device_of
from opencl_lab.runtime import exchange
from opencl_lab.runtime.exchange import to_device, to_host
from opencl_lab.runtime.session import session_of

HOST = {
    "list": [[3, 1], [2, 5]],
    "C order": np.arange(6, dtype=np.float32).reshape(2, 3),
    "Fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(24, dtype=np.int16).reshape(4, 6)[::-1, ::2],
    "broadcast": np.broadcast_to(np.arange(3, dtype=np.uint8), (4, 3)),
    "other byte order": np.arange(5, dtype=np.dtype(np.int32).newbyteorder()),
    "empty": np.zeros((0, 3), np.complex64),
    "a number": np.float64(2.5),
    "nothing masked": np.ma.asarray(np.arange(4)),
}


CUDA = 2


class Foreign:
    """An array of another library, of which nothing is known but DLPack."""

    def __init__(self, array, device=(exchange.CPU, 0)):
        self._array, self._device = array, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **options):
        if self._device[0] == CUDA:
            raise BufferError("this is memory of CUDA")
        return self._array.__dlpack__(**options)


def test_bare_memory_is_refused_with_what_to_pass(queue):
    keys = np.arange(6, dtype=np.int32)
    flags = cl.mem_flags.READ_WRITE
    pooled = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue)).allocate(24)
    memories = [cl.Buffer(queue.context, flags, 24), pooled]
    if queue.device.image_support:
        form = cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT)
        memories.append(cl.create_image(queue.context, flags, form, (2, 3)))
    told = r"pyopencl\.array\.Array\(queue, shape, dtype, data=buffer\)"
    for memory in memories:
        for call in (
            lambda given: ol.sort(given),
            lambda given: ol.gemm(keys, given),
            lambda given: ol.conv2d(keys.reshape(2, 3), given),
            lambda given: ol.sort(keys, out=given),
            lambda given: ol.fft.fft(given, queue=queue),
            lambda given: ol.to_device(given, queue=queue),
        ):
            with pytest.raises(InvalidProblem, match=told):
                call(memory)


@pytest.mark.parametrize("name", HOST)
def test_host_arrays_go_to_a_device(name, device, queue):
    for where in ({}, {"device": device}, {"queue": queue}):
        there = ol.to_device(HOST[name], **where)
        assert isinstance(there, cl.array.Array)
        assert there.queue == where.get("queue", device.queue())
        assert there.dtype == np.asarray(HOST[name]).dtype.newbyteorder("=")
        np.testing.assert_array_equal(there.get(), HOST[name])
    if name == "Fortran order":
        assert there.flags.f_contiguous


def test_a_host_array_may_change_afterwards(device, rng):
    keys = rng.integers(0, 99, 100_000, np.int32)
    there, expected = ol.to_device(keys, device), keys.copy()
    keys[:] = -1
    np.testing.assert_array_equal(there.get(), expected)


def test_device_arrays_are_copied_only_to_other_devices(device, queue, own_queue):
    there = ol.to_device([3, 1, 2], queue=queue)
    for where in ({}, {"device": device}, {"queue": queue}):
        assert ol.to_device(there, **where) is there
    beside = ol.to_device(there, queue=device.queue())  # of the same context
    assert beside.queue == device.queue() and beside.base_data.int_ptr == there.base_data.int_ptr
    assert ol.to_device(there.with_queue(None), device).queue == device.queue()
    foreign = ol.to_device(there, queue=own_queue(device.handle))
    assert foreign.context != queue.context
    np.testing.assert_array_equal(foreign.get(), [3, 1, 2])
    strided = ol.to_device(there[::2], queue=foreign.queue)
    np.testing.assert_array_equal(strided.get(), [3, 2])
    assert ol.to_device(foreign, device) is foreign  # it is on this device
    try:
        part = device.handle.create_sub_devices([cl.device_partition_property.EQUALLY, 1])[0]
    except cl.Error:
        return
    copy = ol.to_device(there, device_of(part))
    assert copy.queue.device == part
    np.testing.assert_array_equal(ol.sort(copy).get(), [1, 2, 3])


@pytest.mark.parametrize(
    ("x", "words"),
    [(np.array([None]), "Python's objects"), (np.ma.masked_less([1, 2], 2), "masks")],
)
def test_what_no_device_can_hold(x, words):
    with pytest.raises(InvalidProblem, match=words):
        ol.to_device(x)


def test_where_is_said_once(device, queue):
    with pytest.raises(InvalidProblem, match="not both"):
        ol.to_device([1], device, queue)
    with pytest.raises(ol.DeviceNotFound):
        ol.to_device([1], "abacus")


# -------------------------------------------------------------------- DLPack


def test_arrays_of_the_host_are_inputs(rng):
    x = rng.standard_normal((4, 5))
    np.testing.assert_array_equal(ol.sort(Foreign(x)), np.sort(x))
    np.testing.assert_array_equal(ol.to_device(Foreign(x)).get(), x)
    np.testing.assert_allclose(ol.gemm(Foreign(x), x.T), x @ x.T, rtol=1e-12)
    with pytest.raises(InvalidProblem, match="NumPy cannot read this Foreign"):
        ol.sort(Foreign(x, (CUDA, 0)))


def test_what_lies_on_a_cpu_is_shared(device):
    if device.kind != "cpu":
        pytest.skip("its memory is not the host's")
    there = ol.to_device(np.arange(6, dtype=np.float32).reshape(2, 3), device)
    exported = ol.to_dlpack(there)
    shared = np.from_dlpack(exported)
    there += 1
    device.queue().finish()
    np.testing.assert_array_equal(shared, np.arange(1, 7).reshape(2, 3))
    view = np.from_dlpack(ol.to_dlpack(there[:, 1:]))  # strided, with an offset
    np.testing.assert_array_equal(view, shared[:, 1:])
    assert np.shares_memory(view, shared)
    turned = np.from_dlpack(ol.to_dlpack(there[::-1, 2:0:-1]))
    np.testing.assert_array_equal(turned, shared[::-1, 2:0:-1])
    assert np.shares_memory(turned, shared)
    copy = np.from_dlpack(Foreign(ol.to_dlpack(there)))
    del there, exported, view, turned
    gc.collect()
    for number in range(9):  # which would take memory that was given back
        ol.to_device(np.full((2, 3), number, np.float32), device)
    np.testing.assert_array_equal(shared, np.arange(1, 7).reshape(2, 3))
    np.testing.assert_array_equal(copy, shared)
    assert np.from_dlpack(ol.to_dlpack(ol.to_device(np.zeros((0, 3)), device))).shape == (0, 3)


def test_what_cannot_be_handed_on(device):
    there = ol.to_dlpack(ol.to_device([1, 2], device))
    with pytest.raises(BufferError, match="type 2"):
        there.__dlpack__(dl_device=(CUDA, 0))
    for wrong in ([1, 2], np.ones(2)):
        with pytest.raises(InvalidProblem, match="no device array"):
            ol.to_dlpack(wrong)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_go_through_pinned_memory(device, own_queue, monkeypatch, order):
    queue = own_queue(device.handle)
    session = session_of(queue)
    session.device = replace(session.device, unified_memory=False)
    moved = []
    for name in ("send", "fetch"):
        plain = getattr(session.staging, name)
        noted = lambda *given, plain=plain: moved.append(1) or plain(*given)  # noqa: E731
        monkeypatch.setattr(session.staging, name, noted)
    x = np.arange(5 << 20, dtype=np.float32).reshape(1 << 10, -1)
    x = np.asarray(x, order=order)
    there = to_device(x, queue=queue)
    assert len(moved) == 1 and there.flags.f_contiguous == (order == "F")
    assert np.array_equal(there.get(), x)
    back = to_host(there)
    assert len(moved) == 2 and np.array_equal(back, x)
    assert np.array_equal(to_host(there[5:, 1:]), x[5:, 1:]) and len(moved) == 3
    assert np.array_equal(to_host(to_device(x[:3], queue=queue)), x[:3]) and len(moved) == 3
    assert to_host(x) is x

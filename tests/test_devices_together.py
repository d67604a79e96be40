"""Several devices in one call: two parts of a processor, which may seem to have own memory."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from gemm_checks import assert_product, assert_right, generated, matrices, options_of
from sort_checks import SMALL

import opencl_lab as ol
from opencl_lab.ops.gemm.host import panels
from opencl_lab.ops.gemm.host import shared as shared_gemm
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.sort import shared as shared_sort
from opencl_lab.ops.sort.codes import codes
from opencl_lab.runtime import replay
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Staging
from opencl_lab.runtime.together import on_each

NAIVE = {"algorithm": "naive", "config": {"WG_M": 4, "WG_N": 8}}


def some(names, *usual):
    """Return parameters of which the others are left out of the default suite."""
    return [x if x in usual else pytest.param(x, marks=pytest.mark.full) for x in names]


@pytest.fixture(scope="module")
def halves(device):
    """The halves of the device, as pyopencl has them."""
    try:
        return device.handle.create_sub_devices([cl.device_partition_property.EQUALLY, 1])[:2]
    except cl.Error as error:
        pytest.skip(f"the device cannot be divided: {error}")


@pytest.fixture(params=["shared", pytest.param("copied", marks=pytest.mark.full), "mixed"])
def both(request, halves, monkeypatch):
    """Two devices that work on the host's memory, or have their own, or one of each."""
    own = {"shared": (False, False), "copied": (True, True), "mixed": (True, False)}
    found = []
    for handle, copies in zip(halves, own[request.param], strict=True):
        half = replace(ol.select_device(handle), unified_memory=not copies)
        monkeypatch.setattr(session_of(half.queue()), "device", half)
        found.append(half)
    return found


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """Let devices share work of any size; return how often each made a part of what."""
    for module in (shared_gemm, shared_sort):
        for name in ("LEAST", "LEAST_SENT"):
            monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(shared_gemm, "LEAST_MORE", 1)
    replay.forget()  # what was recorded where devices did not share
    calls = []
    for module in (shared_gemm, shared_sort):

        def noted(devices, work):
            calls.append(len(devices))
            on_each(devices, work)

        monkeypatch.setattr(module, "on_each", noted)
    yield calls
    replay.forget()


def awkward_keys(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        keys = rng.standard_normal(shape).astype(dtype)
        odd = rng.integers(0, 5, shape) == 0
        keys[odd] = rng.choice([np.nan, 0.0, -0.0, np.inf, -np.inf], np.count_nonzero(odd))
        return keys
    if dtype.kind == "b":
        return rng.integers(0, 2, shape, np.bool_)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def in_order(keys, descending=False):
    """Return keys in NumPy's stable order, or in the reverse one, equal keys as they were."""
    order = np.argsort(codes(np.ascontiguousarray(keys), descending), -1, "stable")
    return np.take_along_axis(keys, order, -1)


def same_bits(one, other):
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


# ----------------------------------------------------------------------- sort


@pytest.mark.few(2)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 997, 40_009])
def test_a_row_of_keys(n, descending, both, made, rng):
    keys = awkward_keys(rng, "float32", n)
    kept = keys.copy()
    result = ol.sort(keys, descending=descending, devices=both, **SMALL)
    assert same_bits(result, in_order(keys, descending)) and same_bits(keys, kept)
    assert (len(made) > 1) == (n > 1)


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(1, 3001), (2, 1501), (3, 1009), (7, 500), (101, 31), (5, 0)])
def test_rows_and_columns(shape, both, rng):
    keys = awkward_keys(rng, "int32", shape)
    np.testing.assert_array_equal(ol.sort(keys, devices=both, **SMALL), np.sort(keys))
    np.testing.assert_array_equal(ol.sort(keys, axis=0, devices=both, **SMALL), np.sort(keys, 0))


def test_keys_that_do_not_fit_are_sorted_by_the_first(both, made, rng, monkeypatch):
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", str(250_000))
    keys = awkward_keys(rng, "int32", 100_003)
    np.testing.assert_array_equal(ol.sort(keys, devices=both, **SMALL), np.sort(keys))
    assert not made


# ----------------------------------------------------------------------- gemm


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (2, 1, 3), (1, 211, 67), (211, 1, 67), (127, 131, 61), (300, 7, 19), (5, 400, 90)],
)
def test_products(m, n, k, both, made, rng):
    a, b, c = matrices(rng, m, n, k)
    result = ol.gemm(a, b, alpha=-0.5, beta=1.5, c=c, devices=both, **NAIVE)
    assert_product(result, a, b, c, -0.5, 1.5)
    assert made


@pytest.mark.parametrize(("each", "used"), [(1, 3), (1e9, 2)])
def test_a_third_device_that_is_sent_to_needs_more_work(each, used, both, made, rng, monkeypatch):
    monkeypatch.setattr(shared_gemm, "LEAST_MORE", each)
    a, b, c = matrices(rng, 60, 30, 20)
    result = ol.gemm(a, b, devices=[*both, both[0]], **NAIVE)
    assert_product(result, a, b, c, 1, 0)
    on_host = all(one.unified_memory for one in both)
    assert set(made) == {3 if on_host else used}


@pytest.mark.few(5)
@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("dtype", some(ELEMENT_TYPES, "float32", "complex128"))
def test_types_stacks_and_epilogues(case, dtype, both, rng):
    options = options_of(dtype, case)
    problem = GemmProblem(43, 57, 31, **options)
    inputs = generated(rng, problem)
    how = {"algorithm": "naive", "config": NAIVE["config"]}
    result = shared_gemm.multiply_together(problem, inputs, None, both, **how)
    assert_right(result, problem, inputs)


@pytest.mark.parametrize("limit", [300_000, 60_000])
def test_products_that_do_not_fit(limit, both, made, rng, monkeypatch):
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", str(limit))
    monkeypatch.setattr(panels, "ITERATION_BYTES", 10_000)
    a, b, c = matrices(rng, 70, 60, 1500)
    result = ol.gemm(a, b, beta=0.5, c=c, devices=both, **NAIVE)
    assert_product(result, a, b, c, 1.0, 0.5)
    assert made


@pytest.fixture
def sent(monkeypatch):
    """Let products go in tiles of about 16 by 16; return the bytes of each that is read."""
    monkeypatch.setattr(panels, "LEAST", 1)
    monkeypatch.setattr(panels, "LENGTHS", (16,))
    monkeypatch.setattr(panels, "WORTH", float("inf"))
    panels._panels.cache_clear()
    found, send_from = [], Staging.send_from

    def noted(staging, targets, nbytes, read):
        found.append(nbytes)
        return send_from(staging, targets, nbytes, read)

    monkeypatch.setattr(Staging, "send_from", noted)
    yield found
    panels._panels.cache_clear()


@pytest.mark.parametrize("both", ["copied"], indirect=True)
@pytest.mark.parametrize("trans", [False, True])
def test_a_tile_that_both_devices_need_is_read_once(trans, both, sent, rng):
    a, b, c = matrices(rng, 64, 48, 50)
    given = (a.T.copy(), b.T.copy()) if trans else (a, b)
    result = ol.gemm(*given, trans_a=trans, trans_b=trans, devices=both, **NAIVE)
    assert_product(result, a, b)
    assert len(sent) == 4 + 3 and sum(sent) == a.nbytes + b.nbytes
    result = ol.gemm(a, b, beta=0.5, c=c, bias=b[0], devices=both, **NAIVE)
    np.testing.assert_allclose(result, a @ b + 0.5 * c + b[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("both", ["copied"], indirect=True)
def test_a_device_that_fails_amid_its_tiles_ends_the_others(both, sent, rng, monkeypatch):
    run = GEMM_SOLVER.run
    calls = []

    def fails(problem, inputs, *, queue, **how):
        if queue.device == both[1].handle:
            calls.append(0)
            if len(calls) == 3:
                raise ol.LaunchError("the device is lost")
        return run(problem, inputs, queue=queue, **how)

    monkeypatch.setattr(GEMM_SOLVER, "run", fails)
    a, b, _ = matrices(rng, 256, 256, 20)
    with pytest.raises(ol.LaunchError, match=r"devices\[1\], .*the device is lost"):
        ol.gemm(a, b, devices=both, **NAIVE)
    assert not still_running()
    assert_product(ol.gemm(a, b, devices=both, **NAIVE), a, b)


# ------------------------------------------------------------------ which ones


def test_a_device_twice_and_one_alone(device, halves, made, rng):
    a, b, _ = matrices(rng, 120, 130, 60)
    keys = awkward_keys(rng, "float32", 5_003)
    for devices in ([device, device], (halves[0], halves[0], halves[1])):
        assert_product(ol.gemm(a, b, devices=devices, **NAIVE), a, b)
        assert same_bits(ol.sort(keys, devices=devices, **SMALL), in_order(keys))
    made.clear()
    for devices in ([device], [device.spec], (halves[1],)):
        assert_product(ol.gemm(a, b, devices=devices, **NAIVE), a, b)
        assert same_bits(ol.sort(keys, devices=devices, **SMALL), in_order(keys))
    assert not made


@pytest.mark.parametrize("call", [ol.sort, lambda x, **where: ol.gemm(x, x, **where)])
def test_what_is_refused(call, device, queue):
    x = np.ones((3, 3), np.float32)
    for where in ({"device": device}, {"queue": queue}):
        with pytest.raises(ol.InvalidConfig, match="give devices="):
            call(x, devices=[device, device], **where)
    for wrong in ("cpu", 0, device, iter([device])):
        with pytest.raises(ol.InvalidConfig, match="must be a list of devices"):
            call(x, devices=wrong)
    with pytest.raises(ol.InvalidConfig, match="at least one device"):
        call(x, devices=[])
    with pytest.raises(ol.DeviceNotFound, match="nosuch"):
        call(x, devices=[device, "nosuch"])
    on_device = ol.to_device(x, device)
    with pytest.raises(ol.InvalidProblem, match="arrays of the host only"):
        call(on_device, devices=[device, device])
    np.testing.assert_array_equal(call(on_device, devices=[device]).get(), call(x))


# ---------------------------------------------------------------------- errors


def still_running():
    """Return the threads of devices that do not end."""
    found = [item for item in threading.enumerate() if item.name.startswith("oclab-device")]
    for thread in found:
        thread.join(10)  # one that an interrupt has hidden ends by itself
    return [thread for thread in found if thread.is_alive()]


def failing(monkeypatch, where, fail):
    """Let one part on a device fail, for both operations; the other device waits for that."""
    multiply = shared_gemm.multiply_in_parts_or_at_once
    sort_keys = shared_sort._SharedRow._sorted
    struck = threading.Event()

    def strike(queue):
        if queue.device != where:
            struck.wait(20)
        elif not struck.is_set():
            struck.set()
            fail()

    def multiply_or_fail(*given, queue, **how):
        return strike(queue) or multiply(*given, queue=queue, **how)

    monkeypatch.setattr(shared_gemm, "multiply_in_parts_or_at_once", multiply_or_fail)
    monkeypatch.setattr(
        shared_sort._SharedRow,
        "_sorted",
        lambda row, keys: strike(keys.queue) or sort_keys(row, keys),
    )


@pytest.mark.parametrize("operation", ["gemm", "sort"])
@pytest.mark.parametrize("error", ["lost", "memory", "other"])
def test_a_device_that_fails_is_named(error, operation, both, rng, monkeypatch):
    def fail():
        if error == "memory":
            raise cl.MemoryError(SimpleNamespace(
                routine=lambda: "clEnqueueNDRangeKernel", code=lambda: -4, what=lambda: "no memory"
            ))  # fmt: skip
        raise ol.LaunchError("the device is lost") if error == "lost" else OSError("now")

    failing(monkeypatch, both[1].handle, fail)
    x = rng.standard_normal((150, 150)).astype("f4")
    expected = {"lost": ol.LaunchError, "memory": ol.LaunchError, "other": OSError}[error]
    with pytest.raises(expected) as caught:
        if operation == "gemm":
            ol.gemm(x, x, devices=both, **NAIVE)
        else:
            ol.sort(x, axis=None, devices=both, **SMALL)
    if error != "other":
        assert f"devices[1], {both[1]}: " in str(caught.value)
    assert not still_running()
    assert_product(ol.gemm(x, x, devices=both, **NAIVE), x, x)  # it works again


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("operation", ["gemm", "sort"])
def test_an_interrupt_ends_the_call(operation, both, rng, monkeypatch):
    failing(monkeypatch, both[0].handle, lambda: os.kill(os.getpid(), signal.SIGINT))
    x = rng.standard_normal((150, 150)).astype("f4")
    with pytest.raises(KeyboardInterrupt):
        if operation == "gemm":
            ol.gemm(x, x, devices=both, **NAIVE)
        else:
            ol.sort(x, axis=None, devices=both, **SMALL)
    assert not still_running()

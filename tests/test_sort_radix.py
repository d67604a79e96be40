"""The radix sort: its three forms, skewed and adversarial keys, looking back, and its plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from radix_checks import FORMS, GPU, RADIX, SKEWS, N, need, skewed, specials, stable_order

import opencl_lab as ol
from opencl_lab.core import template
from opencl_lab.ops.sort import radix_gpu
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of


@pytest.mark.parametrize("form", FORMS)
def test_skewed_keys(form, rng, queue):
    """Stably, by which position each key had; all skews by one program, and twice the same."""
    need(form, queue)
    options = {"algorithm": "radix", "config": FORMS[form], "queue": queue}
    for name in SKEWS:
        keys = skewed(name, rng)
        order = ol.argsort(keys, **options)
        np.testing.assert_array_equal(order, stable_order(keys), err_msg=name)
    again = ol.argsort(keys, **options)
    assert again.tobytes() == order.tobytes()


def test_large_buckets_of_one_key_and_of_two(rng, queue):
    """Near either end of the range, at each distance at which buckets become wider."""
    need("cpu", queue)
    options = {"algorithm": "radix", "config": FORMS["cpu"], "queue": queue}
    share = rng.random(N)
    for exponent in range(17):
        two = 2**exponent - 1 + rng.integers(0, 2, N)
        keys = np.where(share < 0.6, rng.integers(0, 4, N), rng.integers(0, 2**30, N))
        keys = np.where(share > 0.7, two, keys).astype(np.int32)
        for given in (keys, -keys):
            order = ol.argsort(given, **options)
            np.testing.assert_array_equal(order, stable_order(given), err_msg=str(exponent))


@pytest.mark.parametrize("form", ["cpu", "streamed"])
def test_many_small_chunks(form, rng, queue, monkeypatch):
    """Whose elements end and begin in the same lines of memory, in all buckets."""
    need(form, queue)
    monkeypatch.setattr("opencl_lab.ops.sort.radix_cpu.KEYS_OF_CHUNK", 256)
    monkeypatch.setattr("opencl_lab.ops.sort.radix_cpu.CHUNKS_OF_UNIT", 32)
    plan = planned(form, SortProblem(N, np.dtype(np.int32), indices=True), queue)
    executable = session_of(queue).executable(("chunks", form), lambda: plan)
    for buckets in (5, 16, 32):
        keys = (rng.integers(0, buckets, (1, N)) << 26).astype(np.int32) + np.int32(1)
        keys += rng.integers(0, 3, keys.shape, np.int32)
        for _ in range(5):
            order = execute(executable, {"keys": keys}, queue).outputs["sorted_values"]
            np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.parametrize("form", ["cpu", "onesweep"])
def test_skewed_rows(form, rng, queue):
    """Rows of which each takes another way, in the same launches."""
    need(form, queue)
    keys = np.stack([skewed(name, rng) for name in SKEWS])
    for part in np.array_split(keys, 5):
        order = ol.argsort(part, algorithm="radix", config=FORMS[form], queue=queue)
        np.testing.assert_array_equal(order, stable_order(part))


@pytest.mark.parametrize(
    ("dtype", "form", "n", "descending"),
    [
        ("int8", "cpu", N, True),
        ("float64", "cpu", N, False),
        ("float16", "onesweep", N, False),
        ("uint64", "scan", N, True),
        ("float64", "onesweep", 200, True),
    ],
)
def test_every_kind_of_key(dtype, form, n, descending, rng, queue):
    """Bit for bit: NaN of all payloads last, and zeros of both signs in their order.

    All forms sort float32 in `test_sort_properties`.
    """
    need(form, queue)
    dtype = np.dtype(dtype)
    keys = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "f":
        special = np.concatenate([specials(dtype), np.array([1e-7, -1.0], dtype)])
        for share, values in ((0.7, special), (0.3, rng.standard_normal(50).astype(dtype))):
            places = rng.random(n) < share
            keys[places] = rng.choice(values, np.count_nonzero(places))
    right = keys[stable_order(keys, descending)]
    options = {"algorithm": "radix", "config": FORMS[form], "queue": queue}
    assert ol.sort(keys, descending=descending, **options).tobytes() == right.tobytes()


@pytest.mark.parametrize(
    ("form", "value_bytes", "n"),
    [
        ("cpu", 1, N),
        ("cpu", 16, 700),
        ("scan", 8, N),
        ("onesweep", 16, N),
        ("onesweep", 2, 200),
    ],
)
def test_values_travel(form, value_bytes, n, rng, queue):
    need(form, queue)
    keys = rng.integers(0, 200, n).astype(np.uint8 if value_bytes == 16 else np.int32)
    values = rng.integers(0, 256, n * value_bytes, np.uint8).view(f"V{value_bytes}")
    order = stable_order(keys)
    moved = ol.sort_by_key(keys, values, algorithm="radix", config=FORMS[form], queue=queue)
    np.testing.assert_array_equal(moved[0], keys[order])
    assert moved[1].tobytes() == values[order].tobytes()


def planned(form, problem, queue, device=None):
    """Return the plan of a form."""
    device = device or session_of(queue).device
    return RADIX.plan(problem, RADIX.configure(problem, device, FORMS[form]), device)


def sorted_by(plan, keys, queue, label):
    """Return what a plan makes of one row of keys."""
    executable = session_of(queue).executable(("test", label), lambda: plan)
    return execute(executable, {"keys": keys}, queue).outputs["sorted"]


@pytest.mark.parametrize(
    ("dtype", "descending"), [("int32", False), ("float32", True), ("uint64", True)]
)
def test_runs_that_networks_sort(dtype, descending, rng, queue):
    """Rows around whole blocks; NaN and zeros of both signs keep their order bit by bit."""
    need("cpu", queue)
    device = replace(session_of(queue).device, native_vector_bytes=64)
    dtype = np.dtype(dtype)
    longest = 0
    for n in (25, 31, 127, 128, 129, 256, 257, 511, 513, 1100, 3000, 5001, 8192):
        problem = SortProblem(n, dtype, 3, descending=descending)
        plan = planned("cpu", problem, queue, device)
        network = plan.launches[0].params["RUN"].network
        if not network:
            assert n > longest > 0
            continue
        longest = network
        keys = rng.integers(0, 256, (3, n * dtype.itemsize), np.uint8).view(dtype)
        if dtype.kind == "f":
            keys = np.where(rng.random(keys.shape) < 0.5, keys, np.nan).astype(dtype)
            keys[0] = rng.standard_normal(n)
            keys[2] = rng.choice(np.array([0.0, -0.0, 1.0, -np.inf], dtype), n)
        executable = session_of(queue).executable(("network", problem), lambda plan=plan: plan)
        found = execute(executable, {"keys": keys}, queue).outputs["sorted"]
        order = np.stack([stable_order(row, descending) for row in keys])
        right = np.take_along_axis(keys, order, -1)
        np.testing.assert_array_equal(found.view(np.uint8), right.view(np.uint8), err_msg=str(n))


def test_networks_sort_what_they_can():
    cpu = replace(GPU, kind="cpu", native_vector_bytes=64)
    cpu = replace(cpu, capabilities=replace(cpu.capabilities, local_memory=1 << 18))

    def params(n, dtype="int32", device=cpu, **what):
        problem = SortProblem(n, np.dtype(dtype), **what)
        plan = RADIX.plan(problem, RADIX.default_config(problem, device), device)
        return plan.launches[0].params

    sizes = (17_000, 50_000, 10**5, 10**6, 10**6 + 1, 3 * 10**6, 10**7)
    for n in sizes:
        found = params(n)
        assert n / 2 ** found["CUT"].bits <= found["CUT"].share <= found["RUN"].network
    assert params(10**9)["CUT"].share < 10**9 >> params(10**9)["CUT"].bits
    assert params(500) == params(5000)  # one program serves all short rows
    assert not params(500, value_bytes=4)["RUN"].network
    assert not params(500, indices=True)["RUN"].network
    assert not params(500, "int16")["RUN"].network and not params(5000, "int64")["RUN"].network
    assert not params(500, device=replace(cpu, native_vector_bytes=32))["RUN"].network


@pytest.mark.parametrize("form", ["scan", "onesweep"])
def test_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^30 keys need, in short rows."""
    keys = skewed("zipf", rng).reshape(1, -1)
    monkeypatch.setattr(radix_gpu, "WIDE", 1000)
    plan = planned(form, SortProblem(N, keys.dtype), queue)
    assert plan.launches[0].params["WIDE"]
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, f"wide {form}"), np.sort(keys))


def test_a_launch_a_phase(rng, queue):
    """What runs where items do not see what others have written."""
    need("cpu", queue)
    device = session_of(queue).device
    apart = replace(device, capabilities=replace(device.capabilities, visible_writes=False))
    plan = planned("cpu", SortProblem(N, np.dtype(np.int32)), queue, apart)
    assert len(plan.launches) > 4
    for name in ("uniform", "one-bucket", "uniform"):  # counters must be zero again
        keys = skewed(name, rng).reshape(1, -1)
        np.testing.assert_array_equal(sorted_by(plan, keys, queue, "apart"), np.sort(keys))


def test_tiles_that_announce_nothing_are_counted(rng, queue, monkeypatch):
    def mute(name, params):
        source = template.render(name, params)
        text = source.text
        for mark in ("OWN", "ALL"):
            said = f"PUT((p), {mark} | (status_t)(n))"
            assert said in text
            text = text.replace(said, "")
        return replace(source, text=text)

    monkeypatch.setattr("opencl_lab.runtime.programs.render", mute)
    keys = rng.integers(0, 256, (1, 3001), np.uint8)
    config = {**FORMS["impatient"], "WG_SIZE": 256, "ITEM_KEYS": 2, "DIGIT_BITS": 8}
    problem, device = SortProblem(3001, keys.dtype), session_of(queue).device
    plan = RADIX.plan(problem, RADIX.configure(problem, device, config), device)
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, "mute"), np.sort(keys))

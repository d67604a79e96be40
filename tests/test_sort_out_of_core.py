"""Arrays that are too large for a device, by small limits: sorted in parts, and exactly so."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyopencl as cl
import pytest
from planted import limited_group

import opencl_lab as ol
from opencl_lab.core import memory
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.ops.sort import part_sizes
from opencl_lab.ops.sort.codes import codes, last_key
from opencl_lab.ops.sort.multiway_split import Samples
from opencl_lab.ops.sort.out_of_core import sort_array
from opencl_lab.ops.sort.part_sizes import needs_parts, parts_of
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.ops.sort.trials import awkward_keys, order_of
from opencl_lab.runtime import streams
from opencl_lab.runtime.session import session_of


def ordered(keys, descending=False):
    return keys[order_of(keys, descending)]


def same_bits(one, other):
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", (*KEY_TYPES, "M8[s]"))
def test_codes_are_in_the_order_of_numpy(dtype, rng):
    keys = awkward_keys(rng, dtype, 3_000)
    right = np.sort(keys, kind="stable")
    assert same_bits(ordered(keys), right)
    found = codes(right).astype(np.uint64)
    same = (right[1:] == right[:-1]) | ((right[1:] != right[1:]) & (right[:-1] != right[:-1]))
    np.testing.assert_array_equal(found[1:] == found[:-1], same)
    for descending in (False, True):
        last = np.array([last_key(keys.dtype, descending)], keys.dtype)
        assert (codes(last, descending) >= codes(keys, descending)).all()
        assert codes(last, descending)[0] >= codes(right, descending).max()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["random", "few", "equal", "runs-apart", "reversed-apart"])
@pytest.mark.parametrize("lengths", [(1,), (700, 700, 13), (90,) * 11, (5, 1, 3)])
def test_runs_are_cut_exactly(lengths, kind, descending, rng):
    total = sum(lengths)
    keys = {
        "random": lambda: rng.integers(-(2**31), 2**31, total, np.int32),
        "few": lambda: rng.integers(0, 3, total, np.int32),
        "equal": lambda: np.full(total, 7, np.int32),
        "runs-apart": lambda: np.arange(total, dtype=np.int32),
        "reversed-apart": lambda: np.arange(total, dtype=np.int32)[::-1].copy(),
    }[kind]()
    edges = np.cumsum((0, *lengths))
    runs = [ordered(keys[a:b], descending) for a, b in pairwise(edges)]
    samples = Samples(lengths, keys.dtype, descending)
    read = []
    for index, run in enumerate(runs):
        for begin in range(0, run.size, 64):
            samples.take(index, begin, run[begin : begin + 64])
    samples.order()

    def window(index, begin, end):
        read.append(end - begin)
        return runs[index][begin:end]

    everything = codes(np.concatenate(runs), descending)
    order = np.argsort(everything, kind="stable")
    for rank in (*range(0, total, 7), total - 1, total):
        first = np.sort(order[:rank])
        right = np.diff(np.searchsorted(first, edges))
        read.clear()
        np.testing.assert_array_equal(samples.cut(rank, window), right)
        assert sum(read) <= 4 * len(lengths) * samples.step


@pytest.fixture
def small_parts(device, monkeypatch):
    """Let 30,000 keys be more than fit the device."""
    monkeypatch.setenv(streams.LIMIT, "400e3")
    assert parts_of(SortProblem(30_001, np.dtype(np.int32)), device).runs > 1


@pytest.mark.few(3)
@pytest.mark.parametrize("order", ["equal", "sorted", "reversed", "one-odd", "two"])
def test_skewed_keys(order, small_parts, rng):
    n = 30_001
    keys = {
        "equal": lambda: np.full(n, -5, np.int32),
        "sorted": lambda: np.arange(n, dtype=np.int32),
        "reversed": lambda: np.arange(n, dtype=np.int32)[::-1].copy(),
        "one-odd": lambda: np.append(np.full(n - 1, 2**31 - 1), -(2**31)).astype(np.int32),
        "two": lambda: rng.integers(0, 2, n).astype(np.int32),
    }[order]()
    assert same_bits(ol.sort(keys), np.sort(keys))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((3_000, 37), {}),
        ((37, 3_000), {"axis": 0}),
        ((3, 30_007), {"descending": True}),
        ((2, 60, 999), {"axis": 1}),
        ((40, 999), {"axis": None}),
    ],
)
def test_rows(shape, options, small_parts, rng):
    keys = rng.integers(-99, 99, shape, np.int32)
    right = np.sort(keys, axis=options.get("axis", -1))
    if options.get("descending"):
        right = right[:, ::-1]
    assert same_bits(ol.sort(keys, **options), np.ascontiguousarray(right))


def test_out_and_other_byte_orders(small_parts, rng):
    keys = rng.integers(-99, 99, 30_001, np.int32)
    right, out = np.sort(keys), np.empty_like(keys)
    assert ol.sort(keys, out=out) is out
    np.testing.assert_array_equal(out, right)
    swapped = keys.astype(">i4")
    assert same_bits(ol.sort(swapped), right.astype(">i4"))
    assert ol.sort(keys, out=keys) is keys
    np.testing.assert_array_equal(keys, right)


def test_a_recorded_call_heeds_the_limit(monkeypatch, rng):
    keys = rng.integers(-99, 99, 30_001, np.int32)
    for limit in ("1G", "400e3", "1G", "2e3"):
        monkeypatch.setenv(streams.LIMIT, limit)
        for _ in range(2):
            if limit == "2e3":
                with pytest.raises(InvalidProblem, match="too few to sort"):
                    ol.sort(keys)
            else:
                np.testing.assert_array_equal(ol.sort(keys), np.sort(keys))


def refuse(*args, **more):
    raise cl.MemoryError("OUT_OF_HOST_MEMORY")


@pytest.mark.full
@pytest.mark.parametrize("pinned", [True, False])
def test_a_device_with_memory_of_its_own(device, pinned, own_queue, rng, monkeypatch):
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", "6e6")
    if not pinned:
        monkeypatch.setattr(cl, "enqueue_map_buffer", refuse)
    queue = own_queue(device.handle)
    session = session_of(queue)
    session.device = replace(session.device, unified_memory=False)
    keys = rng.integers(-(2**31), 2**31, (1, 700_000), np.int32)
    problem = SortProblem(keys.size, keys.dtype)
    assert parts_of(problem, session.device).runs > 1
    how = {"algorithm": "auto", "config": None, "queue": queue}
    result = sort_array(problem, keys, None, **how)
    np.testing.assert_array_equal(result, np.sort(keys))


def test_a_comparison_says_into_how_many_parts_it_went(device, monkeypatch):
    options = {"against": "none", "repeats": 1, "device": device.spec, "algorithms": "radix"}
    monkeypatch.setenv(streams.LIMIT, "1M")
    (row,) = ol.compare("sort", n=300_000, **options)
    assert row.ok and row.total_ms is not None and row.kernel_ms is None
    parts = parts_of(SortProblem(300_000, np.dtype(np.int32)), device, "radix")
    assert row.note == f"in {parts}" and f"in {parts.runs} runs of " in row.note
    assert row.as_row()["note"] == row.note
    (row,) = ol.compare("sort", n=1000, **options)
    assert row.ok and "runs of" not in row.note


@pytest.mark.parametrize("unified", [True, False])
@pytest.mark.parametrize("limit", [6e6, 1e8, 3e9])
@pytest.mark.parametrize("shape", [(1, 10**9), (7, 10**8), (10**6, 1000), (10**8, 3)])
def test_parts_keep_to_the_limit(device, shape, limit, unified):
    device = replace(device, global_memory=4 << 30, max_allocation=1 << 30, unified_memory=unified)
    rows, n = shape
    problem = SortProblem(n, np.dtype(np.int32), rows)
    assert needs_parts(problem, device, limit=limit)
    parts = parts_of(problem, device, limit=limit)
    plan = parts.algorithm.plan(parts.part, parts.config, device)
    assert sum(buffer.nbytes for buffer in plan.buffers) + 2 * parts.nbytes <= limit
    assert parts.part.n * parts.runs >= n if parts.merges else parts.part.rows * parts.runs >= rows
    assert parts.nbytes * 30 > min(limit, 4 << 28) or parts.nbytes >= part_sizes.SHORT / 2


def test_too_little_memory_is_one_sentence(device):
    problem = SortProblem(10**9, np.dtype(np.int64))
    for limit in (1e3, 4e6):
        with pytest.raises(InvalidProblem, match="too few to sort 1,000,000,000 int64 keys"):
            parts_of(problem, device, limit=limit)


@pytest.mark.parametrize("text", ["nan", "0", "-5", "64 MX", "inf"])
def test_a_limit_that_cannot_be_read_is_refused(text, monkeypatch):
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", text)
    with pytest.raises(InvalidProblem, match=r"^.OCLAB_DEVICE_BYTES: .* is not a number of bytes"):
        ol.sort(np.zeros(100, np.int32))


def test_a_container_has_less_memory_than_its_machine(device, monkeypatch, tmp_path):
    whole = memory.host_memory()
    limited_group(monkeypatch, tmp_path, limit=2 * 10**9)
    assert memory.host_memory() == 2e9 < whole
    problem = SortProblem(10**10, np.dtype(np.int32))
    for unified in (False, True):
        one = replace(device, global_memory=64 << 30, unified_memory=unified)
        parts = parts_of(problem, one)
        plan = parts.algorithm.plan(parts.part, parts.config, one)
        taken = sum(buffer.nbytes for buffer in plan.buffers) + 2 * parts.nbytes
        assert (taken <= 5e8) == unified


def by_key(keys, **how):
    return ol.sort_by_key(keys, keys, **how)


@pytest.mark.parametrize("call", [ol.argsort, by_key])
def test_indices_and_values_do_not_go_in_parts_and_say_so(call, device, own_queue):
    queue = own_queue(device.handle)
    session = session_of(queue)
    session.device = replace(session.device, max_allocation=1 << 20)
    with pytest.raises(InvalidProblem, match="allocates at most 1 MiB at once") as caught:
        call(np.zeros(1 << 19, np.int32), queue=queue)
    assert "\n" not in str(caught.value)
    assert (ol.sort(np.ones(1 << 19, np.int32), queue=queue) == 1).all()

"""The radix sort and merging in all forms: skewed keys, all types, what travels, looking back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from radix_checks import (
    FORMS,
    ORDERS,
    SKEWS,
    SORTS,
    N,
    need,
    ordered,
    planned,
    skewed,
    sorted_by,
    specials,
)
from sort_checks import stable_order

import opencl_lab as ol
from opencl_lab.core import template
from opencl_lab.ops.sort import merge_path, radix_gpu
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.usefixtures("sorts_by_name")

MERGED, SHORT = 5_003, 1000  # keys, for several tiles, and for few
INT32 = np.dtype(np.int32)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
def test_skewed_keys(form, rng, queue):
    """Stably, by which position each key had; all skews by one program, and twice the same."""
    options = need(form, queue) | {"queue": queue}
    keys = np.stack([skewed(name, rng) for name in SKEWS])
    parts = [keys[:, :length] for length in (MERGED, 1000, 130, 33, 9, 8, 2, 1)]
    if form != "merge":
        parts = [*keys, *(np.array_split(keys, 5) if form in ("cpu", "onesweep") else ())]
    for part in parts:
        order = ol.argsort(part, **options)
        np.testing.assert_array_equal(order, stable_order(part))
    again = ol.argsort(part, **options)
    assert again.tobytes() == order.tobytes()


@pytest.mark.parametrize("form", ["cpu", "streamed"])
def test_many_small_chunks(form, rng, queue, monkeypatch):
    """Whose elements end and begin in the same lines of memory, in all buckets."""
    need(form, queue)
    monkeypatch.setattr("opencl_lab.ops.sort.radix_cpu.KEYS_OF_CHUNK", 256)
    monkeypatch.setattr("opencl_lab.ops.sort.radix_cpu.CHUNKS_OF_UNIT", 32)
    plan = planned(form, SortProblem(N, INT32, indices=True), queue)
    executable = session_of(queue).executable(("chunks", form), lambda: plan)
    for buckets in (5, 16, 32):
        keys = (rng.integers(0, buckets, (1, N)) << 26).astype(np.int32) + np.int32(1)
        keys += rng.integers(0, 3, keys.shape, np.int32)
        for _ in range(5):
            order = execute(executable, {"keys": keys}, queue).outputs["sorted_values"]
            np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "descending"), [("float64", False), ("int64", True), ("float32", True)]
)
def test_a_key_that_comes_often(dtype, descending, rng, queue):
    """It has a bucket of its own on CPUs, wherever it is: stably, beside keys that are close."""
    keys = (rng.standard_normal(N) * 1e9).astype(dtype)
    close = np.arange(-99, 99).astype(dtype)
    options = need("cpu", queue) | {"queue": queue, "descending": descending}
    for often in (0, keys.min(), keys.max(), np.nan if "f" in dtype else 7):
        keys[rng.random(N) < 0.05] = rng.choice(close)
        keys[::7] = rng.choice(close, keys[::7].size)
        some = np.where(rng.random(N) < 0.4, np.array(often, dtype), keys)
        order = ol.argsort(some, **options)
        np.testing.assert_array_equal(order, stable_order(some, descending))
        np.testing.assert_array_equal(ol.sort(some, **options), some[order])
    if "f" in dtype:  # all other numbers are between those of the sample
        for often in (0, np.inf, -np.inf):
            alone = np.full(N, often, dtype)
            alone[1:11] = np.tile([-np.inf, 7, np.nan, np.inf, -7], 2)
            order = stable_order(alone, descending)
            np.testing.assert_array_equal(ol.sort(alone, **options), alone[order])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "form", "n", "descending"),
    [
        ("int8", "cpu", N, True),
        ("float64", "cpu", N, False),
        ("float32", "cpu", N, True),
        ("float32", "onesweep", N, True),
        ("float16", "onesweep", N, False),
        ("uint64", "scan", N, True),
        ("float64", "onesweep", 200, True),
        ("float16", "merge", MERGED, False),
        ("uint64", "merge", MERGED, True),
        ("M8[s]", "merge", MERGED, False),
        ("float32", "samples", N, True),
        ("float16", "samples", MERGED, False),
        ("uint64", "samples", N, True),
        ("M8[s]", "cpu", N, False),
        ("M8[s]", "scan", N, True),
    ],
)
def test_every_kind_of_key(dtype, form, n, descending, rng, queue):
    """Bit for bit: NaN of all payloads and NaT last, and zeros of both signs in their order."""
    options = need(form, queue) | {"queue": queue, "descending": descending}
    dtype = np.dtype(dtype)
    keys = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "M":
        keys[rng.random(n) < 0.3] = "NaT"
    if dtype.kind == "f":
        special = np.concatenate([specials(dtype), np.array([1e-7, -1.0], dtype)])
        for share, values in ((0.7, special), (0.3, rng.standard_normal(50).astype(dtype))):
            places = rng.random(n) < share
            keys[places] = rng.choice(values, np.count_nonzero(places))
    right = keys[stable_order(keys, descending)]
    assert ol.sort(keys, **options).tobytes() == right.tobytes()


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["cpu", "streamed"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "float64", "uint64", "m8[s]"])
def test_keys_that_are_ordered_already(dtype, form, rng, queue):
    """Bit for bit: few or no equal keys, many of them, and zeros and NaN among them."""
    options = need(form, queue) | {"queue": queue}
    dtype = np.dtype(dtype)
    wide = rng.integers(0, 256, N * dtype.itemsize, np.uint8).view(dtype)
    few = rng.integers(-20, 20, N).astype(dtype)
    if dtype.kind == "f":
        wide[np.isnan(wide)] = 3
        few[::50] = np.resize(specials(dtype), few[::50].size)
        few[1::3] *= -1
    for name in ORDERS:
        for keys in (ordered(name, wide, rng), ordered(name, few, rng)):
            for descending in (False, True):
                order = stable_order(keys, descending)
                found = ol.sort(keys, descending=descending, **options)
                assert found.tobytes() == keys[order].tobytes(), name
            found = ol.argsort(keys, descending=True, **options)
            np.testing.assert_array_equal(found, order, name)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("form", "dtype", "value_bytes", "shape"),
    [
        ("cpu", "int32", 1, (N,)),
        ("cpu", "uint8", 16, (700,)),
        ("scan", "int32", 8, (N,)),
        ("onesweep", "uint8", 16, (N,)),
        ("onesweep", "int32", 2, (200,)),
        ("merge", "float32", 8, (2, MERGED)),
        ("merge", "int8", 2, (2, MERGED)),
        ("samples", "int32", 8, (2, MERGED)),
        ("samples", "uint8", 16, (700,)),
    ],
)
def test_values_travel(form, dtype, value_bytes, shape, rng, queue):
    options = need(form, queue) | {"queue": queue}
    keys = rng.integers(0, 100, shape).astype(dtype)
    bytes_of_row = (*shape[:-1], shape[-1] * value_bytes)
    values = rng.integers(0, 256, bytes_of_row, np.uint8).view(f"V{value_bytes}")
    order = stable_order(keys)
    moved = ol.sort_by_key(keys, values, **options)
    np.testing.assert_array_equal(moved[0], np.take_along_axis(keys, order, -1))
    assert moved[1].tobytes() == np.take_along_axis(values, order, -1).tobytes()


@pytest.mark.few(2)
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
        found = sorted_by(plan, keys, queue, ("network", problem))
        order = np.stack([stable_order(row, descending) for row in keys])
        right = np.take_along_axis(keys, order, -1)
        np.testing.assert_array_equal(found.view(np.uint8), right.view(np.uint8), err_msg=str(n))


@pytest.mark.full
@pytest.mark.parametrize("form", ["scan", "onesweep", "merge"])
def test_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^30 or 2^31 keys need, in short rows."""
    need(form, queue)
    keys = skewed("zipf", rng, MERGED).reshape(1, -1)
    monkeypatch.setattr(radix_gpu, "WIDE", 1000)
    monkeypatch.setattr(merge_path, "index_type", lambda count: np.uint64)
    plan = planned(form, SortProblem(MERGED, keys.dtype), queue)
    params = plan.launches[-1].params
    assert params["INDEX_T"] == "ulong" if form == "merge" else plan.launches[0].params["WIDE"]
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, f"wide {form}"), np.sort(keys))


@pytest.mark.full
def test_a_launch_a_phase(rng, queue):
    """What runs where items do not see what others have written."""
    need("cpu", queue)
    device = session_of(queue).device
    apart = replace(device, capabilities=replace(device.capabilities, visible_writes=False))
    plan = planned("cpu", SortProblem(N, INT32), queue, apart)
    assert len(plan.launches) >= 5
    for name in ("uniform", "one-bucket", "sorted", "uniform"):  # counters must be zero again
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
    config = {**FORMS["impatient"][1], "WG_SIZE": 256, "ITEM_KEYS": 2, "DIGIT_BITS": 8}
    problem, device = SortProblem(3001, keys.dtype), session_of(queue).device
    radix = SORTS["radix-gpu"]
    plan = radix.plan(problem, radix.configure(problem, device, config), device)
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, "mute"), np.sort(keys))


# ------------------------------------------------------- most significant digits first


def _agreeing_keys(rng):
    """Return rows of int64, and what becomes of each: words of ``radix_gpu_top.mako``."""
    place, low = np.arange(MERGED), rng.integers(0, 1 << 20, MERGED)
    wide = rng.integers(-(2**63), 2**63 - 1, MERGED)

    def runs(length):
        tops = rng.integers(-(2**42), 2**42, MERGED // length + 1) << 20
        return np.repeat(tops, length)[:MERGED]

    def swapped(at):  # two keys of one long run
        keys, run = wide.copy(), (5 << 60) + np.arange(40)
        run[[at, at + 1]] = run[[at + 1, at]]
        keys[np.sort(rng.choice(MERGED, 40, replace=False))] = run
        return keys

    everything, mended, at_once, again = 0, 1, 2, 3
    rows = [
        (wide, mended), (np.sort(wide), mended), (np.repeat(wide, 40)[:MERGED], mended),
        (runs(2) + low, mended), (rng.permutation(runs(16)) + low, mended),
        (rng.permutation(runs(17)) + low, again), (runs(40) + place % 40, mended),
        (runs(40) - place % 40, again), (swapped(14), mended), (swapped(15), again),
        (swapped(16), again), (swapped(38), again), (wide * 0 + 7, everything),
        ((wide & 0xFFFFF) << 22, everything), (wide >> 56, at_once),
        ((place % 7 << 57) // 7 + low, at_once),
    ]  # fmt: skip
    return np.stack([keys for keys, _ in rows]), [word for _, word in rows]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("int64", {"indices": True}),
        ("int64", {"bits": (1, 64)}),
        ("float64", {"descending": True}),
        ("M8[s]", {"value_bytes": 8}),
    ],
)
def test_digits_that_tell_keys_apart(dtype, options, rng, queue, monkeypatch):
    """Runs of keys that agree in these are mended, up to 16; else all digits follow, row by row."""
    monkeypatch.setattr(radix_gpu, "TOP_KEYS", 1)
    keys, words = _agreeing_keys(rng)
    keys = keys.view(dtype)
    plan = planned("onesweep", SortProblem(MERGED, keys.dtype, len(keys), **options), queue)
    buffers = [replace(b, role="out") if b.name == "pass_flags" else b for b in plan.buffers]
    given = {"keys": keys}
    if "value_bytes" in options:
        given["values"] = np.broadcast_to(np.arange(MERGED), keys.shape).copy().view("V8")
    executable = session_of(queue).executable(
        ("top", dtype, *options), lambda: replace(plan, buffers=tuple(buffers))
    )
    found = execute(executable, given, queue).outputs
    compared = keys >> 1 if "bits" in options else keys
    order = stable_order(compared, options.get("descending", False))
    if "sorted" in found:
        right = np.take_along_axis(keys, order, -1)
        np.testing.assert_array_equal(found["sorted"].view(np.int64), right.view(np.int64))
    if "sorted_values" in found:
        np.testing.assert_array_equal(found["sorted_values"].view(np.int64), order)
    if "indices" in options:
        passes = plan.launches[0].params["TOP"].passes + plan.launches[0].params["DIGITS"]
        flags = found["pass_flags"]
        assert (flags[:-1].reshape(len(keys), -1)[:, passes] & 3).tolist() == words
        assert flags[-1] == 1


# -------------------------------------------------------------------- merging


def test_equal_keys_that_straddle_diagonals(queue):
    """Ties and crossings that begin and end at the borders of tiles, and beside them."""
    options, tile = need("merge", queue) | {"queue": queue}, 160
    place = np.arange(MERGED)
    borders = [m * tile // 2 + step for m in (1, 2, 3, 4, 8, 16) for step in (-1, 0, 1)]
    rows = [place < border for border in borders]  # the path goes along two sides of the square
    rows += [(place - border) % (2 * tile) < tile for border in borders]  # of each pair of runs
    rows += [place % (2 * tile) // max(border % tile, 1) for border in borders]
    keys = np.stack(rows).astype(np.int32)
    order = ol.argsort(keys, **options)
    np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.parametrize("rows", [1, 31, 1000])
def test_rows_that_share_groups(rows, rng, queue):
    """Several rows a group, of which the last may have fewer; none reaches into the next."""
    for n in (1, 3, 5, 7, 39):
        keys = rng.integers(0, 9, (rows, n)).astype(np.float32)
        order = ol.argsort(keys, **need("merge", queue), queue=queue)
        np.testing.assert_array_equal(order, stable_order(keys))


def test_in_place(rng, queue):
    """Rows of which a group writes some while others read theirs; floats twice."""
    options = need("merge", queue)
    for shape in ((300, 39), (SHORT,)):
        keys = rng.integers(-9, 9, shape).astype(np.float32)
        given = cl.array.to_device(queue, keys)
        assert ol.sort(given, out=given, **options) is given
        np.testing.assert_array_equal(given.get(), np.sort(keys))


def test_loops_that_are_unrolled(rng, queue):
    """What devices with inline PTX get, which any compiler takes."""
    device = session_of(queue).device
    unrolled = replace(device, capabilities=replace(device.capabilities, inline_ptx=True))
    problem = SortProblem(MERGED, np.dtype(np.float32))
    plan = planned("merge", problem, queue, unrolled)
    launch = plan.launches[0]
    assert "#pragma unroll" in template.render(launch.template, launch.params).text
    keys = rng.integers(-9, 9, (1, MERGED)).astype(np.float32)
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, "unrolled"), np.sort(keys))


@pytest.mark.few(1)
@pytest.mark.parametrize("bits", [1, 5])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_a_run_takes_three_digits_at_most(device, rng, bits, dtype):
    """It has local memory for the counts of three: more of them damaged the heap of a process."""
    if device.kind != "cpu":
        pytest.skip("the form for CPUs")
    keys = (rng.random(9000) * 2**31).astype(dtype)
    config = {"DIGIT_BITS": bits, "CAPACITY": 1 << 14}
    for _ in range(10):
        result = ol.sort(keys, algorithm="radix", config=config, device=device)
        np.testing.assert_array_equal(result, np.sort(keys))


def test_long_rows_of_which_each_has_a_thread(rng, queue):
    """Of float64 keys 33 bits would tell them apart, more than a word of digits has."""
    rows = 2 * session_of(queue).device.compute_units
    keys = rng.standard_normal((rows, 1 << 17))
    order = ol.argsort(keys, algorithm="radix", queue=queue)
    np.testing.assert_array_equal(order, stable_order(keys))

"""The radix sort: its three forms, skewed and adversarial keys, looking back, and its plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab import template
from opencl_lab.device import Capabilities, Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.sort import groups
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.plan import check_plan
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

RADIX = SORT.algorithm("radix")
TILES = {"WG_SIZE": 64, "ITEM_KEYS": 4, "DIGIT_BITS": 6, "CAPACITY": 1, "STREAM": False}
FORMS = {
    "units": {"FORM": "units"},
    "streamed": {"FORM": "units", "DIGIT_BITS": 8, "STREAM": True},
    "scan": {"FORM": "scan", **TILES},
    "onesweep": {"FORM": "onesweep", **TILES},
    "impatient": {"FORM": "onesweep", **TILES, "PATIENCE": 0},
}
N = 20_011  # cut by units, many tiles of groups; no multiple of anything
GPU = Device(
    "made", "gpu", compute_units=8, global_memory=1 << 40, max_allocation=1 << 40,
    max_work_group=256, max_work_items=(256, 256, 256),
    capabilities=Capabilities(max_work_group=256, local_memory=32 << 10),
)  # fmt: skip


def stable_order(keys, descending=False):
    if not descending:
        return np.argsort(keys, axis=-1, kind="stable")
    flipped = np.argsort(np.flip(keys, -1), axis=-1, kind="stable")
    return keys.shape[-1] - 1 - np.flip(flipped, -1)


def need(form, queue):
    if FORMS[form]["FORM"] == "units" and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")


def skewed(name, rng, n=N):
    """Return int32 keys that are hard for one form or another."""
    wide = rng.integers(-(2**31), 2**31, n).astype(np.int32)
    if name == "one-bucket":  # but for few, which span the range of all
        return np.where(rng.random(n) < 0.99, wide & 0xFFF, wide)
    if name == "alternating":
        return np.where(np.arange(n) % 2, -(2**31), 2**31 - 1).astype(np.int32)
    if name == "one-digit":
        return (rng.integers(0, 64, n) << 12).astype(np.int32)
    if name == "high-bit":
        return (rng.integers(0, 2, n) << 31).astype(np.uint32).view(np.int32)
    if name == "zipf":
        return np.minimum(rng.zipf(1.3, n), 2**31 - 1).astype(np.int32)
    if name == "zipf-down":
        return np.minimum(rng.zipf(1.3, n), 2**31 - 1).astype(np.int32) * np.int32(-1)
    if name == "half-equal":  # and few that a sample does not see, at both ends
        keys = np.minimum(rng.zipf(2.2, n), 10**6).astype(np.int32) + np.int32(100)
        keys[[1, n // 2 + 1, n - 2]] = -5, 2**31 - 1, 99
        return keys
    if name == "heavy-bucket":  # of two keys that are close, in a range whose low end is full
        keys = np.where(rng.random(n) < 0.7, rng.integers(0, 4, n), wide & 0x3FFFFFFF)
        return np.where(rng.random(n) < 0.2, 5000 + (wide & 1), keys).astype(np.int32)
    if name == "few-bits-differ":  # codes that insertion would have to move far
        return (((wide & 7) << 28) | (np.arange(n, 0, -1) % 4096)).astype(np.int32)
    if name == "hidden":  # from a sample, which takes every (n // 1024)-th key, but for some digits
        return np.where(np.arange(n) % max(n // 1024, 1), wide, 1 << 20).astype(np.int32)
    if name == "tiles-in-turns":  # a tile of groups has one digit, and its neighbours none of it
        return (np.arange(n) // 256 % 3 << 18).astype(np.int32)
    if name == "organ-pipe":
        return np.minimum(np.arange(n), np.arange(n)[::-1]).astype(np.int32)
    if name == "sawtooth":  # teeth as long as no tile, part or chunk
        return (np.arange(n) % 1009 * -7).astype(np.int32)
    if name == "equal":
        return np.full(n, 7, np.int32)
    return np.sort(wide) if name == "sorted" else wide


def specials(dtype):
    """Return zeros and NaN of both signs, infinities, and NaN of the least and largest payloads."""
    few = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    code = few.view(f"u{few.itemsize}")
    ends = np.array([code[2] + 1, code[3] + 1, code[3] - 1, ~code[4]], code.dtype)
    return np.concatenate([few, ends.view(dtype)])


SKEWS = (
    "uniform", "one-bucket", "alternating", "one-digit", "high-bit", "zipf", "few-bits-differ",
    "equal", "sorted", "zipf-down", "half-equal", "heavy-bucket", "hidden", "tiles-in-turns",
    "organ-pipe", "sawtooth",
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "descending"), [*((form, False) for form in FORMS), ("units", True)]
)
def test_skewed_keys(form, descending, rng, queue):
    """Stably, by which position each key had; all skews by one program, and twice the same."""
    need(form, queue)
    options = {"algorithm": "radix", "config": FORMS[form], "queue": queue}
    for name in SKEWS:
        keys = skewed(name, rng)
        order = ol.argsort(keys, descending=descending, **options)
        np.testing.assert_array_equal(order, stable_order(keys, descending), err_msg=name)
    again = ol.argsort(keys, descending=descending, **options)
    assert again.tobytes() == order.tobytes()


def test_large_buckets_of_one_key_and_of_two(rng, queue):
    """Near either end of the range, at each distance at which buckets become wider."""
    need("units", queue)
    options = {"algorithm": "radix", "config": FORMS["units"], "queue": queue}
    share = rng.random(N)
    for exponent in range(17):
        two = 2**exponent - 1 + rng.integers(0, 2, N)
        keys = np.where(share < 0.6, rng.integers(0, 4, N), rng.integers(0, 2**30, N))
        keys = np.where(share > 0.7, two, keys).astype(np.int32)
        for given in (keys, -keys):
            order = ol.argsort(given, **options)
            np.testing.assert_array_equal(order, stable_order(given), err_msg=str(exponent))


@pytest.mark.parametrize("form", ["units", "streamed"])
def test_many_small_chunks(form, rng, queue, monkeypatch):
    """Whose elements end and begin in the same lines of memory, in all buckets."""
    need(form, queue)
    monkeypatch.setattr("opencl_lab.operations.sort.units.KEYS_OF_CHUNK", 256)
    monkeypatch.setattr("opencl_lab.operations.sort.units.CHUNKS_OF_UNIT", 32)
    plan = planned(form, SortProblem(N, np.dtype(np.int32), indices=True), queue)
    executable = session_of(queue).executable(("chunks", form), lambda: plan)
    for buckets in (5, 16, 32):
        keys = (rng.integers(0, buckets, (1, N)) << 26).astype(np.int32) + np.int32(1)
        keys += rng.integers(0, 3, keys.shape, np.int32)
        for _ in range(5):
            order = execute(executable, {"keys": keys}, queue).outputs["sorted_values"]
            np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.parametrize("form", ["units", "onesweep"])
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
        ("int8", "units", N, True),
        ("float32", "units", N, True),
        ("float64", "units", N, False),
        ("float16", "onesweep", N, False),
        ("float32", "onesweep", N, False),
        ("uint64", "scan", N, True),
        ("float64", "onesweep", 200, True),
    ],
)
def test_every_kind_of_key(dtype, form, n, descending, rng, queue):
    """Bit for bit: NaN of all payloads last, and zeros of both signs in their order."""
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
        ("units", 1, N),
        ("units", 16, 700),
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
    need("units", queue)
    device = replace(session_of(queue).device, native_vector_bytes=64)
    dtype = np.dtype(dtype)
    longest = 0
    for n in (25, 31, 127, 128, 129, 256, 257, 511, 513, 1100, 3000, 5001, 8192):
        problem = SortProblem(n, dtype, 3, descending=descending)
        plan = planned("units", problem, queue, device)
        network = plan.launches[0].params["NETWORK"]
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
        assert n / 2 ** found["BUCKET_BITS"] <= found["SHARE"] <= found["NETWORK"]
    assert params(10**9)["SHARE"] < 10**9 >> params(10**9)["BUCKET_BITS"]
    assert params(500) == params(5000)  # one program serves all short rows
    assert not params(500, value_bytes=4)["NETWORK"] and not params(500, indices=True)["NETWORK"]
    assert not params(500, "int16")["NETWORK"] and not params(5000, "int64")["NETWORK"]
    assert not params(500, device=replace(cpu, native_vector_bytes=32))["NETWORK"]


@pytest.mark.parametrize("form", ["scan", "onesweep"])
def test_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^30 keys need, in short rows."""
    keys = skewed("zipf", rng).reshape(1, -1)
    monkeypatch.setattr(groups, "WIDE", 1000)
    plan = planned(form, SortProblem(N, keys.dtype), queue)
    assert plan.launches[0].params["WIDE"]
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, f"wide {form}"), np.sort(keys))


def test_a_launch_a_phase(rng, queue):
    """What runs where items do not see what others have written."""
    need("units", queue)
    device = session_of(queue).device
    apart = replace(device, capabilities=replace(device.capabilities, visible_writes=False))
    plan = planned("units", SortProblem(N, np.dtype(np.int32)), queue, apart)
    assert len(plan.launches) > 4
    for name in ("uniform", "one-bucket", "uniform"):  # counters must be zero again
        keys = skewed(name, rng).reshape(1, -1)
        np.testing.assert_array_equal(sorted_by(plan, keys, queue, "apart"), np.sort(keys))


@pytest.mark.parametrize(
    ("found", "planted", "right"),
    [
        ("sum += word_0 & NUMBER;", "sum += word_0 & (NUMBER - 1);", False),  # never more
        ("PUT((p), OWN | (status_t)(n))", "", True),
    ],
    ids=["a miscount is seen", "tiles that announce nothing are counted"],
)
def test_planted_faults_in_the_look_back(found, planted, right, rng, queue, monkeypatch):
    """The first makes a wrong result, and so do the checks above; the second must not."""

    def faulty(name, params):
        source = template.render(name, params)
        text = source.text.replace(found, planted)
        if right:  # nor is anything announced about all tiles up to one
            text = text.replace("PUT((p), ALL | (status_t)(n))", "")
        assert text != source.text
        return replace(source, text=text)

    monkeypatch.setattr("opencl_lab.runtime.programs.render", faulty)
    # One pass, so that wrong places stay inside the arrays.
    keys = rng.integers(0, 256, (1, 3001), np.uint8)
    form = "impatient" if right else "onesweep"
    config = {**FORMS[form], "WG_SIZE": 256, "ITEM_KEYS": 2, "DIGIT_BITS": 8}
    problem, device = SortProblem(3001, keys.dtype), session_of(queue).device
    plan = RADIX.plan(problem, RADIX.configure(problem, device, config), device)
    result = sorted_by(plan, keys, queue, found)
    assert np.array_equal(result, np.sort(keys)) == right


SCATTER = {
    "the rest of a line": ("k < places[b]; ++k)", "k + 1 < places[b]; ++k)"),
    "chunks in turn": ("(uint k = 0; k < chunks; ++k) {", "(uint k = chunks; k-- > 0;) {"),
}


@pytest.mark.parametrize("fault", SCATTER)
def test_planted_faults_in_the_scatter(fault, rng, queue, monkeypatch):
    """Each makes wrong keys, or equal ones change places, and so the checks above see it."""
    need("streamed", queue)
    found, planted = SCATTER[fault]
    seen = []

    def faulty(name, params):
        source = template.render(name, params)
        seen.append(found in source.text)
        return replace(source, text=source.text.replace(found, planted))

    monkeypatch.setattr("opencl_lab.runtime.programs.render", faulty)
    monkeypatch.setattr("opencl_lab.operations.sort.units.KEYS_OF_CHUNK", 4096)
    keys = (rng.integers(0, 2**12, (1, N)) << 18).astype(np.int32)
    plan = planned("streamed", SortProblem(N, keys.dtype, indices=True), queue)
    executable = session_of(queue).executable(("test", fault), lambda: plan)
    order = execute(executable, {"keys": keys}, queue).outputs["sorted_values"]
    assert seen == [True]
    assert not np.array_equal(order, stable_order(keys))


# ---------------------------------------------------------------------- plans


def kernels(problem, device, **values):
    config = RADIX.configure(problem, device, values)
    plan = RADIX.plan(problem, config, device)
    check_plan(plan, device)
    return [launch.kernel for launch in plan.launches]


@pytest.mark.parametrize("n", [1, 33, 1000, 10_000, 10**6, 2**31 + 5])
@pytest.mark.parametrize("options", [{}, {"indices": True}, {"value_bytes": 16}])
@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_built_in_configurations_fit(dtype, options, n):
    for local, group, progress in ((32, 256, False), (48, 1024, True), (16, 64, True)):
        limits = Capabilities(
            max_work_group=group,
            local_memory=local << 10,
            forward_progress=progress,
            inline_ptx=local == 48,
        )
        items = (group,) * 3
        device = replace(GPU, max_work_group=group, max_work_items=items, capabilities=limits)
        problem = SortProblem(n, np.dtype(dtype), **options)
        names = kernels(problem, device)
        if n <= 33:
            assert names == ["sort_rows"]
        elif n >= 10**6:
            alone = "count_tiles" in names
            wide_words = n >= groups.WIDE and not limits.inline_ptx
            assert alone == (not progress or wide_words)
        plan = RADIX.plan(problem, RADIX.default_config(problem, device), device)
        assert plan.launches[0].params.get("WIDE", False) == (n >= groups.WIDE)


@pytest.mark.parametrize(
    ("n", "rows", "dtype", "name"),
    [
        (1024, 1, "int32", "merge-path"),
        (1025, 1, "int32", "radix"),
        (128, 9, "int8", "merge-path"),
        (129, 9, "int8", "radix"),
        (5000, 20, "int32", "radix"),  # a row a group
        (20_000, 1, "int32", "odd-even-merge"),
        (1 << 17, 2, "float32", "odd-even-merge"),
        (1 << 17, 3, "float32", "radix"),
        ((1 << 17) + 1, 1, "int32", "radix"),
        (50_000, 1, "int8", "radix"),
        (2000, 10**6, "int32", "radix"),
        (3000, 300, "int64", "merge-path"),
        (2048, 10**6, "int64", "merge-path"),
        (2049, 10**6, "int64", "radix"),
        (1 << 21, 1, "float64", "merge-path"),
        ((1 << 21) + 1, 1, "int64", "radix"),
    ],
)
def test_what_auto_takes(n, rows, dtype, name):
    problem = SortProblem(n, np.dtype(dtype), rows)
    able = replace(GPU.capabilities, barriers_in_loops=True, fp64=True)
    gpu = replace(GPU, capabilities=able)
    assert SORT.choose(problem, gpu).name == name
    assert SORT.choose(problem, gpu, "radix").name == "radix"
    if n > 1024:
        assert SORT.choose(problem, replace(gpu, kind="cpu")).name == "radix"


@pytest.mark.parametrize(
    ("n", "dtype", "name"),
    [
        (2, "int32", "radix"),
        (3, "int32", "merge-path"),
        (96, "float64", "merge-path"),
        (97, "float64", "radix"),
        (112, "int32", "merge-path"),
        (113, "int64", "radix"),
        (24, "bool", "merge-path"),
        (25, "float16", "radix"),
    ],
)
def test_what_auto_takes_for_short_rows(n, dtype, name):
    fp64 = replace(GPU.capabilities, fp64=True)
    cpu = replace(GPU, kind="cpu", capabilities=fp64)
    problem = SortProblem(n, np.dtype(dtype), 1000)
    assert SORT.choose(problem, cpu).name == name
    few = SortProblem(n, np.dtype(dtype))
    least = "radix" if dtype == "float16" else "odd-even-merge"
    assert SORT.choose(few, cpu).name == least
    assert SORT.choose(replace(few, rows=129 // n + 1), cpu).name == name


def test_what_auto_takes_where_doubles_are_not_compared():
    problem = SortProblem(100, np.dtype(np.float64))
    cpu = replace(GPU, kind="cpu")
    assert SORT.algorithm("odd-even-merge").supports(problem, cpu)
    assert SORT.choose(problem, cpu).name == "radix"


def test_rows_share_their_launches():
    for n in (1000, 100_000):
        counts = {
            len(kernels(SortProblem(n, np.dtype(np.int32), rows), GPU)) for rows in (1, 5, 300)
        }
        assert len(counts) == 1
    cpu = replace(GPU, kind="cpu", capabilities=replace(GPU.capabilities, visible_writes=True))
    for n, rows in ((10, 10**6), (1000, 1000), (10**6, 3), (10**5, 64)):
        problem = SortProblem(n, np.dtype(np.float32), rows)
        assert kernels(problem, cpu) == ["radix_units"]


def test_rows_in_the_caches_take_one_scratch_buffer():
    cpu = replace(GPU, kind="cpu", capabilities=replace(GPU.capabilities, visible_writes=True))
    for n, value_bytes, names in (
        (1000, 0, {"spares"}),
        (1000, 4, {"spares"}),
        (40_000, 0, {"spares", "first"}),
        (40_000, 4, {"spares", "first", "second"}),
    ):
        problem = SortProblem(n, np.dtype(np.int32), 64, value_bytes=value_bytes)
        plan = RADIX.plan(problem, RADIX.default_config(problem, cpu), cpu)
        assert {spec.name for spec in plan.with_role("scratch")} == names


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"FORM": "units"}, "WG_SIZE is 1 for units"),
        ({"WG_SIZE": 48}, "multiple of 32"),
        ({"WG_SIZE": 128}, "2 to the power of DIGIT_BITS"),
        ({"DIGIT_BITS": 9}, "at most 8 for groups"),
        ({"ITEM_KEYS": 1}, "ITEM_KEYS must be at least 2"),
        ({"PATIENCE": 5}, "for onesweep alone"),
        ({"STREAM": True}, "for units alone"),
        ({"ITEM_KEYS": 40}, "of local memory"),
    ],
)
def test_configurations_that_cannot_run(config, message):
    with pytest.raises(InvalidConfig, match=message):
        kernels(SortProblem(10**6, np.dtype(np.int32)), GPU, **config)


def numbers(keys):
    """Return the number of each key among all values of its type in order."""
    unsigned = keys.view(f"u{keys.itemsize}").astype(object)
    middle = 1 << (8 * keys.itemsize - 1)
    if keys.dtype.kind == "u":
        return unsigned
    if keys.dtype.kind == "i":
        return (unsigned + middle) % (2 * middle)
    fraction = 1 << np.finfo(keys.dtype).nmant  # those of NaN are left out below -infinity
    return np.where(unsigned >= middle, 2 * middle - unsigned, unsigned + middle) - fraction


@pytest.mark.parametrize(
    ("form", "dtype", "bits", "descending"),
    [
        ("units", "int32", (5, 16), False),
        ("units", "float32", (20, 32), True),
        ("onesweep", "uint64", (31, 33), False),
        ("scan", "float32", (20, 32), True),
    ],
)
def test_some_bits_of_the_keys(form, dtype, bits, descending, rng, queue):
    need(form, queue)
    low, high = bits
    if dtype == "float32":
        keys = rng.standard_normal(N, np.float32)
        keys[::1000] = 0
    else:
        limits = np.iinfo(dtype)
        keys = rng.integers(limits.min, limits.max, N, dtype, endpoint=True)
    counting = ((numbers(keys) >> low) % (1 << (high - low))).astype(np.int64)
    order = stable_order(counting, descending)
    options = {"descending": descending, "bits": bits, "config": FORMS[form], "queue": queue}
    sort = {"algorithm": "radix", **options}
    assert ol.sort(keys, **sort).tobytes() == keys[order].tobytes()
    short = ol.argsort(keys[:20000].reshape(100, 200), **sort)
    np.testing.assert_array_equal(
        short, stable_order(counting[:20000].reshape(100, 200), descending)
    )


def test_bits_are_for_radix_and_in_the_key(rng):
    keys = rng.integers(-99, 99, 100).astype(np.int8)
    order = np.argsort((keys.view(np.uint8) ^ 128) & 7, kind="stable")
    for bits in ((0, 3), [0, 3], (np.int64(0), np.uint8(3))):
        np.testing.assert_array_equal(ol.argsort(keys, bits=bits), order)
    for bits, message in (
        ((3, 3), "0 <= low < high <= 8, not \\(3, 3\\)"),
        ((0, 9), "not \\(0, 9\\)"),
        ((-1, 3), "not \\(-1, 3\\)"),
        (3, "a pair of integers \\(low, high\\), not 3"),
        ((1.5, 2), "a pair of integers"),
    ):
        with pytest.raises(ol.InvalidProblem, match=message):
            ol.sort(keys, bits=bits)
    for name in ("merge-path", "odd-even-merge"):
        with pytest.raises(ol.InvalidConfig, match="only radix sorts by some bits"):
            ol.sort(keys, bits=(0, 3), algorithm=name)


def test_fewer_bits_take_fewer_launches():
    def passes(bits):
        problem = SortProblem(10**6, np.dtype(np.int64), bits=bits)
        return kernels(problem, GPU).count("spread")

    assert [passes(bits) for bits in (None, (0, 64), (8, 24), (3, 12), (63, 64))] == [8, 8, 2, 2, 1]

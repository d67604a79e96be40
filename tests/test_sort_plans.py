"""Plans of the radix sort and of merging, what `auto` takes, and sorting by some bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from radix_checks import GPU, N, need
from sort_checks import stable_order

import opencl_lab as ol
from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort import radix_gpu
from opencl_lab.ops.sort.problem import SortProblem

INT32 = np.dtype(np.int32)
RADIX = SORT.algorithm("radix")
CPU = replace(
    GPU, kind="cpu", capabilities=replace(GPU.capabilities, visible_writes=True, fp64=True)
)

TALL = Capabilities(max_work_group=512, local_memory=48 << 10, inline_ptx=True)


def plan_of(name, problem, device, **values):
    """Return a plan that was checked against the limits of the device."""
    algorithm = SORT.algorithm(name)
    plan = algorithm.plan(problem, algorithm.configure(problem, device, values), device)
    check_plan(plan, device)
    return plan


def kernels(problem, device, **values):
    return [launch.kernel for launch in plan_of("radix", problem, device, **values).launches]


@pytest.mark.parametrize(("n", "built"), [(1000, False), (100_000, True)])
def test_only_rows_of_several_tiles_build_what_merges_them(n, built):
    able = replace(GPU.capabilities, barriers_in_loops=True)
    first, *_ = plan_of(
        "merge-path", SortProblem(n, INT32), replace(GPU, capabilities=able)
    ).launches
    assert ("merge_tiles(" in render(first.template, first.params).text) == built


@pytest.mark.parametrize("n", [1, 33, 10_000, 10**6, 2**31 + 5])
@pytest.mark.parametrize("options", [{}, {"indices": True}, {"value_bytes": 16}])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
def test_built_in_configurations_fit(dtype, options, n):
    problem = SortProblem(n, np.dtype(dtype), **options)
    for local, group, progress in (
        (32, 256, False), (48, 1024, True), (16, 64, True), (2, 64, True),
    ):  # fmt: skip
        limits = Capabilities(
            max_work_group=group,
            local_memory=local << 10,
            forward_progress=progress,
            inline_ptx=local == 48,
        )
        items = (group,) * 3
        device = replace(GPU, max_work_group=group, max_work_items=items, capabilities=limits)
        plan = plan_of("merge-path", problem, device)
        assert all(launch.local_memory <= 48 << 10 for launch in plan.launches)
        assert plan.launches[0].params["INDEX_T"] == ("ulong" if n > 2**31 else "uint")
        assert n > 33 or [launch.kernel for launch in plan.launches] == ["sort_tiles"]
        if local == 2:
            continue
        if SORT.algorithm("sample-sort").supports(problem, device) is None:
            assert n <= 10_000
            plan_of("sample-sort", problem, device)
        plan = plan_of("radix", problem, device)
        names = [launch.kernel for launch in plan.launches]
        assert n > 33 or names == ["sort_rows"]
        if n >= 10**6:
            wide_words = n >= radix_gpu.WIDE and not limits.inline_ptx
            assert ("count_tiles" in names) == (not progress or wide_words)
        assert plan.launches[0].params.get("WIDE", False) == (n >= radix_gpu.WIDE)


def test_many_keys_of_eight_bytes():
    """A first set of passes, one over all digits, and tiles beyond what a driver says there is."""
    limits = Capabilities(
        max_work_group=1024,
        local_memory=48 << 10,
        declared_memory=226 << 10,
        inline_ptx=True,
        forward_progress=True,
    )
    device = replace(GPU, max_work_group=1024, max_work_items=(1024,) * 3, capabilities=limits)
    digits = ["histograms", *["scatter"] * 8]
    for n, top in ((radix_gpu.TOP_KEYS - 1, 0), (1 << 22, 5), (10**7, 5), (1 << 29, 6)):
        plan = plan_of("radix", SortProblem(n, np.dtype(np.int64)), device)
        names = [launch.kernel for launch in plan.launches]
        again = ["histograms", *["scatter"] * top, "mend", *["scatter_again"] * 8]
        assert names == (again if top else digits)
    assert all(launch.local_memory > 48 << 10 for launch in plan.launches)
    assert kernels(SortProblem(n, INT32), device) == digits[:5]
    assert kernels(SortProblem(n, np.dtype(np.int64), bits=(0, 40)), device) == digits[:6]


def test_two_launches_by_samples():
    """No bucket has more keys than its group holds, and each tile an item that looks for it."""
    for group, n in ((512, 1 << 18), (512, 100_003), (512, 4097), (256, 30_000), (64, 2_000)):
        limits = Capabilities(max_work_group=group, local_memory=48 << 10, inline_ptx=True)
        device = replace(GPU, max_work_items=(group,) * 3, capabilities=limits)
        for problem in (SortProblem(n, INT32), SortProblem(n, INT32, 3, indices=True)):
            launches = plan_of("sample-sort", problem, device).launches
            assert [launch.kernel for launch in launches] == ["sort_tiles", "sort_buckets"]
            sizes = launches[1].arguments
            tile, spacing, taken = (
                int(sizes[name]) for name in ("tile", "spacing", "bucket_samples")
            )
            params, tiles = launches[1].params, -(-n // tile)
            room = params["WG_SIZE"] * params["ITEM_KEYS"]
            assert max(tile, (taken + tiles) * spacing) <= room and tiles <= params["WG_SIZE"]
            samples = sum(-(-min(tile, n - at) // spacing) for at in range(0, n, tile))
            assert samples <= params["WG_SIZE"] * params["SAMPLE_ITEMS"]
            groups = launches[1].global_size[0] // params["WG_SIZE"]
            assert groups == -(-samples // taken) * problem.rows
    tall = replace(GPU, capabilities=TALL)
    assert SORT.choose(SortProblem(1 << 18, INT32), tall).name == "sample-sort"
    assert SORT.choose(SortProblem((1 << 18) + 1, INT32), tall).name == "radix"
    with pytest.raises(InvalidConfig, match="rows that a few groups hold"):
        SORT.choose(SortProblem(1 << 20, INT32), device, "sample-sort")
    with pytest.raises(InvalidConfig, match="a bucket might not fit a group"):
        plan_of("sample-sort", SortProblem(n, INT32), device, SPACING=500)


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
        (2, "int32", "quicksort"),
        (64, "float64", "quicksort"),
        (65, "float64", "radix"),
        (128, "int32", "quicksort"),
        (129, "int32", "radix"),
        (24, "bool", "quicksort"),
        (25, "float16", "quicksort"),
    ],
)
def test_what_auto_takes_for_short_rows(n, dtype, name):
    fp64 = replace(GPU.capabilities, fp64=True)
    cpu = replace(GPU, kind="cpu", capabilities=fp64)
    problem = SortProblem(n, np.dtype(dtype), 1000)
    assert SORT.choose(problem, cpu).name == name
    few = SortProblem(n, np.dtype(dtype))
    least = "radix" if dtype == "float16" or n > 128 else "odd-even-merge"
    assert SORT.choose(few, cpu).name == least
    assert SORT.choose(replace(few, rows=129 // n + 1), cpu).name == name


@pytest.mark.parametrize(
    ("algorithm", "where", "config", "message"),
    [
        ("radix", CPU, {"DIGIT_BITS": 12}, "DIGIT_BITS must be 2 to 11"),
        ("radix", CPU, {"DIGIT_BITS": 1}, "DIGIT_BITS must be 2 to 11"),
        ("radix", CPU, {"CAPACITY": 0}, "CAPACITY must be positive"),
        ("radix", CPU, {"WG_SIZE": 64}, "WG_SIZE"),
        ("radix", GPU, {"FORM": "cpu"}, "FORM must be one of .scan., .onesweep., not .cpu."),
        ("radix", GPU, {"STREAM": True}, "STREAM"),
        ("radix", GPU, {"WG_SIZE": 48}, "multiple of 32"),
        ("radix", GPU, {"WG_SIZE": 128}, "2 to the power of DIGIT_BITS"),
        ("radix", GPU, {"DIGIT_BITS": 9}, "DIGIT_BITS must be 1 to 8"),
        ("radix", GPU, {"ITEM_KEYS": 1}, "ITEM_KEYS must be at least 2"),
        ("radix", GPU, {"MAX_POLLS": 5}, "unless FORM is onesweep"),
        ("radix", GPU, {"ITEM_KEYS": 40}, "of local memory"),
        ("merge-path", GPU, {"TILE": 64}, "TILE"),
        ("merge-path", GPU, {"WG_SIZE": 48}, "power of two"),
        ("merge-path", GPU, {"WG_SIZE": 2}, "WG_SIZE must be at least 4"),
        ("merge-path", GPU, {"ITEM_KEYS": 1}, "ITEM_KEYS must be at least 2"),
        ("merge-path", GPU, {"WG_SIZE": 256, "ITEM_KEYS": 300}, "ITEM_KEYS must not be above"),
        ("merge-path", GPU, {"WG_SIZE": 256, "ITEM_KEYS": 41}, "of local memory"),
    ],
)
def test_configurations_that_cannot_run(algorithm, where, config, message):
    with pytest.raises(InvalidConfig, match=message):
        plan_of(algorithm, SortProblem(10**6, INT32), where, **config)


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


@pytest.mark.full
@pytest.mark.parametrize(
    ("form", "dtype", "bits", "descending"),
    [
        ("cpu", "int32", (5, 16), False),
        ("cpu", "float32", (20, 32), True),
        ("onesweep", "uint64", (31, 33), False),
    ],
)
@pytest.mark.usefixtures("sorts_by_name")
def test_some_bits_of_the_keys(form, dtype, bits, descending, rng, queue):
    low, high = bits
    if dtype == "float32":
        keys = rng.standard_normal(N, np.float32)
        keys[::1000] = 0
    else:
        limits = np.iinfo(dtype)
        keys = rng.integers(limits.min, limits.max, N, dtype, endpoint=True)
    counting = ((numbers(keys) >> low) % (1 << (high - low))).astype(np.int64)
    order = stable_order(counting, descending)
    sort = {"descending": descending, "bits": bits, **need(form, queue), "queue": queue}
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

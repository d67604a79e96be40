"""Checks of sorts of distributed arrays; see `ranks`."""

from functools import partial

import numpy as np
import pytest
from sort_checks import stable_order

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.distributed import DistArray, block_cyclic, device_of, slab, sort_together
from opencl_lab.distributed.cuts import cuts_by_counting, cuts_by_samples
from opencl_lab.distributed.node import node_of
from opencl_lab.distributed.sort import argsort, sort, sort_by_key, topk, unique

DTYPES = ("f8", "?", "f2", "M8[s]")  # other checks have i4 and f4, and the cuts all of them


def keys_of(rng, dtype, n, kind="few"):
    """Return keys with many equal ones; floating ones have NaN of several kinds, and both zeros."""
    if kind == "zipf":
        x = np.minimum(rng.zipf(1.3, n), 10**6).astype(float)
    elif kind == "equal":
        x = np.full(n, 7.0)
    else:
        x = rng.integers(-90, 90, n) / 4.0
    x = np.sort(x)[:: -1 if kind == "reversed" else 1] if kind in ("sorted", "reversed") else x
    with np.errstate(invalid="ignore"):
        keys = (x > 0 if dtype == "?" else x).astype(dtype)
    if keys.dtype.kind == "M":
        keys[rng.random(n) < 0.1] = "NaT"
    if keys.dtype.kind == "f" and kind == "few":
        where = rng.random(n)
        keys[where < 0.2] = 0.0
        keys[where < 0.1] = -0.0
        keys[where > 0.95] = np.nan
        keys[where > 0.98] = -np.nan
        keys[where > 0.99] = np.inf
    return keys


def alike(found, expected):
    """Compare bytes, so that -0.0 differs from 0.0 and NaN from other NaN."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def even(result, n, comm):
    """Check that the parts are those of `numpy.array_split`."""
    assert result.distribution == slab(0) and result.shape == (n,)
    length = len(np.array_split(np.empty(n), comm.size)[comm.rank])
    assert result.local.shape == (length,)
    return result.gather()


def parts_of(rng, n, size):
    """Return uneven lengths, some of them zero."""
    cuts = np.sort(rng.integers(0, n + 1, size - 1))
    if size > 2:
        cuts[0] = cuts[1]
    return np.diff([0, *cuts, n])


def here(comm, x, lengths):
    """Return this rank's part."""
    return np.split(x, np.cumsum(lengths)[:-1])[comm.rank]


def every_function(comm, x, given, descending):
    """Compare all functions with NumPy, the stable order included."""
    n, order = len(x), stable_order(x, descending)
    alike(even(sort(given, descending=descending), n, comm), x[order])
    alike(even(argsort(given, descending=descending), n, comm), order)
    values = np.arange(n)[::-1]
    sent = given.like(values[given.local_slice()])
    keys, moved = sort_by_key(given, sent, descending=descending)
    alike(even(keys, n, comm), x[order])
    alike(even(moved, n, comm), values[order])
    order = stable_order(x, descending, nan_first=True)
    for k in {0, min(n, 100)}:
        found, places = topk(given, k, largest=descending)
        alike(found, x[order[:k]])
        alike(places, order[:k])
    every_value(comm, x, given)


def every_value(comm, x, given):
    _, first, counts = np.unique(x, return_index=True, return_counts=True)
    for found in (unique(given), unique(given, True)):
        values, *numbers = found if isinstance(found, tuple) else (found,)
        alike(even(values, len(first), comm), x[first])
        for one in numbers:
            alike(even(one, len(first), comm), counts)


def check_dtypes(comm, rng):
    """Sorts of each dtype, and all functions of the last one."""
    for i, dtype in enumerate(DTYPES):
        x = keys_of(rng, dtype, 1000)
        given = DistArray.from_global(x, slab(0, parts_of(rng, 1000, comm.size)))
        descending = i % 2 == 1
        alike(even(sort(given, descending=descending), 1000, comm), x[stable_order(x, descending)])
        if not descending:
            every_value(comm, x, given)
    every_function(comm, x, given, descending)


def check_fewer_keys_than_ranks(comm, rng):
    for n in {0, 1, comm.size - 1, comm.size}:
        x = keys_of(rng, "f4", n)
        given = DistArray.from_global(x, slab(0, parts_of(rng, n, comm.size)))
        every_function(comm, x, given, descending=True)
        alike(topk(given, n)[1], stable_order(x, True, nan_first=True))


def check_parts_are_even_whatever_the_keys(comm, rng):
    n = 100_003
    for dtype in ("i4", "f8"):
        for kind in ("zipf", "equal", "sorted", "reversed", "few"):
            x = keys_of(rng, dtype, n, kind)
            given = DistArray.from_global(x)
            alike(even(sort(given), n, comm), x[stable_order(x)])
            if dtype == "i4":
                alike(even(argsort(given, descending=True), n, comm), stable_order(x, True))


def check_large_arrays(comm, rng):
    n = 100_003
    x = keys_of(rng, "f4", n)
    given = DistArray.from_global(x, slab(0, parts_of(rng, n, comm.size)))
    alike(topk(given, 100)[1], stable_order(x, True, nan_first=True)[:100])
    x = rng.integers(0, n, n).astype(np.float32)
    every_value(comm, x, DistArray.from_global(x))


def check_one_rank_has_all(comm, rng):
    x = keys_of(rng, "f4", 1001)
    for rank in {0, comm.size - 1}:
        lengths = [1001 * (other == rank) for other in range(comm.size)]
        every_function(comm, x, DistArray.from_local(here(comm, x, lengths)), descending=False)


def check_a_value_on_many_ranks_is_counted_once(comm, rng):
    """Values that each rank has, fewer than ranks, and runs that begin and end at any rank."""
    for n, most in ((comm.size, 1), (4 * comm.size, 2), (9 * comm.size, 3), (50, 40)):
        for _ in range(3):
            x = rng.integers(0, most, n)
            every_value(comm, x, DistArray.from_global(x, slab(0, parts_of(rng, n, comm.size))))


def all_bits(rng, dtype, n):
    """Return keys of all magnitudes, with the greatest and least ones, and infinities and NaN."""
    x = rng.integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    if x.dtype.kind in "iu":
        x[::9], x[1::9] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return x


def check_cuts_are_exact(comm, rng):
    """Each cut takes the keys of the stable order, counted by brute force."""
    cases = [keys_of(rng, "f4", 500, kind) for kind in ("few", "equal", "zipf")]
    dtypes = ("i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8")
    cases += [all_bits(rng, dtype, 500) for dtype in dtypes] + [keys_of(rng, "?", 500)]
    for x in cases:
        lengths = parts_of(rng, 500, comm.size)
        owner = np.repeat(np.arange(comm.size), lengths)
        for descending in (False, True):
            mine = here(comm, x, lengths)
            mine = mine[stable_order(mine, descending)]
            pieces = np.array_split(stable_order(x, descending), comm.size)
            expected = [np.count_nonzero(owner[piece] == comm.rank) for piece in pieces]
            narrowing = partial(cuts_by_samples, most=60, few=100)
            there = ol.to_device(mine, device_of(comm))
            for cuts, keys in (
                (cuts_by_counting, mine),
                (cuts_by_samples, there),
                (narrowing, there),
            ):
                assert np.diff(cuts(comm, keys, descending)).tolist() == expected


def check_local_parts_and_any_distribution(comm, rng):
    x = keys_of(rng, "f4", 700)
    lengths = parts_of(rng, 700, comm.size)
    mine = here(comm, x, lengths)
    before = mine.copy()
    alike(even(sort(mine), 700, comm), x[stable_order(x)])
    alike(even(sort(mine[::-1][::-1]), 700, comm), x[stable_order(x)])
    assert mine.tobytes() == before.tobytes()
    places = here(comm, np.arange(700), lengths)
    alike(even(sort_by_key(mine, places)[1], 700, comm), stable_order(x))
    cyclic = DistArray.from_global(x, block_cyclic((comm.size,), (3,)))
    alike(even(argsort(cyclic), 700, comm), stable_order(x))
    values = DistArray.from_global(np.arange(700))  # in another distribution than the keys
    for keys in (cyclic, DistArray.from_local(mine)):
        alike(even(sort_by_key(keys, values)[1], 700, comm), stable_order(x))
    alike(topk(cyclic, 9)[1], stable_order(x, True, nan_first=True)[:9])
    foreign = x.astype(x.dtype.newbyteorder())
    alike(even(sort(DistArray.from_global(foreign)), 700, comm), x[stable_order(x)])


def check_values_of_any_dtype(comm, rng):
    x = keys_of(rng, "i4", 300)
    kinds = ("u1", "c16", "f2", "S3", [("a", "i4"), ("b", "u1")])
    for dtype in map(np.dtype, kinds):
        values = rng.integers(0, 255, 300 * dtype.itemsize, np.uint8).view(dtype)
        moved = sort_by_key(DistArray.from_global(x), DistArray.from_global(values))[1]
        alike(even(moved, 300, comm), values[stable_order(x)])


def check_parts_on_devices(comm, rng):
    device = device_of(comm)
    for n in (0, comm.size, 60_000):
        x = keys_of(rng, "f4", n)
        given = DistArray.from_local(ol.to_device(DistArray.from_global(x).local, device))
        values = given.like(np.arange(n)[given.local_slice()])
        order = stable_order(x)
        results = [sort(given), argsort(given), *sort_by_key(given, values), *unique(given, True)]
        assert all(one.on_device for one in results)
        _, first, counts = np.unique(x, return_index=True, return_counts=True)
        expected = (x[order], order, x[order], order, x[first], counts)
        for found, wanted in zip(results, expected, strict=True):
            alike(even(found, len(wanted), comm), wanted)
        k = min(n, 100)
        alike(topk(given, k, largest=False)[1], order[:k])


def check_ranks_of_a_node_sort_together(comm, rng):
    """All steps on keys that are spread, with runs that several ranks sort; else as by messages."""
    least, plain, made = sort_together.LEAST, sort_together.run_step, []
    device = device_of(comm)
    able = node_of(comm) is not None and device.kind == "cpu" and device.shared_pointers
    sort_together.LEAST = 0
    sort_together.run_step = lambda *given: made.append(given[1]) or plain(*given)
    try:
        for i, dtype in enumerate(("i4", "f4", "f8", "u8", "M8[s]", "f2")):
            for n in (20_011, 200_003):
                x = (rng.standard_normal(n) * 2**20).astype("f8" if i < 3 else "i8").astype(dtype)
                if x.dtype.kind == "f":
                    x[::999], x[1::999], x[2::999] = np.nan, -0.0, 0.0
                lengths = parts_of(rng, n, comm.size)
                given = DistArray.from_global(x, slab(0, lengths))
                order = stable_order(x, i % 2 == 1)
                values = given.like(np.arange(n, dtype="i4")[given.local_slice()])
                keys, moved = sort_by_key(given, values, descending=i % 2 == 1)
                alike(even(sort(given, descending=i % 2 == 1), n, comm), x[order])
                alike(even(keys, n, comm), x[order])
                alike(even(moved, n, comm), order.astype("i4"))
        assert made.count("finish") >= 12 * able
        for kind in ("equal", "sorted"):  # what other sorts take less time for
            made.clear()
            x = keys_of(rng, "i4", 200_003, kind)
            alike(even(sort(DistArray.from_global(x)), x.size, comm), x[stable_order(x)])
            assert "finish" not in made
    finally:
        sort_together.LEAST, sort_together.run_step = least, plain


def check_a_part_of_the_ranks(comm, rng):
    """Two groups of ranks sort different arrays at once."""
    color = comm.rank % 2
    group = comm.Split(color)
    x = keys_of(np.random.default_rng(color), "f4", 400 + color)
    found = sort(DistArray.from_global(x, comm=group))
    alike(even(found, 400 + color, group), x[stable_order(x)])
    mine = here(group, x, parts_of(np.random.default_rng(color), len(x), group.size))
    alike(even(argsort(mine, comm=group, device=device_of(group)), len(x), group), stable_order(x))
    group.Free()


def check_what_does_not_fit_is_refused_on_all_ranks(comm, rng):
    x = DistArray.from_global(rng.random(20))
    last = comm.rank == comm.size - 1
    functions = sort, argsort, unique, lambda a: topk(a, 1), lambda a: sort_by_key(a, a)
    for call in functions:
        with pytest.raises(InvalidProblem, match="dtype complex128"):
            call(np.zeros(3, complex))
        with pytest.raises(InvalidProblem, match="must have one dimension, not 2"):
            call(np.zeros((2, 2)) if last else np.zeros(4))
        with pytest.raises(InvalidProblem, match="must have one dimension, not 2"):
            call(DistArray.from_global(np.zeros((2, 2))))
    for k in (-1, 21):
        with pytest.raises(InvalidProblem, match=f"k must be 0 to 20, .* not {k}"):
            topk(x, k)
    with pytest.raises(InvalidProblem, match="k must be a whole number"):
        topk(x, 2.5)
    with pytest.raises(InvalidProblem, match="one shape"):
        sort_by_key(x, np.zeros(30))
    with pytest.raises(InvalidProblem, match="masks"):
        sort(np.ma.masked_less(np.arange(4), 2) if last else np.arange(4))
    with pytest.raises(InvalidProblem, match="both be host arrays"):
        sort_by_key(x.local, ol.to_device(x.local, device_of(comm)) if last else x.local)
    with pytest.raises(InvalidProblem, match="cannot travel with keys"):
        sort_by_key(np.zeros(3), np.zeros(3, [("a", "i4", 0)]))
    reverse = comm.Split(0, -comm.rank)
    if comm.size > 1:
        with pytest.raises(InvalidProblem, match="another communicator"):
            sort(x, comm=reverse)
        for differing in (
            lambda: sort(x, descending=last),
            lambda: topk(x, 1 + last),
            lambda: topk(x, 1, largest=last),
            lambda: unique(x, last),
            lambda: sort(x if last else x.local),
            lambda: sort(np.zeros(3, np.float32 if last else float)),
        ):
            with pytest.raises(InvalidConfig, match="must be the same on all ranks"):
                differing()
    reverse.Free()

"""Merging sorted runs: what a stable sort of them returns."""

from dataclasses import replace

import numpy as np
import pytest
from sort_checks import bits, stable_order

from opencl_lab.ops.sort.merge_runs import MOST_RUNS, merge_runs, merges
from opencl_lab.ops.sort.trials import awkward_keys
from opencl_lab.runtime.exchange import to_device
from opencl_lab.runtime.session import session_of

LENGTHS = [[1, 1], [5, 0, 3], [1000, 1], [0, 30_001, 7], [8191, 8193, 16_384, 1, 4000],
           [0, 9, 0], [3000] * MOST_RUNS, [11] * (MOST_RUNS + 1), [],
           [70_001, 40_000, 1, 60_000]]  # fmt: skip


@pytest.fixture(autouse=True, params=["own", "gpu"])
def form(request, device):
    """Merge as the device does; on CPUs by groups, too."""
    session = session_of(device.queue())
    before = session.device
    if request.param == "gpu":
        if before.kind != "cpu":
            pytest.skip("it has no other form")
        session.device = replace(before, kind="gpu")
    yield
    session.device = before


def runs_of(rng, dtype, lengths, descending):
    """Return sorted runs, and their order among all keys."""
    keys = awkward_keys(rng, dtype, max(sum(lengths), 1))[: sum(lengths)]
    if sum(lengths) > 99:
        keys = rng.choice(keys[:50], keys.size)  # many are equal
    parts = []
    for part in np.split(keys, np.cumsum(lengths)[:-1]) if lengths else [keys]:
        parts.append(part[stable_order(part, descending)])
    return np.concatenate(parts)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "descending"),
    [("int32", False), ("float32", False), ("bool", False), ("float64", True), ("uint32", True)],
)
def test_runs_are_merged_stably(device, rng, dtype, descending):
    for lengths in LENGTHS:
        keys = runs_of(rng, dtype, lengths, descending)
        order = stable_order(keys, descending)
        (found,) = merge_runs([keys], lengths, descending=descending, queue=device.queue())
        assert np.array_equal(bits(found), bits(keys[order]))
        values = np.arange(keys.size)
        found, moved = merge_runs(
            [keys, values], lengths, descending=descending, queue=device.queue()
        )
        assert np.array_equal(bits(found), bits(keys[order]))
        assert np.array_equal(moved, order)


@pytest.mark.few(2)
@pytest.mark.parametrize("values", ["u1", "c16", "f2"])
def test_values_travel_and_runs_on_a_device_stay_there(device, rng, values):
    keys, queue = runs_of(rng, "int32", [900, 4000, 77], descending=False), device.queue()
    given = rng.integers(0, 256, (keys.size, np.dtype(values).itemsize), np.uint8)
    given = given.view(values)[:, 0]
    _, moved = merge_runs([keys, given], [900, 4000, 77], descending=False, queue=queue)
    assert moved.dtype == given.dtype
    assert moved.tobytes() == given[np.argsort(keys, kind="stable")].tobytes()
    (found,) = merge_runs([to_device(keys, device)], [900, 4000, 77], queue=queue)
    assert np.array_equal(found.get(), np.sort(keys))


def test_what_is_merged_and_what_is_sorted(device):
    device = session_of(device.queue()).device
    keys, many, odd = np.empty(9, "f4"), [5] * (MOST_RUNS + 1), np.empty(9, "V12")
    assert merges(device, [5, 0, 4], keys, np.arange(9)) and not merges(device, [5, 4], keys, odd)
    assert not merges(device, many, keys)
    assert merges(device, [0, 9], keys, odd)  # there is nothing to do

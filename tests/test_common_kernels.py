"""The building blocks of kernels, each in a small kernel against NumPy; a program a group size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opencl_lab.core.plan import Buffer, Launch, Plan
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

TEMPLATE = str(Path(__file__).parent / "kernels/common_blocks.cl.mako")
GROUPS = 5
ITEM_KEYS = 3
SHAPES = {"one warp": (32, False, 1), "wide": (96, True, 4), "large": (256, False, 4)}
"""Items of a group, whether counts have 64 bits, and tiles that are looked back at together."""


@pytest.fixture(params=SHAPES)
def run(request, queue):
    """Return what launches one of the kernels, and gives its outputs."""
    device = session_of(queue).device
    limits = device.capabilities
    wg_size, wide, looks = SHAPES[request.param]
    if wg_size > limits.max_work_group:
        pytest.skip("groups of this device are smaller")
    if wide and not (limits.inline_ptx or limits.int64_atomics):
        pytest.skip("no atomic operations on 64 bits")
    params = {
        "WG_SIZE": wg_size, "ITEM_KEYS": ITEM_KEYS, "DIGIT_BITS": 3, "WIDE": wide,
        "PTX": limits.inline_ptx, "LOOKS": looks,
        "SHARES": "1u" if looks == 1 else "(uint)get_global_size(0)",
    }  # fmt: skip

    def launch(kernel, arrays, results, groups=GROUPS, items=wg_size, spans=((),), **more):
        """Run a kernel; `more` has its other arguments by name, in their places among `arrays`."""
        buffers = [Buffer(name, "in", value.shape, value.dtype) for name, value in arrays.items()]
        for name, (role, shape, dtype) in results.items():
            buffers.append(Buffer(name, role, shape, np.dtype(dtype)))
        named = {buffer.name: buffer.name for buffer in buffers}
        launches = tuple(
            Launch(
                template=TEMPLATE,
                kernel=kernel,
                params=params,
                global_size=(groups * items,),
                local_size=(items,),
                arguments=order(kernel, {**named, **more, **dict(span)}),
                local_bytes=0,
            )
            for span in spans
        )
        key = ("test common", kernel, request.param, str(more))
        executable = session_of(queue).executable(key, lambda: Plan(tuple(buffers), launches))
        return execute(executable, arrays, queue).outputs

    launch.wg_size, launch.wide, launch.device = wg_size, wide, device
    launch.params = params
    return launch


def order(kernel, arguments):
    """Return the arguments of a kernel in the order in which it declares them."""
    return {name: arguments[name] for name in ORDER[kernel]}


ORDER = {
    "scan_items": ("values", "before", "totals"),
    "sum_slices": ("words", "sums", "begins", "values", "scanned", "count"),
    "rank_digits": ("digits", "ranks"),
    "exchange_values": ("places", "values", "permuted"),
    "add_counts": ("values", "added", "arrived", "sums"),
    "look_back_at_tiles": ("values", "words", "counter", "tickets", "before"),
    "merge_runs": ("a", "b", "merged", "from", "a_count", "b_count"),
    "sum_squares": ("values", "squares", "sums", "n", "from", "to", "last", "counters"),
}


def test_scans_and_broadcasts(run, rng):
    values = rng.integers(0, 1000, (2, GROUPS, run.wg_size), np.uint32)
    shape = values.shape
    found = run(
        "scan_items",
        {"values": values},
        {"before": ("out", shape, "u4"), "totals": ("out", shape, "u4")},
    )
    sums = np.cumsum(values, axis=-1, dtype=np.uint32)
    np.testing.assert_array_equal(found["before"], sums - values)
    np.testing.assert_array_equal(found["totals"], np.broadcast_to(sums[..., -1:], shape))


@pytest.mark.few(2)
@pytest.mark.parametrize("tiles", [0.5, GROUPS, 4 * GROUPS - 0.3])
def test_slices_of_rows(tiles, run, rng):
    tile = run.wg_size * ITEM_KEYS
    count = int(tiles * tile)
    words = rng.integers(0, 2**32 if run.wide else 2**20, GROUPS, np.uint32)
    values = rng.integers(0, 2**32 if run.wide else 2**20, (GROUPS, run.wg_size), np.uint32)
    shape = (GROUPS, run.wg_size)
    found = run(
        "sum_slices",
        {"words": words, "values": values},
        {
            "sums": ("out", shape, "u8"),
            "begins": ("out", (GROUPS,), "u8"),
            "scanned": ("out", shape, "u8"),
        },
        count=np.uint64(count),
    )
    before = np.cumsum(words, dtype=np.uint64) - words
    np.testing.assert_array_equal(found["sums"], np.broadcast_to(before[:, None], shape))
    numbers = values.astype(np.uint64) << np.uint64(8 * run.wide)
    np.testing.assert_array_equal(found["scanned"], np.cumsum(numbers, axis=-1) - numbers)
    ends = [*found["begins"].tolist(), count]
    assert ends[0] == 0 and ends == sorted(ends)
    inner = [end for end in ends if end < count]
    assert all(end % tile == 0 for end in inner)
    whole = -(-count // tile)
    assert max(np.diff(ends)) == min(-(-whole // GROUPS) * tile, count)


def test_ranks_of_digits(run, rng):
    warps = GROUPS * run.wg_size // 32
    digits = rng.integers(0, 8, (warps, ITEM_KEYS * 32), np.uint32)
    digits[0] = 7  # all equal
    digits[1 % warps] %= 2
    ranks = run("rank_digits", {"digits": digits}, {"ranks": ("out", digits.shape, "u4")})["ranks"]
    same = digits[:, :, None] == digits[:, None, :]
    np.testing.assert_array_equal(ranks, np.tril(same, -1).sum(-1))


def test_registers_are_exchanged(run, rng):
    tile = run.wg_size * ITEM_KEYS
    places = np.stack([rng.permutation(tile).astype(np.uint32) for _ in range(GROUPS)])
    values = rng.integers(0, 2**64, (GROUPS, tile), np.uint64)
    found = run(
        "exchange_values",
        {"places": places, "values": values},
        {"permuted": ("out", values.shape, "u8")},
    )["permuted"]
    expected = np.empty_like(values)
    np.put_along_axis(expected, places.astype(np.int64), values, -1)
    np.testing.assert_array_equal(found, expected)


def test_counts_and_the_last_group(run, rng):
    """Twice: the last group clears the counts. With 64 bits, low words overflow."""
    largest = 2**32 if run.wide else 2**28
    for _ in range(2):
        values = rng.integers(largest // 2, largest, (GROUPS, run.wg_size), np.uint32)
        sums = run(
            "add_counts",
            {"values": values},
            {
                "added": ("zeros", (2 * run.wg_size,), "u4"),
                "arrived": ("zeros", (1,), "u4"),
                "sums": ("out", (run.wg_size,), "u8"),
            },
        )["sums"]
        np.testing.assert_array_equal(sums, values.sum(0, dtype=np.uint64))
    assert (sums.max() >= 2**32) == run.wide


def test_tickets_and_look_back(run, rng):
    groups = 23
    values = rng.integers(0, 2**32 if run.wide else 2**25, (groups, run.wg_size), np.uint32)
    cells = groups * run.wg_size
    found = run(
        "look_back_at_tiles",
        {"values": values, "words": np.zeros(cells, "u8" if run.wide else "u4"),
         "counter": np.zeros(1, np.uint32)},
        {"tickets": ("out", (groups,), "u4"), "before": ("out", values.shape, "u8")},
        groups=groups,
    )  # fmt: skip
    np.testing.assert_array_equal(np.sort(found["tickets"]), np.arange(groups))
    sums = np.cumsum(values, axis=0, dtype=np.uint64)
    np.testing.assert_array_equal(found["before"], sums - values)


@pytest.mark.few(2)
@pytest.mark.parametrize("case", ["random", "ties", "one run first", "an empty run"])
def test_merge_paths(case, run, rng):
    """Stably: equal elements of run a come first."""
    tile = run.wg_size * ITEM_KEYS
    total = GROUPS * tile - 5
    a_count = {"an empty run": total}.get(case, total // 3)
    largest = 7 if case == "ties" else 2**31
    a = np.sort(rng.integers(0, largest, max(a_count, 1), np.uint32))
    b = np.sort(rng.integers(0, largest, max(total - a_count, 1), np.uint32))
    if case == "one run first":
        b = b // 4
        a = a // 4 + 2**30
    both = np.concatenate([a[:a_count], b[: total - a_count]])
    found = run(
        "merge_runs",
        {"a": a, "b": b},
        {"merged": ("out", (total,), "u4"), "from": ("out", (total,), "u4")},
        a_count=np.uint32(a_count),
        b_count=np.uint32(total - a_count),
    )
    right = np.argsort(both, kind="stable")
    np.testing.assert_array_equal(found["merged"], both[right])
    np.testing.assert_array_equal(found["from"], right)


def test_phases_of_tasks(run, rng):
    """Twice: the last item clears the counters. Where writes are not seen, a launch per phase."""
    n, phases, items = 1003, 2, 7
    shares = 1 if run.params["SHARES"] == "1u" else items
    joined = run.device.capabilities.visible_writes
    spans = [(0, phases)] if joined else [(phase, phase + 1) for phase in range(phases)]
    for _ in range(2):
        values = rng.integers(0, 1000, n, np.uint32)
        sums = run(
            "sum_squares",
            {"values": values},
            {
                "squares": ("scratch", (n,), "u4"),
                "sums": ("out", (n,), "u4"),
                "counters": ("zeros", (phases * (shares + 1) + 1,), "u4"),
            },
            groups=items,
            items=1,
            spans=[
                {"from": np.uint32(begin), "to": np.uint32(end)}.items() for begin, end in spans
            ],
            n=np.uint32(n),
            last=np.uint32(phases),
        )["sums"]
        squares = values * values
        np.testing.assert_array_equal(sums, squares + squares[::-1])

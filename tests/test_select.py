"""The first k keys, each key once, and where keys would go: against NumPy, on both sides."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sort_radix import GPU, SKEWS, skewed, specials, stable_order

import opencl_lab as ol
from opencl_lab import template
from opencl_lab.operations.select import functions, parts, topk
from opencl_lab.operations.select.problem import SearchProblem, TopkProblem, UniqueProblem
from opencl_lab.operations.select.search import SEARCH
from opencl_lab.operations.select.topk import TOPK
from opencl_lab.operations.select.unique import UNIQUE
from opencl_lab.plan import check_plan
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.results import block_of
from opencl_lab.runtime.session import session_of

SELECT = TOPK.algorithm("radix-select")
GROUPS = {"WG_SIZE": 64, "ITEM_KEYS": 4}
FORMS = {"alone": {}, "groups": {**GROUPS, "DIGIT_BITS": 8}}
N = 20_011  # cut into parts, of which the last one is shorter


def right_topk(keys, k, largest=True):
    order = stable_order(keys, largest)[..., :k]
    return np.take_along_axis(keys, order, -1), order


def check(results, expected):
    """Check values and indices bit by bit, of either side."""
    for got, right in zip(results, expected, strict=True):
        got = got.get() if isinstance(got, cl.array.Array) else got
        assert got.dtype == right.dtype and got.shape == right.shape
        assert got.tobytes() == np.ascontiguousarray(right).tobytes()


def hard_floats(rng, shape, dtype="float32"):
    """Return floats with many NaN of both signs, zeros of both signs, and infinities."""
    keys = rng.standard_normal(shape).astype(dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(specials(dtype), shape), keys)


def need(form, queue):
    if form == "alone" and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")


# ---------------------------------------------------------------------- topk


@pytest.mark.parametrize("form", FORMS)
def test_topk_of_skewed_keys(form, rng, queue):
    """All skews by one program: many ties, one bucket, one digit; k over and inside of ties."""
    need(form, queue)
    for name in SKEWS:
        keys = skewed(name, rng)
        for k in (1, 100, N // 2):
            results = ol.topk(keys, k, config=FORMS[form], queue=queue)
            check(results, right_topk(keys, k))
    again = ol.topk(keys, N // 2, config=FORMS[form], queue=queue)
    check(again, results)


@pytest.mark.parametrize(
    ("dtype", "form", "n", "largest"),
    [
        ("float32", "alone", N, True),
        ("float32", "alone", N, False),
        ("float64", "alone", 300, False),
        ("float16", "groups", 300, True),
        ("uint8", "groups", N, False),
        ("int64", "alone", 300, True),
        ("bool", "alone", 300, True),
    ],
)
def test_topk_of_types(dtype, form, n, largest, rng, queue):
    need(form, queue)
    kind = np.dtype(dtype).kind
    for shape in ((n,), (3, n)):
        if kind == "f":
            keys = hard_floats(rng, shape, dtype)
        elif kind == "b":
            keys = rng.random(shape) < 0.5
        else:
            limits = np.iinfo(dtype)
            keys = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        for k in (1, 77, min(n - 1, 5000)):
            results = ol.topk(keys, k, largest=largest, config=FORMS[form], queue=queue)
            check(results, right_topk(keys, k, largest))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=200), st.data())
def test_topk_of_any_few(queue, keys, data):
    keys = np.array(keys, np.int32)
    k = data.draw(st.integers(0, keys.size))
    check(ol.topk(keys, k, queue=queue), right_topk(keys, k))


@pytest.mark.parametrize("side", ["host", "device"])
def test_topk_axes_views_and_outs(side, rng, queue):
    whole = rng.integers(0, 50, (7, 40, 6), np.int32)

    def put(array):
        return cl.array.to_device(queue, array) if side == "device" else array.copy()

    for axis in (0, 1, -1, None):
        keys = whole[::2, ::-1] if side == "host" else whole[1:5]
        given_keys = put(whole)[::2, ::-1] if side == "host" else put(whole)[1:5]
        moved = keys.reshape(-1) if axis is None else np.moveaxis(keys, axis, -1)
        expected = right_topk(moved, 3)
        if axis is not None:
            expected = [np.moveaxis(part, -1, axis) for part in expected]
        results = ol.topk(given_keys, 3, axis=axis, queue=queue)
        check(results, expected)
        assert all(isinstance(part, type(given_keys)) for part in results)
        shape = expected[0].shape
        out = put(np.zeros(shape, np.int32)), put(np.zeros(shape, np.int64))
        back = ol.topk(given_keys, 3, axis=axis, out=out, queue=queue)
        assert back[0] is out[0] and back[1] is out[1]
        check(out, expected)
        np.testing.assert_array_equal(
            given_keys.get() if side == "device" and axis is None else keys, keys
        )


def test_topk_out_in_the_memory_of_the_input(rng, queue):
    keys = rng.integers(0, 10**6, 500)
    for given_keys in (keys.copy(), cl.array.to_device(queue, keys)):
        values = given_keys[:400]
        indices = (
            ol.topk(given_keys, 400, out=(values, np.zeros(400, np.int64)), queue=queue)[1]
            if isinstance(given_keys, np.ndarray)
            else ol.topk(given_keys, 400, out=(values, cl.array.zeros(queue, 400, np.int64)))[1]
        )
        check((values, indices), right_topk(keys, 400))


def test_topk_of_nothing(queue):
    for a, k, axis in ((np.zeros((3, 0)), 0, -1), (np.zeros((0, 4)), 2, -1), (np.ones(5), 0, 0)):
        for given_keys in (a, cl.array.to_device(queue, a)):
            values, indices = ol.topk(given_keys, k, axis=axis, queue=queue)
            assert values.shape == indices.shape == (*a.shape[:-1], k)
            assert values.dtype == a.dtype and indices.dtype == np.int64


@pytest.mark.parametrize(
    ("a", "k", "options", "message"),
    [
        ([1, 2, 3], 4, {}, "k must be 0 to 3, the keys that there are, not 4"),
        ([1, 2, 3], -1, {}, "k must be 0 to 3"),
        ([1, 2, 3], 1.5, {}, "k must be a whole number, not 1.5"),
        (5, 1, {}, "axis -1 is out of bounds for 0 dimensions"),
        ([1], 1, {"axis": 1}, "axis 1 is out of bounds"),
        ([1j], 1, {}, "cannot order keys of dtype complex128"),
        ([1, 2], 1, {"out": np.zeros(1)}, "out must be a pair"),
        ([1, 2], 1, {"out": (np.zeros(1), np.zeros(1, int))}, "out must have shape"),
    ],
)
def test_topk_refuses(a, k, options, message, queue):
    with pytest.raises(ol.InvalidProblem, match=message):
        ol.topk(a, k, queue=queue, **options)


def test_topk_refuses_outs_that_overlap(queue):
    memory = np.zeros(4, np.int64)
    with pytest.raises(ol.InvalidProblem, match="share memory"):
        ol.topk([3, 1, 2], 2, out=(memory[:2], memory[1:3]), queue=queue)


def test_topk_takes_lists_and_foreign_byte_orders(queue):
    values, indices = ol.topk([3, 1, 2], 2, queue=queue)
    assert values.tolist() == [3, 2] and indices.tolist() == [0, 2]
    values, _ = ol.topk(np.array([3, 1, 2], ">i4"), 2, largest=False, queue=queue)
    assert values.tolist() == [1, 2] and values.dtype == np.dtype(">i4")
    assert ol.topk(7, 1, axis=None, queue=queue)[0].tolist() == [7]


def run_select(problem, keys, queue, label, device=None, **config):
    """Return values and places of a plan made anew."""
    device = device or session_of(queue).device
    plan = SELECT.plan(problem, SELECT.configure(problem, device, config), device)
    executable = session_of(queue).executable(("test", label), lambda: plan)
    outputs = execute(executable, {"keys": keys}, queue).outputs
    return plan, outputs["values"], outputs["places"]


@pytest.mark.parametrize("form", FORMS)
def test_topk_with_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^31 keys need, in short rows; in two runs."""
    need(form, queue)
    monkeypatch.setattr(parts, "INDEX_LIMIT", 1000)
    keys = skewed("zipf", rng).reshape(1, -1)
    problem = TopkProblem(N, 500, keys.dtype)
    for _ in range(2):
        plan, values, places = run_select(problem, keys, queue, f"wide {form}", **FORMS[form])
        assert plan.launches[0].params["WIDE"]
        chosen = np.sort(right_topk(keys, 500)[1][0])
        np.testing.assert_array_equal(places[0], chosen)
        np.testing.assert_array_equal(values[0], keys[0][chosen])


# None of them writes beyond the results: as many keys are taken, or fewer.
NARROWING = {
    "places of the few": ("places ? places[first + j]", "places ? (long)(first + j)"),
    "equal keys before a part": ("digit + t), part, space", "digit), part, space"),
    "the last digit": (
        "(code_t)answer[0];",
        "(code_t)(answer[0] - (d + 1 == DIGITS && answer[0]));",
    ),
}


@pytest.mark.parametrize("fault", NARROWING)
def test_planted_faults_in_topk_are_seen(fault, rng, queue, monkeypatch):
    """Each makes wrong places of keys of which few, and then fewer, are left."""
    found, planted = NARROWING[fault]
    keys = rng.integers(-(2**31), 2**31, (1, N)).astype(np.int32)
    keys[0, ::50] = 2**31 - 2**20  # ties, of which some are taken
    problem = TopkProblem(N, 300, keys.dtype)
    chosen = np.sort(right_topk(keys, 300)[1][0])
    config = FORMS["groups"]
    _, _, places = run_select(problem, keys, queue, "right", **config)
    np.testing.assert_array_equal(places[0], chosen)

    def faulty(name, params):
        source = template.render(name, params)
        if found not in source.text:
            pytest.skip("kernels for this device have no such line")
        return replace(source, text=source.text.replace(found, planted))

    monkeypatch.setattr("opencl_lab.runtime.programs.render", faulty)
    _, _, places = run_select(problem, keys, queue, fault, **config)
    assert not np.array_equal(places[0], chosen)


@pytest.mark.parametrize("n", [1, 1000, 10**6, 2**31 + 5, 2**33])
@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_topk_plans_fit(dtype, n):
    for kind in ("cpu", "gpu"):
        device = replace(GPU, kind=kind)
        for rows in (1, 7):
            problem = TopkProblem(n, min(n, 100), np.dtype(dtype), rows)
            plan = SELECT.plan(problem, SELECT.default_config(problem, device), device)
            if n * rows * 8 < device.max_allocation:
                check_plan(plan, device)
            item = plan.launches[0]
            wide = n >= 2**31
            assert item.params["WIDE"] == wide
            assert item.arguments["n"].dtype == (np.uint64 if wide else np.uint32)
            assert int(item.arguments["n"]) == n
            if n > topk.WHOLE:
                bits = item.params["DIGIT_BITS"]
                assert len(plan.launches) == -(-8 * np.dtype(dtype).itemsize // bits) + 1
                cut = int(item.arguments["parts"])
                assert item.global_size[0] == rows * cut * item.local_size[0]
                assert n / cut < 2**32  # what a part counts
            else:
                assert [launch.kernel for launch in plan.launches] == ["select_parts"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"WG_SIZE": 48}, "WG_SIZE must be a power of two"),
        ({"WG_SIZE": 16}, "WG_SIZE must be a multiple of 32 on this device"),
        ({"ITEM_KEYS": 1}, "ITEM_KEYS must be at least 2"),
        ({"ITEM_KEYS": 512}, "fewer than 65,536 keys"),
        ({"DIGIT_BITS": 12}, "DIGIT_BITS must be 1 to 11"),
    ],
)
def test_topk_configurations_that_cannot_run(config, message):
    device = replace(GPU, capabilities=replace(GPU.capabilities, inline_ptx=True))
    problem = TopkProblem(10**6, 10, np.dtype(np.int32))
    with pytest.raises(ol.InvalidConfig, match=message):
        SELECT.plan(problem, SELECT.configure(problem, device, config), device)


@pytest.mark.parametrize(
    ("dtype", "rows", "n", "k", "largest"),
    [
        ("float32", 3, N, 100, True),
        ("float32", 1, N, 57, False),
        ("uint8", 1, 30_011, 1, True),
        ("int64", 2, N, 700, False),
    ],
)
def test_topk_of_parts(dtype, rows, n, k, largest, rng, queue):
    """What GPUs do for rows a little too long for one group, with groups of several items."""
    keys = hard_floats(rng, (rows, n)) if dtype == "float32" else rng.integers(0, 200, (rows, n))
    keys = keys.astype(dtype)
    device = replace(session_of(queue).device, kind="gpu")
    problem = TopkProblem(n, k, keys.dtype, rows, largest)
    config = SELECT.configure(problem, device, {**GROUPS, "DIGIT_BITS": 8})
    plan = SELECT.plan(problem, config, device)
    assert [launch.kernel for launch in plan.launches] == ["select_parts", "select_few"]
    places = run_select(problem, keys, queue, problem, device, **config)[2]
    expected = np.sort(stable_order(keys, largest)[:, :k], -1)
    np.testing.assert_array_equal(places, expected)


def test_topk_of_parts_plans():
    """Each part has k keys or more, and one group reads what they find."""
    for n in (topk.WHOLE + 1, 50_000, topk.PARTED):
        for k in (1, 100, topk.MOST_OF_PARTS // -(-n // topk.PART)):
            for rows in (1, 5):
                problem = TopkProblem(n, k, np.dtype(np.int32), rows)
                plan = SELECT.plan(problem, SELECT.default_config(problem, GPU), GPU)
                check_plan(plan, GPU)
                first, last = plan.launches
                parts = int(first.arguments["parts"])
                assert n // parts >= k and int(last.arguments["n"]) == parts * k <= topk.WHOLE
                assert first.global_size[0] == rows * parts * first.local_size[0]
                assert last.global_size[0] == rows * last.local_size[0]


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64"])
@pytest.mark.parametrize(("rows", "n", "k"), [(1, 1, 1), (3, 40, 7), (1, 5000, 4000), (2, 9, 0)])
def test_topk_by_sort(dtype, rows, n, k, rng, queue):
    with np.errstate(invalid="ignore"):  # some NaN signal
        keys = hard_floats(rng, (rows, n)).astype(dtype)
    on_device = cl.array.to_device(queue, keys)
    for largest in (True, False):
        expected = right_topk(keys, k, largest)
        how = {"largest": largest, "algorithm": "sort"}
        check(ol.topk(keys, k, queue=queue, **how), expected)
        for _ in range(2):
            check(ol.topk(on_device, k, **how), expected)
        out = (cl.array.zeros(queue, (rows, k), dtype), cl.array.zeros(queue, (rows, k), np.int64))
        results = ol.topk(on_device, k, out=out, **how)
        assert results[0] is out[0] and results[1] is out[1]
        check(out, expected)


def test_topk_sorts_where_that_takes_less_time():
    def chosen(kind, n, k, rows=1):
        device = replace(GPU, kind=kind)
        return TOPK.choose(TopkProblem(n, k, np.dtype(np.int32), rows), device).name

    assert chosen("cpu", 20, 2, 1000) == "sort"
    assert chosen("cpu", 10_000, 1000, 100) == "radix-select"
    assert chosen("cpu", 10_000, 5000, 100) == "sort"
    assert chosen("gpu", 50_000, 100) == "radix-select"  # in parts
    assert chosen("gpu", 50_000, 2000) == "sort"
    assert chosen("gpu", 50_000, 2000, 1000) == "radix-select"
    assert chosen("gpu", 10**7, 2000) == "radix-select"
    assert chosen("gpu", 10**7, 6 * 10**6) == "sort"


def test_topk_waits_for_nothing(queue, rng, held_back, own_queue, device):
    mine = own_queue(device.handle)
    keys = rng.integers(0, 10**6, N, np.int32)
    given_keys = cl.array.to_device(mine, keys)
    ol.topk(given_keys, 5)
    with held_back(mine):
        results = ol.topk(given_keys, 5)
    check(results, right_topk(keys, 5))


def test_prepared_topk(rng, queue):
    prepared = ol.prepare("topk", shape=(300,), dtype=np.int32, k=5, queue=queue)
    for _ in range(3):
        keys = rng.integers(0, 50, 300, np.int32)
        check(prepared(cl.array.to_device(queue, keys)), right_topk(keys, 5))


# -------------------------------------------------------------------- unique


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("side", ["host", "device"])
def test_unique(side, dtype, rng, queue):
    for n in (0, 1, 2, 777, *((N,) * (dtype == "int32"))):
        for few in (1, 5, 10**6):
            if dtype == "float32":
                keys = hard_floats(rng, n) if few == 5 else rng.integers(0, few, n).astype(dtype)
            else:
                keys = rng.integers(0, few, n).astype(dtype)
            given_keys = cl.array.to_device(queue, keys) if side == "device" else keys
            expected = np.unique(keys, return_counts=True)
            results = ol.unique(given_keys, True, queue=queue)
            for got, right in zip(results, expected, strict=True):
                assert isinstance(got, type(given_keys))
                got = got.get() if side == "device" else got
                assert got.dtype == right.dtype and got.flags.c_contiguous
                np.testing.assert_array_equal(got, right)
            alone = ol.unique(given_keys, queue=queue)
            np.testing.assert_array_equal(alone.get() if side == "device" else alone, expected[0])


def test_unique_takes_the_first_zero_and_one_nan(queue):
    keys = np.array([1, -0.0, np.nan, 0.0, -np.nan, -0.0], np.float32)
    values, counts = ol.unique(keys, True, queue=queue)
    np.testing.assert_array_equal(values, [-0.0, 1, np.nan])
    assert np.signbit(values[0]) and not np.signbit(values[2])
    assert counts.tolist() == [3, 1, 2]


@pytest.mark.parametrize("most", [300, 40_000], ids=["few", "many"])
@pytest.mark.parametrize("side", ["host", "device"])
def test_unique_holds_no_more_memory_than_twice_its_results(side, most, rng, queue):
    """They are copied only where much would be held for few of them; and never anew each time."""
    keys = rng.integers(0, most, N, np.int32)
    expected = np.unique(keys, return_counts=True)
    given_keys = keys if side == "host" else cl.array.to_device(queue, keys)
    blocks = []  # keeps their addresses from the driver
    for _ in range(5):
        results = ol.unique(given_keys, return_counts=True, queue=queue)
        check(results, expected)
        for part in results:
            if side == "device":
                blocks.append(block_of(part))
                assert block_of(part).size <= 2 * part.nbytes
            else:
                owner = part
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                assert owner.nbytes <= 2 * part.nbytes
        del results, part
    if side == "device":
        assert len({block.int_ptr for block in blocks}) <= 6  # of the first call, and in turns


def test_unique_explains_what_fails_while_it_waits(rng, queue, monkeypatch):
    def full(*given):
        raise cl.MemoryError("no memory")

    monkeypatch.setattr(functions, "beginning", full)
    with pytest.raises(ol.LaunchError, match="ran out of memory"):
        ol.unique(rng.integers(0, 9, 300), queue=queue)


def test_unique_of_any_shape(rng, queue):
    keys = rng.integers(0, 9, (30, 40), np.int32)
    on_device = cl.array.to_device(queue, keys)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[3:, ::2]):
        np.testing.assert_array_equal(ol.unique(view(keys), queue=queue), np.unique(view(keys)))
        np.testing.assert_array_equal(ol.unique(view(on_device)).get(), np.unique(view(keys)))
    assert ol.unique(5, queue=queue).tolist() == [5]
    assert ol.unique([2, 1, 2], queue=queue).tolist() == [1, 2]
    foreign = ol.unique(np.array([2, 1, 2], ">i4"), queue=queue)
    assert foreign.tolist() == [1, 2] and foreign.dtype == np.dtype(">i4")
    for wrong in ([1j], np.array([1j])[:0]):
        with pytest.raises(ol.InvalidProblem, match="cannot"):
            ol.unique(wrong, queue=queue)


def test_unique_of_host_arrays_on_a_device_with_memory_of_its_own(rng, queue, monkeypatch):
    """They go there once, and only results come back."""
    apart = SimpleNamespace(device=SimpleNamespace(unified_memory=False))
    monkeypatch.setattr("opencl_lab.operations.select.functions.session_of", lambda queue: apart)
    keys = rng.integers(0, 300, (30, 40), np.int32)
    results = ol.unique(keys[:, ::-1], True, queue=queue)
    for got, right in zip(results, np.unique(keys, return_counts=True), strict=True):
        assert type(got) is np.ndarray and got.dtype == right.dtype
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("n", [1, 10**6, 2**31 + 5])
def test_unique_plans(n):
    heads = UNIQUE.algorithm("heads")
    for kind in ("cpu", "gpu"):
        device = replace(GPU, kind=kind)
        problem = UniqueProblem(n, np.dtype(np.int64), True)
        plan = heads.plan(problem, heads.default_config(problem, device), device)
        check_plan(plan, device)
        assert plan.launches[0].params["WIDE"] == (n >= 2**31)
        assert plan.by_name["starts"].dtype == (np.uint64 if n >= 2**31 else np.uint32)
        assert n / int(plan.launches[0].arguments["parts"]) < 2**32  # what a part counts


def test_unique_by_groups_and_with_wide_counts(rng, queue, monkeypatch):
    """The form for GPUs, and counts of 64 bits."""
    keys = np.sort(rng.integers(0, 3000, N, np.int32))
    device = session_of(queue).device
    expected = np.unique(keys, return_counts=True)
    for limit in (1 << 31, 1000):
        monkeypatch.setattr(parts, "INDEX_LIMIT", limit)
        problem = UniqueProblem(N, keys.dtype, True)
        heads = UNIQUE.algorithm("heads")
        plan = heads.plan(problem, heads.configure(problem, device, GROUPS), device)
        assert plan.launches[0].params["WIDE"] == (limit == 1000)
        assert len(plan.launches) == 3
        executable = session_of(queue).executable(("unique", limit), lambda plan=plan: plan)
        outputs = execute(executable, {"keys": keys}, queue).outputs
        m = int(outputs["found"][0])
        for name, right in zip(("values", "counts"), expected, strict=True):
            np.testing.assert_array_equal(outputs[name][:m], right)


# -------------------------------------------------------------- searchsorted


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side, dtype, rng, queue):
    for n, m in ((0, 5), (1, 5), (2, 3), (1000, 1), (1000, 2000), (4099, 777)):
        pool = hard_floats(rng, n + m) if dtype == "float32" else rng.integers(0, 200, n + m)
        pool = pool.astype(dtype)
        keys, values = np.sort(pool[:n]), pool[n:]
        expected = np.searchsorted(keys, values, side)
        result = ol.searchsorted(keys, values, side, queue=queue)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, expected)
        on_device = cl.array.to_device(queue, keys), cl.array.to_device(queue, values)
        for _ in range(2):
            result = ol.searchsorted(*on_device, side)
            assert result.dtype == np.int64 and result.queue == queue
            np.testing.assert_array_equal(result.get(), expected)


@given(
    st.lists(st.floats(width=32), max_size=50),
    st.lists(st.floats(width=32), max_size=20),
    st.sampled_from(["left", "right"]),
)
def test_searchsorted_of_any_floats(queue, keys, values, side):
    keys, values = np.sort(np.array(keys, np.float32)), np.array(values, np.float32)
    np.testing.assert_array_equal(
        ol.searchsorted(keys, values, side, queue=queue), np.searchsorted(keys, values, side)
    )


def test_searchsorted_shapes_outs_and_types(rng, queue):
    keys = np.sort(rng.integers(0, 99, 60, np.int32))
    values = rng.integers(-5, 120, (4, 6), np.int32)
    expected = np.searchsorted(keys, values)
    np.testing.assert_array_equal(ol.searchsorted(keys, values.T, queue=queue), expected.T)
    np.testing.assert_array_equal(
        ol.searchsorted(np.repeat(keys, 2)[::2], values[:, ::-2], queue=queue), expected[:, ::-2]
    )
    on_device = [cl.array.to_device(queue, array) for array in (keys, values)]
    np.testing.assert_array_equal(ol.searchsorted(on_device[0], on_device[1].T).get(), expected.T)
    out = np.zeros((4, 12), np.int64)
    assert ol.searchsorted(keys, values, out=out[:, ::2], queue=queue) is not None
    np.testing.assert_array_equal(out[:, ::2], expected)
    assert not out[:, 1::2].any()
    out = cl.array.zeros(queue, (4, 6), np.int64)
    assert ol.searchsorted(*on_device, out=out) is out
    np.testing.assert_array_equal(out.get(), expected)
    wide = np.sort(rng.integers(0, 99, 24))
    assert ol.searchsorted(wide, wide, out=wide, queue=queue) is wide  # in place of both
    one = ol.searchsorted(keys, 50, queue=queue)
    assert one == np.searchsorted(keys, 50) and type(one) is type(np.searchsorted(keys, 50))
    for _ in range(3):
        assert ol.searchsorted(keys, np.array(50, np.int32), queue=queue) == one
    for other in ([10**12, -5, 50], [1.5, 50.0], np.array([50], ">i2"), [True], np.uint64([50])):
        np.testing.assert_array_equal(
            ol.searchsorted(keys, other, queue=queue), np.searchsorted(keys, other)
        )


@pytest.mark.parametrize(
    ("a", "v", "options", "message"),
    [
        ([[1, 2]], 1, {}, "a must have one dimension, not 2"),
        (5, 1, {}, "a must have one dimension, not 0"),
        ([1, 2], 1, {"side": "up"}, "side must be 'left' or 'right', not 'up'"),
        ([1j], 1, {}, "cannot order keys of dtype complex128"),
        ([1], "x", {}, "cannot"),
        ([1, 2], [1], {"out": np.zeros(2, np.int64)}, "out must have shape"),
    ],
)
def test_searchsorted_refuses(a, v, options, message, queue):
    with pytest.raises(ol.InvalidProblem, match=message):
        ol.searchsorted(a, v, queue=queue, **options)


def test_searchsorted_of_two_sides_or_types(queue):
    keys = cl.array.to_device(queue, np.arange(5, dtype=np.int32))
    with pytest.raises(ol.InvalidProblem, match="both be host arrays or both device arrays"):
        ol.searchsorted(keys, 3)
    with pytest.raises(ol.InvalidProblem, match="must have one dtype, not int32 and int64"):
        ol.searchsorted(keys, cl.array.to_device(queue, np.arange(5)))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("a", "v"), [("u8", "i8"), ("i8", "u8"), ("i8", "i2"), ("i2", "u8")])
def test_searchsorted_converts_integers_as_numpy(a, v, side, queue):
    """No integer type holds int64 and uint64, so that NumPy compares them as float64."""
    keys, values = (
        np.array([1, 2, 3] if dtype == "i2" else [2**53, 2**53 + 1, 2**53 + 2], dtype)
        for dtype in (a, v)
    )
    expected = np.searchsorted(keys, values, side)
    np.testing.assert_array_equal(ol.searchsorted(keys, values, side, queue=queue), expected)


@pytest.mark.parametrize(
    "select",
    [
        lambda **how: ol.topk(np.zeros((2, 3)), 0, **how),
        lambda **how: ol.topk(np.zeros((0, 3)), 2, **how),
        lambda **how: ol.unique(np.zeros(0), **how),
        lambda **how: ol.searchsorted(np.zeros(0), [1.0, 2.0], **how),
        lambda **how: ol.searchsorted(np.zeros(2), np.zeros(0), **how),
    ],
)
def test_what_cannot_run_is_refused_for_no_keys_too(select, queue):
    select(queue=queue)
    with pytest.raises(ol.InvalidConfig, match="has no algorithm 'none'"):
        select(queue=queue, algorithm="none")
    with pytest.raises(ol.InvalidConfig, match="unknown parameter NONE"):
        select(queue=queue, config={"NONE": 1})


@pytest.mark.parametrize("n", [1, 10**6, 2**31 + 5])
def test_searchsorted_plans(n, rng, queue, monkeypatch):
    for kind in ("cpu", "gpu"):
        device = replace(GPU, kind=kind)
        for m in (1, 1000, 10**7 + 1):
            search = SEARCH.algorithm("binary-search")
            problem = SearchProblem(n, m, np.dtype(np.int32))
            plan = search.plan(problem, search.default_config(problem, device), device)
            check_plan(plan, device)
            (item,) = plan.launches
            assert item.params["WIDE"] == (n >= 2**31)
            assert m <= item.global_size[0] * item.params["VALUES"]


def test_searchsorted_with_wide_places(rng, queue, monkeypatch):
    monkeypatch.setattr(parts, "INDEX_LIMIT", 1000)
    keys = np.sort(rng.integers(0, 99, 5000, np.int32))
    device, search = session_of(queue).device, SEARCH.algorithm("binary-search")
    problem = SearchProblem(5000, 333, keys.dtype, True)
    values = rng.integers(-5, 120, 333, np.int32)
    config = search.configure(problem, device, {"WG_SIZE": 64, "VALUES": 4})
    plan = search.plan(problem, config, device)
    executable = session_of(queue).executable("wide search", lambda: plan)
    found = execute(executable, {"keys": keys, "values": values}, queue).outputs["places"]
    np.testing.assert_array_equal(found, np.searchsorted(keys, values, "right"))


# --------------------------------------------------------------------- threads


def test_threads_select_at_once(rng, queue):
    data = [rng.integers(0, 10**6, n, np.int32) for n in (N, N, 300)]
    wrong = []

    def work(keys):
        for _ in range(10):
            try:
                check(ol.topk(keys, 20, queue=queue), right_topk(keys, 20))
                np.testing.assert_array_equal(ol.unique(keys, queue=queue), np.unique(keys))
            except AssertionError as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(keys,)) for keys in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

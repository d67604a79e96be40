"""The largest or smallest keys and where they were, against NumPy."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radix_checks import SKEWS, skewed
from select_checks import GROUPS, N, check, hard_floats, right_topk, run_select

import opencl_lab as ol
from opencl_lab.core import kernels
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.runtime.session import session_of

FORMS = {"alone": {}, "groups": {**GROUPS, "DIGIT_BITS": 8}}


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
        ("float16", "groups", 300, True),
        ("uint8", "groups", N, False),
        ("int64", "alone", 300, True),
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
            how = {"algorithm": "radix-select", "config": FORMS[form]}
            results = ol.topk(keys, k, largest=largest, queue=queue, **how)
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


@pytest.mark.parametrize("form", FORMS)
def test_topk_with_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^31 keys need, in short rows; in two runs."""
    need(form, queue)
    monkeypatch.setattr(kernels, "INDEX_LIMIT", 1000)
    keys = skewed("zipf", rng).reshape(1, -1)
    problem = TopkProblem(N, 500, keys.dtype)
    for _ in range(2):
        plan, values, places = run_select(problem, keys, queue, f"wide {form}", **FORMS[form])
        assert plan.launches[0].params["WIDE"]
        chosen = np.sort(right_topk(keys, 500)[1][0])
        np.testing.assert_array_equal(places[0], chosen)
        np.testing.assert_array_equal(values[0], keys[0][chosen])

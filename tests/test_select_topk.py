"""The largest or smallest keys and where they were, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from radix_checks import SKEWS, skewed
from select_checks import GROUPS, N, check, right_topk, run_select

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


def test_topk_axes_views_and_outs(side, rng):
    whole = rng.integers(0, 50, (7, 40, 6), np.int32)
    view = np.s_[::2, ::-1] if side.name == "host" else np.s_[1:5]
    keys, there = whole[view], side.put(whole)
    for axis in (0, 1, -1, None):
        moved = keys.reshape(-1) if axis is None else np.moveaxis(keys, axis, -1)
        expected = right_topk(moved, 3)
        if axis is not None:
            expected = [np.moveaxis(part, -1, axis) for part in expected]
        results = ol.topk(there[view], 3, axis=axis, queue=side.queue)
        check(results, expected)
        assert all(isinstance(part, side.kind) for part in results)
        shape = expected[0].shape
        out = side.put(np.zeros(shape, np.int32)), side.put(np.zeros(shape, np.int64))
        back = ol.topk(there[view], 3, axis=axis, out=out, queue=side.queue)
        assert back[0] is out[0] and back[1] is out[1]
        check(out, expected)
    np.testing.assert_array_equal(side.get(there), whole)


def test_topk_out_in_the_memory_of_the_input(side, rng):
    keys = rng.integers(0, 10**6, 500)
    given_keys = side.put(keys)
    out = given_keys[:400], side.put(np.zeros(400, np.int64))
    ol.topk(given_keys, 400, out=out, queue=side.queue)
    check(out, right_topk(keys, 400))


def test_topk_of_nothing(side):
    for a, k, axis in ((np.zeros((3, 0)), 0, -1), (np.zeros((0, 4)), 2, -1), (np.ones(5), 0, 0)):
        values, indices = ol.topk(side.put(a), k, axis=axis, queue=side.queue)
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

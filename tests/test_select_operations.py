"""topk, unique and searchsorted in the lab: data, references, comparison, commands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from command_line import QUICK, oclab

import opencl_lab as ol
from opencl_lab.lab.engine.implementations import Workload
from opencl_lab.lab.engine.ours import OpenCL
from opencl_lab.lab.ops.select.references import (
    ANY_PLACES,
)
from opencl_lab.lab.ops.select.searchsorted import SEARCHSORTED
from opencl_lab.lab.ops.select.topk import TOPK
from opencl_lab.lab.ops.select.unique import UNIQUE
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.reference.peers import OurCall

PROBLEMS = (
    (TOPK, {"n": 0}),
    (TOPK, {"n": 5_000, "k": 0}),
    (TOPK, {"n": 5_000, "k": 1_000, "order": "few-unique"}),
    (TOPK, {"n": 300, "k": 300, "dtype": "float64", "smallest": True}),
    (TOPK, {"n": 5_000, "k": 70, "order": "reversed"}),
    (UNIQUE, {"n": 0, "counts": True}),
    (UNIQUE, {"n": 20_000, "counts": True}),
    (UNIQUE, {"n": 3_000, "distinct": 1, "dtype": "float64"}),
    (SEARCHSORTED, {"n": 0, "m": 5}),
    (SEARCHSORTED, {"n": 300, "m": 5_000, "dtype": "uint8", "right": True}),
    (SEARCHSORTED, {"n": 3_000, "order": "sorted"}),
)
HERE = [
    (operation, reference, options)
    for operation, options in PROBLEMS
    for reference in operation.references
    if reference.kind == "c" or reference.name.startswith("numpy")
]


def made(operation, seed=0, **options):
    problem = operation.problem(**options)
    inputs = operation.generate(problem, seed, **options)
    return problem, inputs, operation.expected(problem, inputs)


@pytest.mark.few
@pytest.mark.parametrize(
    ("operation", "reference", "options"),
    HERE,
    ids=lambda item: getattr(item, "name", None) or "-".join(map(str, item.values())),
)
def test_references_are_right(operation, reference, options):
    problem, inputs, expected = made(operation, **options)
    room = operation.room(problem, expected)
    for threads in (1, 3) if reference.threaded else (1,):
        prepared = prepare(reference, problem, inputs, room, threads)
        prepared.run()
        assert operation.compare(problem, inputs, expected, prepared.outputs()).ok
        prepared.close()


def test_parallel_references_look_through_rows_and_special_numbers(rng):
    """Several rows for each thread, fewer than threads, NaN, and both zeros."""
    special = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0])
    for rows in (2, 9):
        keys = rng.choice(special, (rows, 501))
        for smallest in (False, True):
            problem, inputs = TOPK.problem_of({"keys": keys}, k=300, smallest=smallest)
            expected = TOPK.expected(problem, inputs)
            for reference in TOPK.references[:2]:
                prepared = prepare(reference, problem, inputs, TOPK.room(problem, expected), 3)
                prepared.run()
                assert TOPK.compare(problem, inputs, expected, prepared.outputs()).ok


def test_wrong_values_and_places_are_seen():
    problem, inputs, expected = made(TOPK, n=500, k=50, order="few-unique")
    assert TOPK.compare(problem, inputs, expected, expected).ok
    ties = np.flatnonzero(np.diff(expected["values"][0]) == 0)[0]
    swapped = expected["places"].copy()
    swapped[0, [ties, ties + 1]] = swapped[0, [ties + 1, ties]]
    values = expected["values"]
    assert not TOPK.compare(problem, inputs, expected, {"values": values, "places": swapped}).ok
    assert TOPK.compare(problem, inputs, expected, {"values": values, ANY_PLACES: swapped}).ok
    twice, outside = swapped.copy(), swapped.copy()
    twice[0, ties], outside[0, 0] = twice[0, ties + 1], 500
    other = np.roll(swapped, 1)
    for places in (twice, outside, -1 - swapped, other):
        outputs = {"values": values, ANY_PLACES: places}
        assert not TOPK.compare(problem, inputs, expected, outputs).ok
    assert not TOPK.compare(problem, inputs, expected, {**expected, "values": values + 1}).ok


def test_wrong_numbers_of_keys_and_counts_are_seen():
    problem, inputs, expected = made(UNIQUE, n=500, counts=True)
    m = expected["values"].size
    room = {name: np.resize(expected[name], 500) for name in ("values", "counts")}
    for found, right in ((m, True), (m - 1, False), (m + 1, False)):
        outputs = {**room, "found": np.array([found])}
        assert UNIQUE.compare(problem, inputs, expected, outputs).ok == right
    assert not UNIQUE.compare(problem, inputs, expected, {**expected, "counts": room["values"]}).ok
    moved = {**expected, "counts": expected["counts"] + 1}
    assert not UNIQUE.compare(problem, inputs, expected, moved).ok


@pytest.mark.parametrize("right", [False, True])
def test_wrong_places_in_sorted_keys_are_seen(right):
    problem, inputs, expected = made(SEARCHSORTED, n=300, m=50, right=right)
    assert SEARCHSORTED.compare(problem, inputs, expected, expected).ok
    for place in (0, 25, 49):
        moved = expected["places"].copy()
        moved.reshape(-1)[place] += 1
        assert not SEARCHSORTED.compare(problem, inputs, expected, {"places": moved}).ok


@pytest.mark.parametrize(("name", "array"), [(0, "values"), (1, "places")])
def test_each_array_that_a_call_returns_is_checked(device, name, array):
    problem, inputs, expected = made(TOPK, n=300, k=9)

    def wrong(keys, *, queue=None):
        parts = [expected["values"].copy(), expected["places"].copy()]
        parts[name][0, -1] += 1
        return tuple(parts)

    calls = replace(TOPK.calls, ours=lambda _, arrays, __: OurCall(wrong, (arrays["keys"],), {}))
    item = OpenCL(Workload(TOPK, problem, inputs, expected), device, "sort", calls=calls)
    item.attempt(item.start)
    item.check()
    assert item.status == "correct"
    item.measure()
    item.verify()
    assert item.status == "correctness", array
    item.close()


def test_options_that_make_no_problem():
    with pytest.raises(ol.InvalidProblem, match="k must be 0 to 5"):
        TOPK.problem(n=5, k=6)
    with pytest.raises(ol.InvalidProblem, match="rows must not be negative, not -1"):
        TOPK.problem(n=10, k=3, rows=-1)
    with pytest.raises(ol.InvalidConfig, match="VALUES must be at most"):
        ol.searchsorted([1, 2], [1], config={"VALUES": 10**6})
    with pytest.raises(ol.InvalidProblem, match="distinct must be 1 or more"):
        UNIQUE.problem(distinct=0)
    with pytest.raises(ol.InvalidProblem, match="n is given by the input file"):
        UNIQUE.problem_of({"keys": np.ones(3)}, n=3)
    with pytest.raises(ol.InvalidProblem, match="not in order"):
        SEARCHSORTED.problem_of({"keys": np.array([2, 1]), "values": np.ones(2)})
    with pytest.raises(ol.InvalidProblem, match="single number"):
        TOPK.problem_of({"keys": np.array(3)})
    assert TOPK.problem(n=7).k == 7 and TOPK.problem().k == 100
    assert TOPK.problem(n=7, k=2, smallest=True).title == "the 2 smallest of 7 int32 keys"


# --- commands ------------------------------------------------------------------------------------


def test_files_of_unique_and_searchsorted(tmp_path):
    keys, values = tmp_path / "keys.npy", tmp_path / "values.npy"
    np.save(keys, np.array([[3.0, 1.0], [3.0, 2.0]]))
    result = oclab("unique", keys, "-o", tmp_path / "once.npy", *QUICK)
    assert np.load(tmp_path / "once.npy").tolist() == [1, 2, 3]
    np.save(values, np.array([[2, 9], [0, 3]]))
    result = oclab("searchsorted", keys, values, "-o", tmp_path / "places.npy", *QUICK)
    assert result.returncode == 2 and "not in order" in result.stderr
    sorted_keys = tmp_path / "sorted.npy"
    np.save(sorted_keys, np.array([1.0, 2.0, 3.0]))
    result = oclab("searchsorted", sorted_keys, values, "-o", tmp_path / "places.npy", *QUICK)
    assert result.returncode == 0, result.stderr
    assert np.load(tmp_path / "places.npy").tolist() == [[1, 3], [0, 2]]


def test_what_has_no_parameters_is_not_tuned():
    result = oclab("tune", "topk", "--n", 50, "--algorithm", "sort")
    assert result.returncode == 2
    assert "the algorithm sort of topk has no parameters to tune" in result.stderr

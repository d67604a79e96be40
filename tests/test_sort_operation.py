"""The operation sort: data, comparing, and properties of its results."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_lab.lab.ops.keys import ORDERS
from opencl_lab.lab.ops.sort import check
from opencl_lab.lab.ops.sort.check import find_fault
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.out_of_core import InMemory
from opencl_lab.ops.sort.problem import SortProblem

# -------------------------------------------------------------- the operation


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_generated_keys_have_the_order_they_claim(order, dtype):
    problem = SORT.problem(n=1_000, dtype=dtype)
    (keys,) = SORT.generate(problem, 3, order=order)["keys"]
    again = SORT.generate(problem, 3, order=order)["keys"]
    np.testing.assert_array_equal(keys, again[0])
    assert keys.dtype == problem.dtype
    descents = np.count_nonzero(keys[1:] < keys[:-1])
    unique = np.unique(keys).size
    top = int(keys.argmax())
    claims = {
        "random": 400 < descents < 600,
        "sorted": descents == 0 and unique > 100,
        "reversed": not (keys[1:] > keys[:-1]).any() and unique > 100,
        "nearly-sorted": 0 < descents <= 40,
        "few-unique": 2 <= unique <= 16 and descents > 100,
        "equal": unique == 1,
        "zipf": 5 < unique < 500 and 150 < np.unique(keys, return_counts=True)[1].max() < 500,
        "organ-pipe": not (keys[1 : top + 1] < keys[:top]).any()
        and not (keys[top + 1 :] > keys[top:-1]).any()
        and 400 < top < 600,
    }
    assert claims[order]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "expected", "actual", "ok", "worst"),
    [
        ("float64", [1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True, 0.0),
        ("float64", [1.0, 2.0], [1.0, 2.5], False, 0.5),
        ("float64", [1.0, np.nan], [1.0, 2.0], False, np.inf),
        ("float64", [np.inf, 1.0], [np.inf, 4.0], False, 3.0),
        ("float64", [], [], True, 0.0),
        ("float32", [1, 2, np.inf, np.nan], [1, 2, np.nan, np.inf], False, None),
        ("float32", [1, 2, np.inf, np.nan], [1, 2, 3, np.nan], False, None),
        ("float32", [1, 2, np.inf, np.nan], [np.nan, 2, np.inf, np.nan], False, None),
        ("uint64", [2**63], [2**63 + 1], False, None),  # the last bit of long keys
    ],
)
def test_compare_has_no_tolerance_and_warns_of_nothing(dtype, expected, actual, ok, worst):
    problem = SORT.problem(n=len(expected), dtype=dtype)
    right, given = ({"sorted": np.array([keys], dtype)} for keys in (expected, actual))
    difference = SORT.compare(problem, {}, right, given)
    assert difference.ok is ok
    if worst is not None:
        np.testing.assert_equal(difference.max_abs, worst)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("form", [{"value_bytes": 8}, {"indices": True}])
def test_values_and_indices_can_be_tuned(form, descending, queue):
    problem = SortProblem(300, np.dtype("uint8"), 3, descending, **form)
    inputs = SORT.generate(problem, 1)
    right, found = SORT.expected(problem, inputs), SORT.run(problem, inputs, queue=queue).outputs
    assert found.keys() == right.keys() and SORT.compare(problem, inputs, right, found).ok
    wrong = {**found, "sorted_values": np.roll(found["sorted_values"], 1, axis=1)}
    assert not SORT.compare(problem, inputs, right, wrong).ok


# ---------------------------------------------------- results found right or wrong in parts


class _Changed(InMemory):
    """Keys of which some bytes are others than they were."""

    def __init__(self, array, changes):
        array = array.copy()
        for place, key in changes.items():
            array[place] = key
        super().__init__(array)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({(0, 5): 100_000}, "not in order"),
        ({(2, 0): 0}, "other keys"),
        ({(1, 299): 10_000}, "other keys"),
        ({(1, 100): 399, (1, 101): 402}, "other keys"),  # of the same sum
        ({(1, 127): 428, (1, 128): 427}, "not in order"),  # at the edge of a block
        ({(0, 299): 300, (1, 0): 299}, "other keys"),  # in order, and from another row
    ],
)
@pytest.mark.parametrize("block", [128, 300, 650, 1 << 18])
def test_faults_of_a_result_are_found(block, changes, words, monkeypatch):
    monkeypatch.setattr(check, "BLOCK", block)
    right = np.arange(900, dtype=np.int32).reshape(3, 300)
    problem = SortProblem(300, right.dtype, 3)
    looked = []
    given = InMemory(np.ascontiguousarray(right[:, ::-1]))
    fault = find_fault(problem, given, _Changed(right, changes), looked.append)
    if words is None:
        assert fault is None and sum(looked) == 900
    else:
        assert words in fault


def test_sums_tell_what_neighbours_do_not():
    # Sorted, of the same plain sum, and other keys.
    given, result = np.array([[1, 5, 6]], np.int8), np.array([[2, 4, 6]], np.int8)
    problem = SortProblem(3, given.dtype)
    assert "other keys" in find_fault(problem, InMemory(given), InMemory(result))
    zeros = np.array([[0.0, -0.0]], np.float32)
    assert find_fault(SortProblem(2, zeros.dtype), InMemory(zeros), InMemory(zeros)) is None
    plain = np.array([[0.0, 0.0]], np.float32)
    assert find_fault(SortProblem(2, zeros.dtype), InMemory(zeros), InMemory(plain)) is not None

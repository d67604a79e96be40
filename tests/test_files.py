"""A user's arrays in files, and what becomes of their values."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_lab.errors import InvalidProblem
from opencl_lab.files import convert
from opencl_lab.operation import get_operation


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([1 + 0j], "complex128", "float32"),
        ([1.0, np.nan], "float64", "int32"),
        ([np.inf], "float32", "int64"),
        ([-np.inf], "float16", "int64"),
        ([3e10], "float64", "int32"),
        ([2.0**63], "float64", "int64"),
        ([2.0**64], "float32", "uint64"),
        ([-1.0], "float64", "uint8"),
        ([0.5], "float32", "int8"),
        ([300], "int64", "int8"),
        ([-1], "int8", "uint64"),
        ([2**63 + 5], "uint64", "int64"),
        ([1e300], "float64", "float32"),
    ],
)
def test_conversions_that_change_a_value_are_refused(values, source, target):
    with pytest.raises(InvalidProblem, match="convert"):
        convert(np.array([0, *values], source), target)


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([0.1, np.nan, -np.inf, 1e-300], "float64", "float32"),
        ([2**53 + 1], "int64", "float64"),
        ([-128.0, 127.0], "float64", "int8"),
        ([2.0**63, 0.0], "float64", "uint64"),
        ([-(2.0**63)], "float32", "int64"),
        ([127, 0], "uint64", "int8"),
        ([True, False], "bool", "int32"),
        ([1 + 2j], "complex128", "complex64"),
        ([], "float64", "int8"),
    ],
)
def test_other_conversions_are_those_of_numpy(values, source, target):
    array = np.array(values, source)
    result = convert(array, target)
    assert result.dtype == target
    np.testing.assert_array_equal(result, array.astype(target))


@pytest.mark.parametrize("name", ["sort", "gemm"])
def test_operations_keep_the_values_of_files(name):
    chosen = get_operation(name)
    arrays = {name: np.full((4, 4), 1 + 1j) for name in chosen.inputs}
    with pytest.raises(InvalidProblem, match="complex"):
        chosen.problem_of(arrays, dtype="float32")

"""Freivalds' check: right results pass, wrong ones do not, and rows say how they were checked."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.lab.engine.stored import measurement_of
from opencl_lab.lab.ops.gemm import freivalds
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.host.blas import multiply_by_blas
from opencl_lab.ops.gemm.problem import GemmProblem

CASES = {
    "plain": GemmProblem(150, 170, 190),
    "turned": GemmProblem(150, 170, 190, np.dtype("f8"), -0.5, 1.5, True, True),
    "complex": GemmProblem(90, 80, 70, np.dtype("c8"), 2 - 1j, 1j, "C", True, bias="row"),
    "stack": GemmProblem(
        60, 50, 40, batch=6, stacks=((2, True, False), (3, False, True)), bias="column"
    ),
    "no sums": GemmProblem(60, 50, 40, np.dtype("f4"), 0, 2),
    "empty": GemmProblem(0, 50, 40),
}
DATA = {
    "signed": lambda x, rng: x,
    "positive": lambda x, rng: abs(x).astype(x.dtype),
    "scaled": lambda x, rng: (x * 10.0 ** rng.integers(-8, 8, x.shape)).astype(x.dtype),
}


def data_of(problem, kind="signed"):
    rng = np.random.default_rng(7)
    return {name: DATA[kind](array, rng) for name, array in GEMM.generate(problem, 7).items()}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("case", CASES)
def test_right_results_pass(case, kind):
    problem = CASES[case]
    inputs = data_of(problem, kind)
    found = freivalds.check(problem, inputs, multiply_by_blas(problem, inputs))
    assert found.ok and found.error_over_bound < 0.2
    if case == "plain":  # the bound is not much wider than what results are off by
        assert found.error_over_bound > 1e-3
    assert "20 vectors: misses a wrong element with p = 1e-6" in str(found)


@pytest.mark.parametrize("case", [name for name in CASES if name != "empty"])
def test_wrong_results_do_not_pass(case):
    problem = CASES[case]
    inputs = data_of(problem)
    right = multiply_by_blas(problem, inputs)
    tile = right.copy()
    tile[..., 16:32, 16:32] = right[..., :16, :16]
    row = right.copy()
    row[..., -1, :] = 0
    factor = right * right.dtype.type(1.01)
    none = np.zeros_like(right)
    one = right.copy()  # of a stack
    one[(0,) * (right.ndim - 2)][:16, :16] = 0
    spoiled = right.copy()
    spoiled[..., 3, 4] = np.nan
    for wrong in (tile, row, factor, none, one, spoiled):
        assert not freivalds.check(problem, inputs, wrong).ok
    assert not freivalds.check(problem, inputs, right[..., :-1, :]).ok


def test_a_single_wrong_element_is_found_by_each_second_vector():
    problem = GemmProblem(40, 50, 60, np.dtype("f8"))
    inputs = data_of(problem)
    wrong = multiply_by_blas(problem, inputs)
    spoiled = wrong.copy()
    spoiled[5, 6] += 1
    bound = 1 / freivalds.check(problem, inputs, spoiled, vectors=1).error_over_bound
    wrong[5, 6] += 1.5 * bound
    found = [
        not freivalds.check(problem, inputs, wrong, vectors=1, seed=seed).ok for seed in range(40)
    ]
    assert sum(found) > 12


def test_what_is_too_large(monkeypatch):
    small = GemmProblem(100, 100, 100)
    assert not freivalds.too_large(small)
    assert freivalds.too_large(GemmProblem(100_000, 100_000, 100_000))
    monkeypatch.setattr(freivalds, "host_memory", lambda: 500_000)
    assert freivalds.too_large(small)
    assert not freivalds.too_large(replace(small, activation="relu"))
    assert freivalds.stand_in(small).strides == (0, 0)


def test_rows_say_so(monkeypatch):
    monkeypatch.setattr(freivalds, "FLOPS", 1.0)
    rows = ol.compare("gemm", algorithms="naive", against=["c:seq"], repeats=1, size=90)
    assert [row.status for row in rows] == ["correct", "correct"]
    for row in rows:
        assert "checked by Freivalds, 20 vectors" in row.note
        document = row.as_row()
        assert document["max_abs_diff"] is None and 0 < document["error_over_bound"] < 1
        read = measurement_of(document).difference
        assert math.isnan(read.max_abs) and read.ok

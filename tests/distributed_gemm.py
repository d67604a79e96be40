"""Checks of products of distributed matrices; see `ranks`."""

import sys

import numpy as np
import pytest
from gemm_checks import SMALL

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.space import Config
from opencl_lab.distributed import (
    DistArray,
    WrongProduct,
    block_cyclic,
    blocks,
    device_of,
    slab,
    summa,
)
from opencl_lab.distributed import gemm as multiply
from opencl_lab.distributed.freivalds import verify_product
from opencl_lab.distributed.grid import Grid, Operand, best_grid, grids
from opencl_lab.distributed.node import node_of
from opencl_lab.ops.gemm.packed.tiles import Form
from opencl_lab.ops.gemm.problem import GemmProblem

EPSILON = {"e": 1e-3, "f": 1e-6, "d": 1e-15, "F": 1e-6, "D": 1e-15}


def matrix(rng, shape, dtype=np.float32):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 99, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def near(result, expected, k):
    whole = result.gather()
    assert whole.dtype == result.dtype and whole.shape == expected.shape
    if whole.dtype.kind in "iu":
        assert np.array_equal(whole, expected)
        return
    error = np.abs(whole - expected).max(initial=0)
    assert error <= 8 * (k + 4) ** 0.5 * EPSILON[whole.dtype.char] * 4, error


def distributions(size):
    grid = {1: (1, 1), 2: (2, 1), 3: (1, 3), 4: (2, 2), 7: (7, 1)}[size]
    return [slab(0), slab(1), blocks(grid), block_cyclic(grid, (5, 3))]


def check_every_grid(comm, rng):
    m, n, k = 61, 45, 77
    a, b, c = matrix(rng, (m, k)), matrix(rng, (k, n)), matrix(rng, (m, n))
    expected = 0.5 * (a.astype(float) @ b) + 2.0 * c
    for grid in grids(comm.size):
        parts = (grid.rows, grid.columns, grid.layers)
        given = [DistArray.from_global(x, slab(i % 2)) for i, x in enumerate((a, b, c))]
        found = multiply(*given[:2], c=given[2], alpha=0.5, beta=2.0, grid=parts, check=True)
        assert found.distribution == slab(0)
        near(found, expected, k)
        assert np.array_equal(given[2].gather(), c)


def check_distributions_and_transposes(comm, rng):
    m, n, k = 40, 33, 51
    a, b = matrix(rng, (m, k), np.float64), matrix(rng, (k, n), np.float64)
    for i, before in enumerate(distributions(comm.size)):
        for ta, tb in ((False, True), (True, False), (True, True))[i % 3 :: 2]:
            left = DistArray.from_global(a.T.copy() if ta else a, before)
            right = DistArray.from_global(b.T.copy() if tb else b, before)
            wanted = distributions(comm.size)[-1 - i]
            found = multiply(
                left, right, trans_a=ta, trans_b="T" if tb else "N", distribution=wanted
            )
            assert found.distribution == wanted
            near(found, a @ b, k)


def check_all_ranks_pack_b_together(comm, rng):
    """Parts whose borders are not those of panels, in small panels."""
    module, node = sys.modules[multiply.__module__], node_of(comm)
    before = module.form_ahead, module.plain_gemm
    config = Config(SMALL["packed"] | {"PACK_B": "ahead"})

    def alone(*given, **how):
        raise AssertionError("a rank packs B alone")

    def small(problem, device):
        assert problem.m == -(-m // comm.size)
        return Form.of(problem, config)

    module.form_ahead = small
    module.plain_gemm = before[1] if node is None else alone
    try:
        for first, (m, n, k) in enumerate(((67, 37, 29), (5, 5, 40))):
            for i, dtype in enumerate((np.float32, np.float64, np.float16), first):
                a, b, c = (matrix(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
                turned = i % 2 == 1
                for cut in distributions(comm.size)[: 3 if node else 4]:
                    left = DistArray.from_global(a.T.copy() if turned else a, slab(int(turned)))
                    right = DistArray.from_global(b.T.copy() if turned else b, cut)
                    how = {"trans_a": turned, "trans_b": turned, "beta": 2.0 * turned}
                    found = multiply(left, right, c=DistArray.from_global(c), check=True, **how)
                    near(found, a.astype(float) @ b + 2.0 * turned * c, k)
    finally:
        module.form_ahead, module.plain_gemm = before


def check_types(comm, rng):
    m, n, k = 30, 26, 45
    for dtype in ("float16", "complex64", "complex128", "int8", "uint32", "int64"):
        a, b = matrix(rng, (k, m), dtype), matrix(rng, (k, n), dtype)
        conjugated = "C" if a.dtype.kind == "c" else "T"
        with np.errstate(over="ignore"):
            wide = np.float64 if dtype == "float16" else a.dtype
            expected = a.conj().T.astype(wide) @ b.astype(wide)
        given = map(DistArray.from_global, (a, b))
        near(multiply(*given, trans_a=conjugated, check=True), expected, k)


def check_thin_and_empty(comm, rng):
    for m, n, k in ((1, 50, 3), (50, 1, 40), (2, 2, 3000), (0, 5, 4), (5, 4, 0)):
        a, b = matrix(rng, (m, k)), matrix(rng, (k, n))
        found = multiply(*map(DistArray.from_global, (a, b)))
        near(found, a.astype(float) @ b, k)
    a, c = matrix(rng, (6, 9)), matrix(rng, (6, 9))
    b = np.full((9, 9), np.nan, np.float32)
    a, b, c = map(DistArray.from_global, (a, b, c))
    assert np.array_equal(multiply(a, b, alpha=0, beta=2, c=c).gather(), 2 * c.gather())


def check_parts_on_devices(comm, rng):
    a, b = matrix(rng, (20, 30)), matrix(rng, (30, 10))
    made = [DistArray.from_global(x) for x in (a, b)]
    there = [one.like(ol.to_device(one.local, device_of(comm))) for one in made]
    found = multiply(*there)
    assert found.on_device
    near(found, a @ b, 30)


def check_one_rank_gives_equal_bits(comm, rng):
    a, b = matrix(rng, (30, 3000)), matrix(rng, (3000, 20))
    if comm.size == 1:
        given = map(DistArray.from_global, (a, b))
        assert np.array_equal(multiply(*given).gather(), ol.gemm(a, b))


def check_the_grid_is_the_one_that_sends_least(comm, rng):
    tall = DistArray((10_000, 8), np.float32, None, slab(0))
    small = DistArray((8, 8), np.float32)
    grid = best_grid(comm, GemmProblem(10_000, 8, 8), tall.layout, small.layout, tall.layout)
    assert grid == Grid(comm.size, 1)
    wide = DistArray((8, 10_000), np.float32, None, slab(1))
    grid = best_grid(comm, GemmProblem(8, 8, 10_000), wide.layout, tall.layout, small.layout)
    assert grid == Grid(1, 1, comm.size)
    if comm.size == 4:  # the result need not be moved
        even, square = DistArray((400, 400)).layout, blocks((2, 2)).layout((400, 400), 4)
        problem = GemmProblem(400, 400, 400)
        assert best_grid(comm, problem, even, even, even) == Grid(4, 1)
        assert best_grid(comm, problem, square, square, square) == Grid(2, 2)


def check_each_number_is_on_one_rank(comm, rng):
    problem = GemmProblem(11, 7, 23, trans_a=True)
    shapes = {"a": (23, 11), "b": (23, 7), "c": (11, 7), "result": (11, 7)}
    for grid in grids(comm.size):
        for name, shape in shapes.items():
            seen = np.zeros(shape, int)
            for rank in range(comm.size):
                rows, columns = Operand(name, problem, grid).runs(rank)
                if rows and columns:
                    seen[slice(*rows[0]), slice(*columns[0])] += 1
            assert (seen == 1).all(), (name, grid)


def check_a_wrong_product_is_found(comm, rng):
    a, b = (DistArray.from_global(matrix(rng, (40, 40))) for _ in range(2))
    modules = sys.modules[multiply.__module__], summa
    plain = summa.plain_gemm

    def wrong(left, right, **how):
        result = plain(left, right, **how)
        if comm.rank == comm.size - 1:
            result[-1, -1] += 0.25
        return result

    for module in modules:
        module.plain_gemm = wrong
    try:
        for grid in (None, (comm.size, 1)):
            with pytest.raises(WrongProduct, match="rows of the product are wrong"):
                multiply(a, b, check=True, grid=grid)
    finally:
        for module in modules:
            module.plain_gemm = plain
    multiply(a, b, check=True)


def check_small_faults_of_large_products_are_found(comm, rng):
    """An element that is missing, or half of a product in float16."""
    for dtype, n, rows in ((np.float32, 1024, 1), (np.float16, 256, 100)):
        a, b = (rng.random((n, n)).astype(dtype) for _ in range(2))
        right = DistArray.from_global(a.astype(np.float64) @ b).redistribute(slab(0))
        problem = GemmProblem(n, n, n, np.dtype(dtype))
        given = [DistArray.from_global(x) for x in (a, b)]
        found = right.like(right.local.astype(dtype))
        verify_product(found, *given, None, problem)
        if comm.rank == 0:
            found.local[:rows, : 1 if rows == 1 else n] = 0
        with pytest.raises(Exception, match="rows of the product are wrong"):
            verify_product(found, *given, None, problem)
    large = DistArray.from_global(np.full((64, 64), 1e25, np.float32))
    assert np.isinf(multiply(large, large, check=True).gather()).all()


def check_what_does_not_fit_is_refused_on_all_ranks(comm, rng):
    a, b = DistArray((4, 5), np.float32), DistArray((4, 5), np.float32)
    for how, kind, told in (
        ({}, InvalidProblem, "5 columns and b has 4 rows"),
        ({"trans_b": True, "beta": 1}, InvalidProblem, "c must have the shape"),
        ({"trans_b": "X"}, InvalidProblem, "trans_a and trans_b"),
        ({"trans_b": True, "alpha": 1j}, InvalidProblem, "complex"),
        ({"trans_b": True, "grid": (comm.size, 2)}, InvalidConfig, "a grid of"),
        ({"trans_b": True, "precision": "half"}, InvalidProblem, "precision"),
    ):
        with pytest.raises(kind, match=told):
            multiply(a, b, **how)
    with pytest.raises(InvalidProblem, match="a is float32, and b is float64"):
        multiply(a, DistArray((5, 4), np.float64))
    for wrong in (DistArray(4, np.float32), np.zeros((4, 4), np.float32)):
        with pytest.raises(InvalidProblem, match="two axes"):
            multiply(wrong, b)
    if comm.size > 1:
        with pytest.raises(InvalidConfig, match="must be the same on all ranks"):
            multiply(a, b, trans_b=True, alpha=float(comm.rank))

"""The references of sort against NumPy, and what C may not do to memory."""

import numpy as np
import pytest
from sort_checks import bits, stable_order

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.reference.build import compiler, load
from opencl_lab.lab.reference.descriptor import CReference
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.ops.sort.problem import SortProblem

DTYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")
C_REFERENCES = [r for r in SORT.references if isinstance(r, CReference)]
MERGE_SORTS = [r for r in C_REFERENCES if r.name != "c:qsort"]
SPECIALS = (np.nan, np.inf, -np.inf, -0.0, 0.0, 0.0, -0.0, np.nan)
CANARY = 0xA5


@pytest.fixture(autouse=True)
def needs_openmp():
    found = compiler()
    if found.no_openmp:
        pytest.skip(found.no_openmp)


def keys_of(rng, rows, n, dtype):
    """Return keys of the whole range with many that are equal, and special floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        keys = rng.standard_normal((rows, n)).astype(dtype)
        keys[rng.random((rows, n)) < 0.2] = 1.5
        flat = keys.reshape(-1)
        for special in SPECIALS if flat.size > 20 else SPECIALS[: flat.size]:
            flat[rng.integers(0, flat.size)] = special
        return keys
    if dtype.kind == "b":
        return rng.random((rows, n)) < 0.5
    limits = np.iinfo(dtype)
    keys = rng.integers(limits.min, limits.max, (rows, n), dtype, endpoint=True)
    keys[rng.random((rows, n)) < 0.2] = 7
    return keys


def sort_guarded(reference, problem, keys, threads=1):
    """Sort between canaries, and see that they and the input are as before."""
    itemsize = keys.dtype.itemsize
    memory = np.full(keys.nbytes + 16 * itemsize, CANARY, np.uint8)
    inner = slice(8 * itemsize, 8 * itemsize + keys.nbytes)
    output = memory[inner].view(keys.dtype).reshape(keys.shape)
    before = keys.copy()
    function = load(reference, problem)
    arguments = reference.arguments(problem, {"keys": keys}, {"sorted": output})
    function(*arguments, *((threads,) if reference.threaded else ()))
    np.testing.assert_array_equal(bits(keys), bits(before))
    outside = np.ones(memory.size, bool)
    outside[inner] = False
    assert (memory[outside] == CANARY).all()
    return output


@pytest.mark.few(4)
@pytest.mark.parametrize("reference", C_REFERENCES, ids=lambda r: r.name)
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_as_numpy(rng, reference, descending, dtype):
    shapes = [(1, n) for n in (0, 1, 2, 3, 16, 17, 1000, 40_003)]  # more than one task
    shapes += [(0, 5), (3, 0), (5, 1), (7, 1000), (300, 40), (3, 20_001)]
    for rows, n in shapes:
        keys = keys_of(rng, rows, n, dtype)
        problem = SortProblem(n, np.dtype(dtype), rows, descending)
        expected = np.take_along_axis(keys, stable_order(keys, descending), -1)
        for threads in (1, 2, 3) if reference.threaded else (1,):
            output = sort_guarded(reference, problem, keys, threads)
            np.testing.assert_array_equal(output, expected, strict=True)


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "float16"])
def test_sorts_small_types(rng, dtype):
    keys = keys_of(rng, 2, 5000, dtype)
    problem = SortProblem(5000, np.dtype(dtype), 2)
    for reference in C_REFERENCES:
        try:
            output = sort_guarded(reference, problem, keys, 2)
        except ReferenceUnavailable as error:  # a compiler without half precision
            pytest.skip(str(error))
        np.testing.assert_array_equal(output, np.sort(keys, axis=-1))


@pytest.mark.parametrize("reference", MERGE_SORTS, ids=lambda r: r.name)
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_merge_sorts_are_stable(rng, reference, descending, dtype):
    # Zeros of both signs are equal but can be told apart, and so are NaNs of many kinds.
    keys = rng.choice(np.array([-1, -0.0, 0.0, 1], dtype), (2, 50_001))
    nans = rng.random(keys.shape) < 0.3
    kinds = rng.integers(1, 1000, keys.shape).astype(f"u{keys.dtype.itemsize}")
    bits(keys)[nans] = bits(np.array(np.nan, dtype)) | kinds[nans]
    problem = SortProblem(keys.shape[1], keys.dtype, keys.shape[0], descending)
    order = stable_order(keys, descending=descending)
    expected = bits(np.take_along_axis(keys, order, axis=-1))
    for threads in (1, 2, 3):
        output = sort_guarded(reference, problem, keys, threads)
        np.testing.assert_array_equal(bits(output), expected)


@pytest.mark.few
@pytest.mark.parametrize("reference", SORT.references, ids=lambda r: r.name)
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
def test_every_reference_runs_through_prepare(reference, descending):
    problem = SortProblem(1000, np.dtype("float32"), 2, descending)
    inputs = SORT.generate(problem, 3)
    expected = SORT.expected(problem, inputs)
    if not isinstance(reference, CReference) and reference.unavailable():
        pytest.skip(str(reference.unavailable()))
    like = {name: (array.shape, array.dtype) for name, array in expected.items()}
    prepared = prepare(reference, problem, inputs, like, 2)
    try:
        assert prepared.workers == (2 if reference.threaded else 1)
        for _ in range(2):
            assert 0 < prepared.run() < 60
            assert SORT.compare(problem, inputs, expected, prepared.outputs()).ok
    finally:
        prepared.close()

"""The public matrix product: stacks as of NumPy, element types, bias and activation, any layout."""

from __future__ import annotations

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.lab.ops.gemm.references import gelu
from opencl_lab.ops.gemm.bind import bind
from opencl_lab.ops.gemm.problem import GemmProblem

TOLERANCES = {2: 3e-3, 4: 3e-6, 8: 1e-14}
PLAIN = {"alpha": 1, "beta": 0, "trans_a": False, "trans_b": False, "precision": "native"}


def normal(rng, shape, dtype="float32"):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def right(a, b, alpha=1, beta=0, c=0, bias=0, activation=None):
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    result = alpha * np.matmul(a.astype(wide), b.astype(wide)) + beta * np.asarray(c, wide)
    result = result + np.asarray(bias, wide)
    if activation == "gelu":
        return gelu(result)
    return np.maximum(result, 0) if activation else result


def assert_close(result, expected, dtype="float32"):
    dtype = np.dtype(dtype)
    assert result.dtype == dtype
    assert result.shape == expected.shape
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    largest = max(abs(expected).max(initial=0), 1)
    np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCES[real] * largest)


STACKS = [
    ((), (3,)), ((3,), ()), ((3,), (3,)), ((1,), (4,)), ((2, 3), (3,)), ((2, 1), (1, 3)),
    ((2, 1, 3), (4, 1)), ((2, 3), (2, 1)), ((1, 3, 2), (2, 1, 2)),
    ((2, 1, 2), (1, 3, 2)), ((0,), ()), ((1,), (0,)), ((2, 0), (1,)),
    ((1, 1), (1,)), ((2, 2, 2), (2, 2, 2)),
]  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("trans", [False, True])
def test_stacks_broadcast_as_those_of_numpy(trans, side, rng):
    for ahead_a, ahead_b in STACKS:
        a, b = normal(rng, (*ahead_a, 5, 6)), normal(rng, (*ahead_b, 6, 7))
        stored = [side.put(np.ascontiguousarray(x.swapaxes(-1, -2)) if trans else x)
                  for x in (a, b)]  # fmt: skip
        how = {"algorithm": "naive" if trans else "auto", "queue": side.queue}
        result = ol.gemm(*stored, trans_a=trans, trans_b=trans, **how)
        assert_close(side.get(result), right(a, b))


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(8,), (1, 8), (1, 1, 8), (9, 1), (1, 9, 1)])
def test_a_bias_broadcasts_as_in_numpy(shape, rng, queue):
    a, b, bias = normal(rng, (3, 9, 4)), normal(rng, (3, 4, 8)), normal(rng, shape)
    assert_close(ol.gemm(a, b, bias=bias, queue=queue), right(a, b, bias=bias))
    strided = np.repeat(bias, 2, -1)[..., ::2]
    tall = ol.gemm(a, b[0], bias=strided, queue=queue)  # of one matrix after the other
    assert_close(tall, right(a, b[0], bias=bias))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 4)), ((2, 4, 5), (5,)), ((5,), (3, 1, 5, 4)),
        ((0,), (0,)), ((0, 3), (3,)), ((3, 0), (0,)), ((1,), (1, 1)),
    ],
)  # fmt: skip
def test_vectors_as_numpy(first, second, side, rng):
    """A vector is one row of a or one column of b, whether it is transposed or not."""
    there, queue = side.put, side.queue

    def same(found, right):
        found = side.get(found)
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        assert side.name == "device" or type(found) is type(right)
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)

    a, b = normal(rng, first, "complex64"), normal(rng, second, "complex64")
    right = np.matmul(a, b)
    for _ in range(2):
        same(ol.gemm(there(a), there(b), queue=queue), right)
    turned = [x.swapaxes(-1, -2).copy() if x.ndim > 1 else x for x in (a, b)]
    same(ol.gemm(*map(there, turned), trans_a="T", trans_b=True, queue=queue), right)
    conjugate = np.matmul(a.conj() if a.ndim == 1 else a, b)
    trans = "C" if a.ndim == 1 else "N"
    same(ol.gemm(there(a), there(b), trans_a=trans, queue=queue), conjugate)
    spread = [np.repeat(x, 2, -1) for x in (a, b)]
    same(ol.gemm(*(there(x)[..., ::2] for x in spread), queue=queue), right)
    c, bias = normal(rng, right.shape, "complex64"), normal(rng, right.shape[-1:], "complex64")
    more = {"c": there(c), "bias": there(bias), "beta": 2, "queue": queue}
    same(ol.gemm(there(a), there(b), **more), np.asarray(right + 2 * c + bias)[()])
    out = there(np.zeros_like(c))
    assert ol.gemm(there(a), there(b), **more, out=out) is out
    same(out, np.asarray(right + 2 * c + bias))


def test_conjugates_are_those_of_complex_matrices(rng, queue):
    a, b = normal(rng, (4, 6, 5), "complex64"), normal(rng, (7, 6), "complex64")
    result = ol.gemm(a, b, trans_a="c", trans_b=2, alpha=2j, queue=queue)
    assert_close(result, right(a.conj().swapaxes(1, 2), b.conj().T, 2j), "complex64")
    only_transposed = ol.gemm(a, b, trans_a="T", trans_b=1, queue=queue)
    assert_close(only_transposed, right(a.swapaxes(1, 2), b.T), "complex64")


def test_halves_are_added_up_in_single_precision(queue):
    """Sums of float16 would stop at 2048, where the next number is 2050."""
    a, b = np.ones((2, 5000), np.float16), np.ones((5000, 3), np.float16)
    np.testing.assert_array_equal(ol.gemm(a, b, queue=queue), np.full((2, 3), 5000, np.float16))
    small = np.full((2, 5000), 2.0**-24, np.float16)  # the least one
    expected = np.full((2, 3), np.float16(5000 * 2.0**-24))
    np.testing.assert_array_equal(ol.gemm(small, b, queue=queue), expected)
    large = ol.gemm(a, np.float16(100) * b, queue=queue)
    np.testing.assert_array_equal(large, np.full((2, 3), np.inf, np.float16))


def test_activations_keep_nan_and_have_their_limits(queue):
    values = np.array([[np.nan, np.inf, -np.inf, -0.0, 3.0, -50.0, -1e30, -1.0]], np.float32)
    one = np.ones((1, 1), np.float32)
    for kind in ("float32", "float16"):
        with np.errstate(over="ignore"):
            given, unit = values.astype(kind), one.astype(kind)
        relu = ol.gemm(unit, given, activation="relu", queue=queue)
        np.testing.assert_array_equal(relu, [[np.nan, np.inf, 0, 0, 3, 0, 0, 0]])
        soft = ol.gemm(unit, given, activation="gelu", queue=queue)
        np.testing.assert_allclose(
            soft, [[np.nan, np.inf, 0, 0, 2.9959502, 0, 0, -0.15865526]], rtol=1e-3
        )


@pytest.mark.full
def test_gelu_is_as_accurate_as_single_precision_all_along(queue):
    """Vectors of sums take polynomials, whose two pieces meet at 1 and -1."""
    values = np.linspace(-16, 16, 64 * 101, dtype=np.float32).reshape(101, 64)
    given = ol.gemm(values, np.eye(64, dtype=np.float32), activation="gelu", queue=queue)
    error = np.abs(given - gelu(values.astype(np.float64)))
    assert np.max(error / np.abs(values)) < 5e-7


def test_what_is_broadcast_or_transposed_is_not_copied(rng):
    a, b = normal(rng, (4, 6, 5)), normal(rng, (5, 7))
    problem, inputs = bind(a, b, None, **PLAIN)
    assert problem == GemmProblem(24, 7, 5)  # one tall product
    assert np.shares_memory(inputs["a"], a)
    problem, inputs = bind(a.swapaxes(-1, -2), a, None, **PLAIN)
    assert problem == GemmProblem(5, 5, 6, trans_a=True, batch=4)
    assert inputs["a"].base is a or np.shares_memory(inputs["a"], a)
    repeated = np.broadcast_to(b, (3, 4, 5, 7))
    problem, inputs = bind(a, repeated, None, **PLAIN)
    assert problem == GemmProblem(24, 7, 5, batch=3, stacks=((3, False, False),))
    assert inputs["b"].shape == (5, 7)
    assert np.shares_memory(inputs["b"], b)
    problem, inputs = bind(a[:, None], normal(rng, (2, 1, 3, 5, 7))[:, :, ::2], None, **PLAIN)
    assert problem.stacks == ((2, False, True), (4, True, False), (2, False, True))
    row = np.ones((6, 1), np.float32)
    assert bind(a, b, None, **PLAIN, bias=row)[0].stacks == ((4, True, False),)


def misaligned(x):
    """Return a copy at an address that is aligned to no element, which nobody may write to."""
    raw = np.frombuffer(b"\0" + x.tobytes(), np.uint8)
    return raw[1:].view(x.dtype).reshape(x.shape)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "inside": lambda x: np.pad(x, 3)[3:-3, 3:-3, 3:-3],
    "misaligned": misaligned,
    "list": lambda x: x.astype(float).tolist(),
    "swapped": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "turned": lambda x: np.moveaxis(np.moveaxis(x, 0, 1).copy(), 1, 0),
    "reversed": lambda x: x[::-1, :, ::-1].copy()[::-1, :, ::-1],
    "swapped-bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_of_a_stack(layout, rng, queue):
    change, dtype = LAYOUTS[layout], "float64" if layout == "list" else "float32"
    a, b, c = (normal(rng, (3, *shape), dtype) for shape in ((5, 6), (6, 7), (5, 7)))
    expected = right(a, b, beta=2, c=c)
    result = ol.gemm(change(a), change(b), beta=2, c=change(c), queue=queue)
    assert_close(result, expected, dtype)
    if layout in ("fortran", "swapped", "strided", "turned", "reversed"):
        out = change(np.zeros_like(c))
        assert ol.gemm(change(a), b, beta=2, c=c, out=out, queue=queue) is out
        assert_close(out, expected)


@pytest.mark.parametrize("which", ["a", "c", "bias", "overlap"])
def test_out_may_be_an_input(which, rng, queue):
    a, b, c = normal(rng, (2, 1, 8)), normal(rng, (2, 8, 8)), normal(rng, (2, 1, 8))
    bias = normal(rng, (1, 1, 8))
    if which == "bias":
        a, b, c = a[:1], b[:1], c[:1]
    block = np.zeros(40, np.float32)
    block[4:20] = a.reshape(-1)[:16] if which != "bias" else 0
    given_a = block[4:20].reshape(2, 1, 8) if which == "overlap" else a
    expected = right(a, b, beta=1, c=c, bias=bias)
    out = {"a": a, "c": c, "bias": bias, "overlap": block[:16].reshape(2, 1, 8)}[which]
    assert ol.gemm(given_a, b, beta=1, c=c, bias=bias, out=out, queue=queue) is out
    assert_close(out, expected)


@pytest.mark.parametrize("algorithm", ["naive", "tiled"])
def test_more_products_and_rows_than_a_grid_may_have(algorithm, rng, queue):
    """Also on devices that take more, so that it is looked at everywhere."""
    a, b = normal(rng, (70_000, 1, 2)), normal(rng, (70_000, 2, 1))
    config = {"naive": {"WG_M": 1, "WG_N": 1}, "tiled": {"TILE": 8}}[algorithm]
    result = ol.gemm(a, b, algorithm=algorithm, config=config, queue=queue)
    assert_close(result, right(a, b))
    if algorithm == "naive":
        tall = ol.gemm(a, b[0], algorithm=algorithm, config=config, queue=queue)
        assert_close(tall, right(a, b[0]))

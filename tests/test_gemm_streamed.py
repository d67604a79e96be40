"""Products by tiles: of all layouts and types, with small limits, exactly where they belong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import assert_product, assert_right, generated, matrices

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.ops.gemm.host import panels, streamed
from opencl_lab.ops.gemm.host.panels import Panels, panels_of
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.session import session_of

ONE = np.dtype(np.float32)
NAIVE = {"algorithm": "naive", "config": {"WG_M": 4, "WG_N": 8}}


@pytest.fixture
def seen(monkeypatch):
    """Return how the calls of a test are made of parts."""
    found = []
    multiply = streamed._multiply

    def noted(parts, *given, **how):
        found.append(parts)
        return multiply(parts, *given, **how)

    monkeypatch.setattr(streamed, "_multiply", noted)
    monkeypatch.setattr("opencl_lab.ops.gemm.functions.LARGE", 1)
    monkeypatch.setattr(panels, "SMALL", 1)
    monkeypatch.setattr(panels, "ITERATION_BYTES", 100)
    cost = Panels.cost  # of few units, so that any device takes the same tiles
    monkeypatch.setattr(Panels, "cost", lambda parts, units: cost(parts, 2))
    panels._panels.cache_clear()
    yield found
    panels._panels.cache_clear()


@pytest.fixture
def limit(monkeypatch):
    return lambda nbytes: monkeypatch.setenv("OCLAB_DEVICE_BYTES", str(int(nbytes)))


@pytest.fixture
def own_memory(device, own_queue):
    """A queue of a device with memory of its own, or of one that is taken for such."""
    queue = own_queue(device.handle)
    session = session_of(queue)
    session.device = replace(session.device, unified_memory=False)
    return queue


@pytest.mark.few(2)
@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kept", ["a", "b", ""])
@pytest.mark.parametrize("copied", [False, True])
def test_products_with_a_limit(kept, trans, copied, seen, limit, own_memory, rng):
    m, n, k = {"a": (150, 290, 130), "b": (290, 150, 130), "": (70, 60, 3000)}[kept]
    a, b, c = matrices(rng, m, n, k, trans_a=trans[0], trans_b=trans[1])
    limit(4 * {"": 30_000}.get(kept, 75_000))
    how = {"trans_a": trans[0], "trans_b": trans[1], "alpha": -0.5, "beta": 1.5, "c": c}
    result = ol.gemm(a, b, queue=own_memory if copied else None, **how, **NAIVE)
    assert [item.kept for item in seen] == [kept]
    op_a, op_b = (x.T if turned else x for x, turned in zip((a, b), trans, strict=True))
    assert_product(result, op_a, op_b, c, -0.5, 1.5)


def test_a_product_that_fits_overlaps_with_copies(seen, own_memory, rng, monkeypatch):
    monkeypatch.setattr(panels, "WORTH", 10)
    a, b, _ = matrices(rng, 299, 169, 90)
    assert_product(ol.gemm(a, b, queue=own_memory, **NAIVE), a, b)
    assert not seen  # it is small
    monkeypatch.setattr(panels, "LEAST", 1000)
    monkeypatch.setattr(panels, "LENGTHS", (64,))
    device = session_of(own_memory).device
    problem = GemmProblem(300, 170, 90)
    found = panels_of(problem, device, "naive", None, math.inf)
    assert (found.kept, found.counts) == ("ab", (5, 3, 1))
    monkeypatch.setattr(streamed, "panels_of", lambda *given: found)
    a, b, _ = matrices(rng, 300, 170, 90)
    for _ in range(2):  # the second one with memory of the first
        assert_product(ol.gemm(a, b, queue=own_memory, **NAIVE), a, b)
    assert seen == [found, found]


def test_types_and_layouts(seen, limit, rng):
    limit(300_000)
    a, b, _ = matrices(rng, 300, 200, 160, "float64")
    wide = np.zeros((300, 320))
    wide[:, ::2] = a
    out = np.zeros((600, 200))
    result = ol.gemm(wide[:, ::2], np.asfortranarray(b), out=out[::2], **NAIVE)
    assert result.base is out and not out[1::2].any()
    assert_product(result, a, b)
    square = matrices(rng, 220, 220, 220)[0]
    right = square.copy()
    assert ol.gemm(square, square, out=square, **NAIVE) is square
    assert_product(square, right, right)
    assert len(seen) == 2


def test_sums_of_half_numbers_are_not_cut(device):
    problem = GemmProblem(64, 64, 100_000, np.dtype(np.float16))
    with pytest.raises(InvalidProblem, match=r"too few for .* allow more"):
        panels_of(problem, replace(device, unified_memory=False), "naive", None, 500_000)
    single = replace(problem, dtype=ONE)
    assert panels_of(single, device, "naive", None, 500_000).counts[2] > 8


def test_what_is_not_read_is_not_sent(seen, limit, rng):
    a, b, c = matrices(rng, 300, 310, 200)
    a[:] = np.nan
    limit(400_000)
    result = ol.gemm(a, b, alpha=0, beta=2, c=c, **NAIVE)
    np.testing.assert_array_equal(result, 2 * c)
    assert len(seen) == 1


@pytest.mark.parametrize("stacks", [((9, True, True),), ((9, True, False), (2, False, True))])
@pytest.mark.parametrize("share", [0.8, 0.03])
def test_stacks_go_in_parts(stacks, share, seen, limit, rng):
    problem = GemmProblem(
        90, 70, 80, ONE, 1.5, 0.5, batch=math.prod(item[0] for item in stacks), stacks=stacks,
        bias="column", activation="relu",
    )  # fmt: skip
    inputs = generated(rng, problem)
    nbytes = sum(array.nbytes for array in inputs.values()) + inputs["c"].nbytes
    limit(share * nbytes + 20_000)
    result = streamed.multiply_streamed(problem, inputs, None, **NAIVE)
    assert_right(result, problem, inputs)
    assert (seen[0] == 0) == (share < 0.1) and (len(seen) > 1) == (share < 0.1)


def gpu_of(device):
    """A GPU with much memory, whatever was seen of the device."""
    return replace(
        device, kind="gpu", unified_memory=False, compute_units=132, global_memory=80 << 30,
        max_allocation=20 << 30, capabilities=replace(device.capabilities, max_allocation=20 << 30),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "share"),
    [
        ((16384, 16384, 16384), 2), ((16384, 16384, 16384), 0.66), ((20000, 9000, 5000), 0.4),
        ((64, 64, 1 << 24), 0.5), ((1, 30000, 30000), 0.5), ((40000, 40000, 100), 0.3),
    ],
)  # fmt: skip
def test_tiles_of_a_gpu(shape, share, device):
    m, n, k = shape
    problem = GemmProblem(m, n, k)
    gpu = gpu_of(device)
    nbytes = 4 * (m * k + k * n + m * n)
    found = panels_of(problem, gpu, "naive", None, share * nbytes)
    assert found.nbytes <= share * nbytes
    assert math.prod(found.counts) <= 4000 and found.sent < 12 * nbytes
    if share == 2:
        assert found.kept == "ab" and found.counts == (4, 4, 1)
        assert [found.part().m, found.part().n] == [4096, 4096]


def test_a_comparison_says_how_it_is_made(limit, seen):
    limit(600_000)
    rows = ol.compare(
        "gemm", algorithms="naive", against="none", repeats=1, size=300, config=NAIVE["config"]
    )
    assert rows[0].ok and "tiles of" in rows[0].note and rows[0].kernel_ms is None
    assert not any(is_device_array(item) for item in seen)


def test_integers_by_parts_of_k_wrap_around(seen, limit, rng):
    limit(40_000)
    a = rng.integers(-128, 127, (60, 3000), np.int8)
    b = rng.integers(-128, 127, (3000, 70), np.int8)
    np.testing.assert_array_equal(ol.gemm(a, b, **NAIVE), a @ b)
    assert seen

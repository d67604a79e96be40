"""``algorithm="hybrid"``: NumPy's BLAS or the device, whichever is faster for the problem."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import QUICK, oclab, one_sentence

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.host import dispatch
from opencl_lab.ops.gemm.host.blas import multiply_by_blas
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.runtime.arrays import to_device


@pytest.fixture(params=["host", "device"])
def side(request, monkeypatch):
    """Let one side take no time, and return its name."""

    def milliseconds(multiply):
        return float((multiply.func is multiply_by_blas) != (request.param == "host"))

    monkeypatch.setattr(dispatch, "_milliseconds", milliseconds)
    dispatch._faster_side.cache_clear()
    yield request.param
    dispatch._faster_side.cache_clear()


def test_both_sides_keep_the_contract(side, rng):
    size = 60
    a, b, c = (rng.uniform(-1, 1, (size, size)).astype("f4") for _ in range(3))
    out = np.zeros((2 * size, size), "f4")
    how = {"alpha": 0.5, "beta": -2, "c": c, "trans_a": True, "algorithm": "hybrid"}
    for _ in range(2):
        result = ol.gemm(a, b[::-1], out=out[::2], **how)
        assert result.base is out and not out[1::2].any()
        assert abs(result - (0.5 * (a.T.astype(float) @ b[::-1]) - 2 * c)).max() < 1e-4
    inside = a.copy()
    assert ol.gemm(inside, inside, out=inside, algorithm="hybrid") is inside
    assert abs(inside - a.astype(float) @ a).max() < 1e-4
    nan = np.full_like(a, np.nan)
    np.testing.assert_array_equal(
        ol.gemm(nan, nan, alpha=0, beta=2, c=c, algorithm="hybrid"), 2 * c
    )
    product = ol.gemm(a, b, beta=0, c=nan, algorithm="hybrid")
    assert np.isfinite(product).all() and product.dtype == np.float32


def test_blas_makes_all_that_it_does_not_lack(rng):
    problem = GemmProblem(
        5, 6, 7, np.dtype("c8"), 2j, 0.5, "C", True,
        batch=6, stacks=((2, True, False), (3, False, True)), bias="column",
    )  # fmt: skip
    shapes = {"a": (2, 7, 5), "b": (3, 6, 7), "c": (2, 3, 5, 6), "bias": (6,)}
    inputs = {
        name: (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype("c8")
        for name, shape in shapes.items()
    }
    a, b, c, bias = inputs.values()
    right = 2j * (a.conj().swapaxes(1, 2)[:, None] @ b.swapaxes(1, 2)[None]) + 0.5 * c + bias
    assert abs(multiply_by_blas(problem, inputs) - right).max() < 1e-5
    empty = GemmProblem(3, 4, 0, alpha=np.inf)
    none = {"a": np.zeros((3, 0), "f4"), "b": np.zeros((0, 4), "f4")}
    assert not multiply_by_blas(empty, none).any()


@pytest.mark.parametrize("more", [{"dtype": np.dtype("f2")}, {"activation": "relu"}])
def test_what_blas_lacks_goes_to_the_device(more, device):
    found = dispatch.faster_side(GemmProblem(9, 9, 9, **more), device)
    assert not found.host and "BLAS has no" in str(found)


def test_device_arrays_stay_on_the_device(queue, rng):
    a = rng.uniform(-1, 1, (40, 40)).astype("f4")
    there = to_device(a, queue)
    result = ol.gemm(there, there, algorithm="hybrid")
    assert abs(result.get() - a.astype(float) @ a).max() < 1e-4
    with pytest.raises(InvalidConfig, match=r"^hybrid takes no config: it is NumPy's BLAS or"):
        ol.gemm(a, a, algorithm="hybrid", config={"TILE": 8})


def test_a_row_says_which_side_was_taken_and_the_times_of_both():
    rows = ol.compare(
        "gemm", algorithms="hybrid,naive", against="none", repeats=1, time_limit=5, size=60
    )
    row = rows[0]
    assert row.ok and row.implementation == "opencl:hybrid" and not row.config
    assert " ms on the host, " in row.note and row.kernel_ms is None
    assert rows[1].ok and rows[1].implementation == "opencl:naive"


@pytest.mark.full
def test_the_command_line_copes(tmp_path):
    hybrid_only = ("--algorithm", "hybrid", *QUICK)
    done = oclab("gemm", "--size", 50, *hybrid_only)
    assert done.returncode == 0 and "ms on the host" in " ".join(done.stdout.split())
    done = oclab("--json", "gemm", "--size", 20, "--algorithm", "all", *QUICK)
    names = [row["algorithm"] for row in json.loads(done.stdout)["results"]]
    assert set(names) <= {item.name for item in GEMM.algorithms} and len(names) > 1
    for more in (("--resident",), ("--vary", "TILE=8,16")):
        done = oclab("gemm", "--size", 20, *hybrid_only, *more)
        assert done.returncode == 2 and one_sentence(done), more
    done = oclab("tune", "gemm", "--size", 50, "--algorithm", "hybrid")
    assert done.returncode == 2 and "has no kernels of its own" in done.stderr

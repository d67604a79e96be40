"""``algorithm="hybrid"``: the faster side by a planted model, and by one that is measured."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from command_line import QUICK, oclab, one_sentence

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.paths import cache_dir
from opencl_lab.core.records import write_sealed
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.host import dispatch, hybrid
from opencl_lab.ops.gemm.host.blas import lacks_blas, multiply_by_blas
from opencl_lab.ops.gemm.host.hybrid import Model, TimedProduct, choose_side, measured
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.runtime.arrays import to_device

SINGLE = np.dtype(np.float32)
SIZES = (32, 128, 512, 1024)


def side(fixed, flops, nbytes=1e12, dtype=SINGLE):
    """Return the model of a side with so many seconds a call, operations and bytes a second."""
    samples = []
    for shape in [*((size,) * 3 for size in SIZES), hybrid.FLAT]:
        work = GemmProblem(*shape, dtype).work
        samples.append(TimedProduct(*shape, fixed + work.bytes / nbytes + work.flops / flops))
    return Model(dtype, tuple(samples))


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(hybrid, "_known", {})
    monkeypatch.setattr(hybrid, "_choices", {})
    return tmp_path


@pytest.fixture
def planted(device, data_folder):
    """Keep the figures of a host that is faster up to a size of about 200."""
    for dtype in map(np.dtype, ("float32", "complex64")):
        host, there = side(1e-6, 1e10, dtype=dtype), side(1e-3, 1e11, 1e10, dtype=dtype)
        hybrid._store(device, dtype, (host, there))


@pytest.fixture
def taken(monkeypatch):
    """Return the products that the host has made."""
    found = []

    def noted(problem, *given):
        found.append(problem)
        return multiply_by_blas(problem, *given)

    monkeypatch.setattr(dispatch, "multiply_by_blas", noted)
    return found


def test_a_model_is_what_was_measured():
    model = side(2e-5, 4e10, 6e9)
    assert model.coefficients == pytest.approx((2e-5, 1 / 6e9, 1 / 4e10), rel=1e-6)
    for shape in ((100, 100, 100), (3000, 3000, 3000), (1, 4000, 4000)):
        work = GemmProblem(*shape).work
        right = 2e-5 + work.bytes / 6e9 + work.flops / 4e10
        assert model.seconds(work.flops, work.bytes) == pytest.approx(right, rel=1e-6)


def test_a_model_goes_through_square_samples():
    seconds = dict(zip(SIZES, (1e-5, 4e-4, 7e-3, 3e-2), strict=True))
    model = Model(SINGLE, tuple(TimedProduct(n, n, n, s) for n, s in seconds.items()))
    assert min(model.coefficients) >= 0
    for size, right in seconds.items():
        work = GemmProblem(size, size, size).work
        assert model.seconds(work.flops, work.bytes) == pytest.approx(right)
    work = GemmProblem(300, 300, 300).work
    assert 4e-4 < model.seconds(work.flops, work.bytes) < 7e-3
    assert Model(SINGLE, (TimedProduct(64, 64, 64, 1e-3),)).seconds(1e9, 1e6) > 0


def test_the_faster_side_is_taken(device, planted):
    small, large = (choose_side(GemmProblem(n, n, n), device) for n in (100, 900))
    assert small.host and not large.host
    assert small.host_seconds < small.device_seconds
    assert str(small).startswith("by NumPy's BLAS: expected 0.2")
    assert "by the device: expected" in str(large)
    many = GemmProblem(100, 100, 100, batch=200)
    assert not choose_side(many, device).host  # one call there, two hundred of BLAS here
    for problem in (
        GemmProblem(9, 9, 9, np.dtype("f2")),
        GemmProblem(9, 9, 9, activation="relu"),
    ):
        assert not choose_side(problem, device).host
        assert lacks_blas(problem) in str(choose_side(problem, device))


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [60, 700])
def test_both_sides_keep_the_contract(size, planted, taken, rng):
    a, b, c = (rng.uniform(-1, 1, (size, size)).astype("f4") for _ in range(3))
    out = np.zeros((2 * size, size), "f4")
    how = {"alpha": 0.5, "beta": -2, "c": c, "trans_a": True, "algorithm": "hybrid"}
    result = ol.gemm(a, b[::-1], out=out[::2], **how)
    assert result.base is out and not out[1::2].any()
    right = 0.5 * (a.T.astype(float) @ b[::-1]) - 2 * c
    assert abs(result - right).max() < 1e-4
    assert len(taken) == (size == 60)
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


def test_device_arrays_stay_on_the_device(queue, data_folder, taken, rng):
    a = rng.uniform(-1, 1, (40, 40)).astype("f4")
    there = to_device(a, queue)
    result = ol.gemm(there, there, algorithm="hybrid")
    assert abs(result.get() - a.astype(float) @ a).max() < 1e-4
    assert not taken and not cache_dir(hybrid.SECTION).exists()


def test_no_configuration_of_what_has_no_kernels(planted):
    with pytest.raises(InvalidConfig, match=r"^hybrid takes no config: it is NumPy's BLAS or"):
        ol.gemm(np.ones((2, 2)), np.ones((2, 2)), algorithm="hybrid", config={"TILE": 8})


def test_measured_once_and_kept(device, data_folder, monkeypatch, caplog):
    monkeypatch.setattr(hybrid, "SQUARES", (8, 24))
    monkeypatch.setattr(hybrid, "FLAT", (2, 24, 24))
    monkeypatch.setattr(hybrid, "ROW", 1e-4)
    measure, calls = hybrid._measure, []

    def noted(*given):
        calls.append(given)
        return measure(*given)

    monkeypatch.setattr(hybrid, "_measure", noted)
    a = np.ones((10, 10), "f4")
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert (ol.gemm(a, a, algorithm="hybrid") == 10).all()
    assert len(calls) == 2 and "for algorithm='hybrid'" in caplog.text
    first = measured(device, SINGLE)
    hybrid._known.clear()
    hybrid._choices.clear()
    assert measured(device, SINGLE) == first and len(calls) == 2  # from the file
    monkeypatch.setattr(hybrid, "blas_name", lambda: "another one x64")
    assert (ol.gemm(a, a, algorithm="hybrid") == 10).all() and len(calls) == 4
    monkeypatch.undo()


def test_one_busy_moment_leaves_out_no_size(monkeypatch):
    def seconds(problem, multiply):
        asked.append(problem.m)
        busy = 0.3 if asked == [32] else 0.0
        return busy + problem.work.flops * 8e-12

    asked = []
    monkeypatch.setattr(hybrid, "_seconds", seconds)
    model = hybrid._measure(np.dtype("f4"), None)
    squares = {item.m: item.seconds for item in model.samples if item.m == item.k}
    assert sorted(squares) == list(hybrid.SQUARES)
    assert squares[32] < 0.1


@pytest.mark.parametrize(
    ("each", "calls"), [(1.0, 2), (0.06, 2), (0.01, 5), (0.001, 20), (1e-6, 50)]
)
def test_long_calls_are_timed_less_often(each, calls):
    count = 0
    while hybrid._goes_on(count, count * each):
        count += 1
    assert count == pytest.approx(calls, abs=1)


def test_stale_and_damaged_files_are_not_read(device, planted, data_folder):
    assert hybrid._read(device, SINGLE) is not None
    overlay = data_folder / "tuning" / "gemm.json"
    overlay.parent.mkdir()
    overlay.write_text("{}")  # something was tuned
    assert hybrid._read(device, SINGLE) is None
    overlay.unlink()
    path = hybrid.model_file(device, SINGLE)
    stored = json.loads(path.read_text())
    sample = {"m": 8, "n": 8, "k": 8, "seconds": -1.0}
    for change in ({"host": [[1, 2]]}, {"there": []}, {"host": [sample]}, {"host": None}):
        write_sealed(path, stored | change)
        assert hybrid._read(device, SINGLE) is None
    path.write_text("[]")
    assert hybrid._read(device, SINGLE) is None


@pytest.mark.full
@pytest.mark.parametrize(("size", "side"), [(60, "NumPy's BLAS"), (700, "the device")])
def test_a_row_says_which_side_was_taken(size, side, planted):
    rows = ol.compare(
        "gemm", algorithms="hybrid,naive", against="none", repeats=1, time_limit=5, size=size
    )
    row = rows[0]
    assert row.ok and row.implementation == "opencl:hybrid" and not row.config
    assert row.note.startswith(f"by {side}: expected") and row.kernel_ms is None
    assert rows[1].ok and rows[1].implementation == "opencl:naive"


@pytest.mark.full
def test_the_command_line_copes(planted, tmp_path):
    hybrid_only = ("--algorithm", "hybrid", *QUICK)
    done = oclab("gemm", "--size", 50, *hybrid_only)
    assert done.returncode == 0 and "by NumPy's BLAS" in " ".join(done.stdout.split())
    done = oclab("--json", "gemm", "--size", 20, "--algorithm", "all", *QUICK)
    names = [row["algorithm"] for row in json.loads(done.stdout)["results"]]
    assert set(names) <= {item.name for item in GEMM.algorithms} and len(names) > 1
    folder = tmp_path / "bench"
    done = oclab("bench", "gemm", "--sizes", "20,40", *hybrid_only, "--out", folder)
    assert done.returncode == 0, done.stderr
    for more in (("--resident",), ("--vary", "TILE=8,16")):
        done = oclab("gemm", "--size", 20, *hybrid_only, *more)
        assert done.returncode == 2 and one_sentence(done), more
    done = oclab("tune", "gemm", "--size", 50, "--algorithm", "hybrid")
    assert done.returncode == 2 and "has no kernels of its own" in done.stderr

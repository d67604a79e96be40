"""Every type, stack, bias and activation of the matrix product in the lab: data, bounds, peers."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tuning_runs import GPU

from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.gemm import freivalds
from opencl_lab.lab.ops.gemm.mpi import gemm_task
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.gemm.references import array_product
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.lab.tuning.task import TuningTask, problem_with
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem

SMALL = {"m": 21, "n": 30, "k": 200}


EDGES = [
    {"batch": 4, "trans_b": True},
    {"m": 0},
    {"m": 1, "n": 1, "k": 1},
    {"k": 0, "beta": 2.0},
    {"alpha": 0.0, "beta": 2.0},
    {"m": 70, "n": 131, "alpha": -2.0, "beta": 0.5, "trans_a": True},
    {"m": 65, "n": 40, "trans_a": True, "trans_b": True},
]


def cases(dtype):
    """Return options of problems of a type with all that they may have."""
    more = {"activation": "gelu"} if np.dtype(dtype).kind == "f" else {"trans_b": True}
    yield {"dtype": dtype}
    yield {"dtype": dtype, "batch": 3, "beta": 0.5, "bias": "row", "trans_a": "C"}
    yield {"dtype": dtype, "batch": 2, "alpha": -2.0, "bias": "column", **more}


def in_long_words(problem, inputs):
    """Return the result in twice the precision or so, by NumPy."""
    wide = {name: array.astype(np.result_type(array, float)) for name, array in inputs.items()}
    factors = []
    for place, name in enumerate("ab"):
        factor = wide[name]
        factor = factor.swapaxes(-1, -2) if getattr(problem, f"trans_{name}") else factor
        factor = factor.conj() if getattr(problem, f"conj_{name}") else factor
        for axis, stack in enumerate(problem.dimensions):
            factor = factor if stack[place + 1] else np.expand_dims(factor, axis)
        factors.append(factor)
    result = problem.alpha * np.matmul(*factors) + problem.beta * wide.get("c", 0)
    bias = wide.get("bias", np.zeros(1))
    result = result + (bias[:, None] if problem.bias == "row" else bias)
    if problem.activation == "relu":
        result = np.maximum(result, 0)
    if problem.activation == "gelu":
        result = result * (1 + np.vectorize(math.erf)(result / math.sqrt(2))) / 2
    return result


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_data_and_the_right_result(dtype):
    for options in cases(dtype):
        problem = GEMM.problem(**SMALL, **options)
        inputs = GEMM.generate(problem, 3)
        assert all(array.dtype == dtype for array in inputs.values())
        assert ("bias" in inputs) == bool(problem.bias)
        for array in inputs.values():
            for part in (array.real, array.imag) if problem.is_complex else (array,):
                assert part.min() < -0.5 and part.max() > 0.5 and abs(part).max() <= 1
        result = GEMM.expected(problem, inputs)["result"]
        right = in_long_words(problem, inputs)
        assert result.dtype == dtype and result.shape == right.shape
        kept = np.finfo(dtype)
        least = max(float(kept.smallest_subnormal), 100 * 2.0**-52)
        np.testing.assert_allclose(result, right, rtol=float(kept.eps), atol=least)


@pytest.mark.parametrize("k", [8, 100, 500])
def test_bounds_of_tf32_accept_11_bits_where_it_is_asked_for(k):
    problem = GEMM.problem(m=40, n=50, k=k, precision="tf32")
    inputs = GEMM.generate(problem, 5)
    expected = GEMM.expected(problem, inputs)

    def judged(bits, problem=problem):
        scale = 2.0**bits
        cut = {}
        for name, array in inputs.items():
            part, exponent = np.frexp(array.astype(float))
            cut[name] = np.ldexp(np.trunc(part * scale) / scale, exponent)
        result = (cut["a"] @ cut["b"]).astype("f4")
        return GEMM.compare(problem, inputs, expected, {"result": result})

    assert judged(11).ok
    assert not judged(5).ok
    assert not judged(11, GEMM.problem(m=40, n=50, k=k)).ok


def test_complex_infinities_are_alike_whatever_part_is_infinite():
    problem = GEMM.problem(size=4, dtype="complex64")
    inputs = GEMM.generate(problem, 0)
    inputs["a"][1, 1] = complex(np.inf, 1)
    expected = GEMM.expected(problem, inputs)
    given = expected["result"].copy()
    given[1] = complex(np.nan, -np.inf)
    assert GEMM.compare(problem, inputs, expected, {"result": given}).ok
    given[1, 2] = 0
    assert not GEMM.compare(problem, inputs, expected, {"result": given}).ok


@pytest.mark.parametrize("check", ["values", "freivalds"])
def test_partial_sums_may_be_too_large_where_the_result_is_not(check, rng):
    """As in BLAS; but not where they fit, and a finite wrong number is wrong everywhere."""
    problem = GEMM.problem(m=8, n=6, k=2)
    inputs = {"a": rng.random((8, 2), "f4"), "b": rng.random((2, 6), "f4")}
    inputs["a"][3] = 2e38
    inputs["b"][:, 4] = [1.9, -1.9]
    expected = GEMM.expected(problem, inputs)

    def is_right(place, value):
        given = expected["result"].copy()
        given[place] = value
        if check == "values":
            return GEMM.compare(problem, inputs, expected, {"result": given}).ok
        return freivalds.check(problem, inputs, given).ok

    for value in (np.inf, -np.inf, np.nan):
        assert is_right((3, 4), value)
        assert not is_right((2, 4), value)
    assert not is_right((2, 4), 1.0)
    assert check == "freivalds" or not is_right((3, 4), 1e38)


# ------------------------------------------------------------------ references and files


@pytest.mark.parametrize("name", ["c:seq", "c:blocked", "c:omp", "blas", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_references_solve_it_or_say_why_not(name, dtype):
    reference = next(item for item in GEMM.references if item.name == name)
    reason = getattr(reference, "unavailable", lambda: None)()
    if reason is not None:
        pytest.skip(reason)
    for options in (*cases(dtype), *({"dtype": dtype, **edge} for edge in EDGES)):
        problem = GEMM.problem(**{**SMALL, **options})
        inputs = GEMM.generate(problem, 1)
        if problem.alpha == 0:
            inputs["a"][:] = np.nan
        expected = GEMM.expected(problem, inputs)
        like = {"result": (problem.shape, problem.dtype)}
        plain = not problem.bias and dtype == "float32"
        can = plain if name.startswith("c:") else dtype != "float16" or name == "torch"
        if not can:
            with pytest.raises(ReferenceUnavailable, match=r"multipl|neither a bias"):
                prepare(reference, problem, inputs, like, 2).run()
            continue
        ready = prepare(reference, problem, inputs, like, 2)
        ready.run()
        assert GEMM.compare(problem, inputs, expected, ready.outputs()).ok


def test_what_peers_do_not_do_they_say():
    for options, message in (
        ({"batch": 2}, "the product over MPI multiplies one pair of matrices only"),
        ({"dtype": "complex64"}, "the product over MPI does not multiply complex64"),
        ({"bias": "row"}, "the product over MPI has neither a bias nor an activation"),
    ):
        problem = GEMM.problem(size=3, **options)
        with pytest.raises(ReferenceUnavailable, match=message):
            gemm_task(problem)
        with pytest.raises(ReferenceUnavailable, match="CLBlast"):
            GEMM.calls.peers["clblast"](replace(problem, bias="row"), None, {})
    half = GEMM.problem(size=3, dtype="float16")
    with pytest.raises(ReferenceUnavailable, match="without BLAS"):
        array_product(half, np, GEMM.generate(half, 0))


def test_the_command(capsys):
    command = ["gemm", "--m", "9", "--n", "10", "--k", "11", "--batch", "3", "--repeats", "1"]
    more = ["--dtype", "float16", "--bias", "row", "--activation", "gelu", "--against", "all"]
    assert main([*command, *more, "--algorithm", "naive,tiled", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    rows = {row["implementation"]: row for row in content["results"]}
    for name in ("opencl:naive", "opencl:tiled"):
        assert rows[name]["status"] == "correct"
    assert rows["c:seq"]["status"] == "unavailable"
    assert "NumPy multiplies float16 without BLAS" in json.dumps(content["results"])
    complex_one = ["--dtype", "complex64", "--bias", "column", "--beta", "2", "--against", "blas"]
    assert main([*command, *complex_one, "--algorithm", "naive"]) == 0
    text = capsys.readouterr().out
    assert "matrices of complex64, 3 products, beta 2, a bias for each column" in text
    assert main(["gemm", "--dtype", "complex64", "--activation", "relu"]) == 2
    assert "for real numbers only" in capsys.readouterr().err


def test_files_may_hold_stacks(tmp_path, rng, capsys):
    a, b = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((5, 6))
    for name, array in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [str(tmp_path / f"{name}.npy") for name in "abc"]
    command = ["gemm", *files[:2], "--against", "none", "--repeats", "1"]
    assert main([*command, "--activation", "relu", "-o", files[2]]) == 0
    np.testing.assert_allclose(np.load(files[2]), np.maximum(a @ b, 0), atol=1e-12)
    for option, message in (
        (["--batch", "2"], "batch is given by the input files"),
        (["--bias", "row"], "bias is for random data"),
    ):
        assert main([*command, *option]) == 2
        assert message in capsys.readouterr().err


# ------------------------------------------------------------------ what tuning stores


def test_problems_are_read_again_from_json():
    for problem in (
        GemmProblem(2, 3, 4, np.dtype("c8"), alpha=1 - 2j, beta=complex(0, np.inf)),
        GemmProblem(2, 3, 4, alpha=0.5, beta=np.inf, trans_a=True, activation="relu"),
        GemmProblem(2, 3, 4, batch=6, stacks=((2, True, False), (3, False, True)), bias="row"),
        GemmProblem(2, 3, 4, np.dtype("f2"), batch=6),
    ):
        assert problem_with(GEMM, json.loads(json.dumps(problem.as_dict()))) == problem
    with pytest.raises(InvalidProblem, match="alpha"):
        problem_with(GEMM, {"alpha": "1+2j", "dtype": "float32"})


def test_configurations_are_checked_with_stacks_and_what_is_added():
    tiled = GEMM.algorithm("tiled")
    for dtype in ("float32", "complex64"):
        task = TuningTask(GEMM, "tiled", GemmProblem(512, 512, 512, np.dtype(dtype)), GPU)
        checked = task.check_problems
        assert any(problem.stacks and problem.bias for problem in checked)
        assert any(problem.beta for problem in checked)
        assert any(problem.activation for problem in checked) == (dtype == "float32")
        assert all(tiled.supports(problem, GPU) is None for problem in checked)

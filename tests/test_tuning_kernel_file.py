"""Kernels in files: what is read from them, what is refused, and that they are tuned."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from kernel_files import KERNELS, N, X, planted

import opencl_lab as ol
from opencl_lab.core.errors import BuildError, InvalidConfig, InvalidProblem, LaunchError
from opencl_lab.core.plan import LocalMemory
from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.lab.tuning.journal import journal_of
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText, signature
from opencl_lab.lab.tuning.tuner import make_task
from opencl_lab.tuned import database

HISTOGRAM = Path(__file__).parents[1] / "docs" / "examples" / "histogram.cl"

pytestmark = pytest.mark.usefixtures("private_data")


SAXPY = {"a": 2.5, "x": X, "y": np.empty_like(X), "n": N, "staged": "WG"}


def saxpy(device, arguments=SAXPY, **changes):
    params = changes.pop("params", {"WG": (16, 64), "WORK": (1, 4)})
    fixed = changes.pop("fixed", {"SHIFT": "0.5f"})
    text = KernelText(KERNELS / "saxpy.cl", changes.pop("kernel", None), params, fixed)
    given = {"global_size": "ceil_div(n, WORK)", "local_size": "WG", "device": device, **changes}
    return kernel_file(text, arguments, **given)


# ------------------------------------------------------- what a kernel says of itself

SOURCE = """
// __kernel void none(int a)
__kernel /* void */ __attribute__((vec_type_hint(float4)))
__attribute__((reqd_work_group_size(TILE, max(2, 4), 1)))
void first(__global const float4 *restrict in, global  float* out, __constant int *weights,
           const unsigned int n, local real_t *tile, const global unsigned char * mask,
           float2 v, unsigned m) { if (n) return; }
static void helper(int kernel_of_truth) {}
#define GROUP __attribute__((reqd_work_group_size(1, 1, 1)))
__attribute__((reqd_work_group_size(WG, 1, 1))) kernel void second(void) {}
#if 0
kernel void second(int other) {}
#endif
"""


def test_a_signature_is_read():
    first = signature(SOURCE, "first")
    assert first.group == "TILE, max(2, 4), 1"
    told = [(a.name, a.space, a.const, a.dtype and str(a.dtype), a.width) for a in first.arguments]
    assert told == [
        ("in", "global", True, "float32", 4),
        ("out", "global", False, "float32", 1),
        ("weights", "constant", True, "int32", 1),
        ("n", "", True, "uint32", 1),
        ("tile", "local", False, None, 1),
        ("mask", "global", True, "uint8", 1),
        ("v", "", False, "float32", 2),
        ("m", "", False, "uint32", 1),
    ]
    assert signature(SOURCE, "second").arguments == ()
    assert signature(SOURCE, "second").group == "WG, 1, 1"
    for kernel, words in ((None, "which kernel"), ("third", "'third'")):
        with pytest.raises(InvalidProblem, match=f"{words}.*first, second"):
            signature(SOURCE, kernel)
    with pytest.raises(InvalidProblem, match="has no kernel"):
        signature("__kernel int broken(", None)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("global T *x", ("x", "global", False, "float64", 1)),
        ("const local WORD * restrict w", ("w", "local", True, "uint16", 1)),
        ("long unsigned int m", ("m", "", False, "uint64", 1)),
        ("__constant half3 *h __attribute__((aligned(8)))", ("h", "constant", True, "float16", 3)),
        (
            "\n#if 1\n /*,*/ volatile global int16*k\n#endif\n",
            ("k", "global", False, "int32", 16),
        ),
    ],
)
def test_how_arguments_may_be_declared(declared, told):
    source = (
        "__kernel __attribute__((work_group_size_hint(1, 1, 1))) inline void "
        f"__attribute__((reqd_work_group_size((A + (B * 2)), 1, 1))) f({declared}, float e) {{}}"
    )
    told_of = signature(source, macros={"T": "double", "WORD": "unsigned short", "e": 5})
    assert told_of.group == "(A + (B * 2)), 1, 1"
    a, last = told_of.arguments
    assert (a.name, a.space, a.const, a.dtype and str(a.dtype), a.width) == told
    assert (last.name, last.dtype) == ("e", np.float32)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(n, WG * 4) * WG, 3", (256, 3)),
        ("round_up(n, 64) - -1 % 2", 1023),
        ("min(n, 7) + max(WG, 2) // 3", 28),
        ("1 < WG <= 64 and not KIND == 'slow' or n == 0", True),
    ],
)
def test_expressions(text, value):
    assert evaluate(text, {"n": 1000, "WG": 64, "KIND": "fast"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "n.real", "n ** 9", "'a' * n", "m", "1 // 0", "[1]", "n[0]", "(",
        "", "-'a'", "n < 'a'", "1.5", "lambda: 1", "min(*n)", "min()", "round_up(n, a=1)", "n := 1",
        "(" * 400 + "1" + ")" * 400, "9" * 5000,
        "9" * 400 + " * 1.5",
    ],
)  # fmt: skip
def test_what_is_no_expression(text):
    with pytest.raises(InvalidConfig):
        whole_numbers_of(text, {"n": 3})


# ------------------------------------------------------------------------- planning


def test_plain_opencl_c_gets_macros_and_nothing_of_mako(device):
    operation = saxpy(device)
    config = Config(WG=64, WORK=4)
    plan = operation.algorithms[0].plan(operation.problem(), config, device)
    (launch,) = plan.launches
    assert launch.options == ("-DSHIFT=0.5f", "-DWG=64", "-DWORK=4")
    assert launch.params == {} and launch.template == str(KERNELS / "saxpy.cl")
    assert (launch.global_size, launch.local_size) == ((768,), (64,))
    assert list(launch.arguments) == ["a", "x", "y", "n", "staged"]
    assert launch.arguments["staged"] == LocalMemory(256)
    assert launch.arguments["n"] == N and launch.arguments["n"].dtype == np.uint32
    assert [(buffer.name, buffer.role) for buffer in plan.buffers] == [("x", "in"), ("y", "out")]
    title = operation.problem().title
    assert title.startswith(f"x float32[{N}], y float32[{N}], a=2.5, n={N}, SHIFT=0.5f")
    assert title.endswith("; work-items ceil_div(n, WORK) in groups of WG")
    # It runs: what is like Mako in its comments did not reach Mako.
    outputs = operation.run(operation.problem(), {"x": X}, config=config).outputs
    np.testing.assert_allclose(outputs["y"], 2.5 * X + 0.5, rtol=1e-6, atol=1e-6)


def test_each_configuration_has_a_kernel_of_its_own(device, tmp_path):
    # Its name, its arguments and its group may depend on the parameters.
    kernel = tmp_path / "twice.cl.mako"
    kernel.write_text(
        """<%page args="STAGED, WG"/>
        kernel __attribute__((reqd_work_group_size(${WG}, 1, 1)))
        void twice_${WG}(const global float *x,
        % if STAGED:
            local float *tile,
        % endif
            global float *y)
        {
            size_t i = get_global_id(0), k = get_local_id(0);
            ${"tile[k] = x[i]; y[i] = 2 * tile[k];" if STAGED else "y[i] = 2 * x[i];"}
        }"""
    )
    text = KernelText(kernel, None, {"STAGED": (True, False), "WG": (8, 16)}, {})
    x = X[:64]
    arguments = {"x": x, "y": np.empty_like(x), "tile": "WG"}
    operation = kernel_file(text, arguments, "64", expected=2 * x, device=device)
    for config in operation.algorithms[0].space:
        (launch,) = operation.algorithms[0].plan(operation.problem(), config, device).launches
        assert (launch.kernel, launch.local_size) == (f"twice_{config['WG']}", (config["WG"],))
        assert list(launch.arguments) == (["x", "tile", "y"] if config["STAGED"] else ["x", "y"])
        outputs = operation.run(operation.problem(), {"x": x}, config=config).outputs
        np.testing.assert_array_equal(outputs["y"], 2 * x)


def test_it_goes_to_another_process_and_each_task_has_its_journal(device):
    def task(**changes):
        return make_task(saxpy(device, **changes), device=device)

    again = pickle.loads(pickle.dumps(task()))
    assert journal_of(again).path == journal_of(task()).path
    assert again.problem == task().problem and hash(again.problem) == hash(task().problem)
    others = [
        task(arguments={**SAXPY, "x": X + 1}),
        task(arguments={**SAXPY, "a": 3.0}),
        task(local_size="round_up(WG, 16)"),
        task(expected=X),
        task(restrictions=["WG < 50"]),
        task(fixed={"SHIFT": 1}),
    ]
    assert len({journal_of(item).path for item in (task(), *others)}) == 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": {"n": 3}}, "needs a value for a, x, y, staged; it takes: const float a"),
        ({"arguments": {**SAXPY, "z": 1}}, "has no argument z"),
        ({"arguments": {**SAXPY, "n": -3}}, "'uint n' cannot be -3"),
        ({"arguments": {**SAXPY, "x": X.astype(float)}}, "cannot be an array of float64"),
        ({"tolerance": -1}, "tolerance must be finite and not negative, not -1.0"),
        ({"outputs": []}, "no result to check"),
        ({"expected": {"x": X}}, "are given for x, and the kernel writes y"),
        ({"restrictions": ["WGG < 3"]}, "unknown name 'WGG'"),
        ({"restrictions": ["WG < 3"]}, "the restrictions leave none"),
        ({"local_size": "WG, 1"}, "of one to three dimensions each"),
        ({"local_size": None}, "local size must be given"),
        ({"params": {"WG": ()}}, "WG has no values"),
        ({"fixed": {"WG": 2}}, "the parameter WG has a fixed value and values to try"),
        ({"arguments": {**SAXPY, "staged": -4}}, "'staged' needs a positive size, not -4"),
        ({"params": {"WG": (1 << 20,), "WORK": (1,)}}, "the device takes at most"),
    ],
)
def test_what_cannot_be_is_said(device, changes, words):
    with pytest.raises((InvalidProblem, InvalidConfig), match=re.escape(words)):
        make_task(saxpy(device, **changes), device=device)


def test_without_an_expected_result_the_first_configuration_gives_it(device):
    wrong = planted(device, ("wrong", "none"))
    problem = wrong.problem()
    np.testing.assert_array_equal(wrong.expected(problem, {})["doubled"], 3 * X)
    assert wrong.reference_is_first
    told = planted(device, ("wrong", "none"), expected=2 * X)
    np.testing.assert_array_equal(told.expected(problem, {})["doubled"], 2 * X)
    for fault, words in (
        ("syntax", "did not build: .*error.*undeclared"),
        ("lazy", r"gives different results each time.*doubled\[3000\]"),
        ("after", "writes outside the array 'doubled'"),
    ):
        operation = planted(device, (fault,))
        with pytest.raises(
            (BuildError, LaunchError), match=f"with which all others are compared, {words}"
        ):
            operation.expected(operation.problem(), {})


# --------------------------------------------------------------------------- tuning


@pytest.mark.parametrize("suffix", ["cl", "cl.mako"])
def test_arguments_are_called_as_built_in_functions_and_errors_name_the_file(
    device, tmp_path, caplog, suffix
):
    kernel = tmp_path / f"scale.{suffix}"
    page = '<%page args="WG"/>\n' if suffix == "cl.mako" else ""
    kernel.write_text(
        f"{page}\n"
        "kernel void scale(global const float *min, global float *length, float step, int mix,\n"
        "                  float factor) {\n"
        "    length[get_global_id(0)] = step * min[get_global_id(0)] + mix + factor; }\n"
    )
    text = KernelText(kernel, None, {"WG": (8, 16)}, {}, ("-Dfactor=weight",))
    x = X[:64]
    arguments = {"min": x, "length": x, "step": 2.0, "mix": 3, "factor": 0.5}

    def made():
        return kernel_file(text, arguments, "64", local_size="WG", device=device)

    operation = made()
    outputs = operation.run(operation.problem(), {"min": x}, config={"WG": 8}).outputs
    np.testing.assert_allclose(outputs["length"], 2 * x + 3.5, rtol=1e-6, atol=1e-6)
    task = make_task(operation, device=device)
    config = Config(WG=8)
    database.store(device, operation.name, task.algorithm, task.problem, config, 1.0)
    kernel.write_text(kernel.read_text().replace("step *", "no_such_thing *"))
    operation = made()
    with caplog.at_level("WARNING", "opencl_lab"), pytest.raises(BuildError) as caught:
        operation.run(operation.problem(), {"min": x})
    assert f"scale.{suffix} did not build" in caught.value.sentence
    where = "rendered scale.cl.mako:5:" if page else "scale.cl:4:"
    assert where in caught.value.log
    (record,) = caplog.records
    assert "stale" in record.message and "oclab tune" not in record.message


@pytest.mark.full
def test_a_kernel_that_adds_to_its_output_is_tuned(device):
    values = np.random.default_rng(3).integers(0, 256, 5003).astype(np.uint8)
    before = np.arange(256, dtype=np.uint32)
    counts = before + np.bincount(values, minlength=256)

    def tuned(**changes):
        return ol.tune_kernel(
            HISTOGRAM, {"WG_SIZE": (8, 16), "WORK": (4,)},
            {"values": values, "counts": before, "n": values.size}, "ceil_div(n, WORK)",
            inout=["counts"], strategy="exhaustive", budget=2, device=device, **changes,
        )  # fmt: skip

    for changes in ({"expected": counts}, {}):
        result = tuned(**changes)
        assert [item.status for item in result.evaluations] == ["correct"] * 2
        assert result.best is not None and len(result.best.times_ms) > 3
    (wrong, _) = tuned(expected=counts - (before == 7)).evaluations
    assert f"counts[7] is {counts[7]}, not {counts[7] - 1}" in wrong.reason
    for inout, words in ((["values"], "is const"), (["n"], "only arrays"), (["m"], "argument m")):
        with pytest.raises(InvalidProblem, match=words):
            ol.tune_kernel(HISTOGRAM, {"WG_SIZE": (8,)}, {"values": values, "counts": before,
                           "n": 1}, 1, fixed={"WORK": 1}, inout=inout)  # fmt: skip

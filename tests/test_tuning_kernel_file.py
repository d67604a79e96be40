"""Kernels in files: what is read from them, what is refused, and that they are tuned."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.cli import main
from opencl_lab.cli.tune_kernel import _values
from opencl_lab.errors import BuildError, InvalidConfig, InvalidProblem, LaunchError
from opencl_lab.operation import Difference
from opencl_lab.plan import LocalMemory
from opencl_lab.space import Config
from opencl_lab.template import kernel_digest
from opencl_lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.tuning.journal import journal_file
from opencl_lab.tuning.kernel_file import kernel_file
from opencl_lab.tuning.kernel_text import KernelText
from opencl_lab.tuning.sandbox import Sandbox
from opencl_lab.tuning.signature import signature
from opencl_lab.tuning.trial import Trial
from opencl_lab.tuning.tuner import make_task

KERNELS = Path(__file__).parent / "kernels"
N = 3001
X = np.random.default_rng(5).standard_normal(N, dtype=np.float32)
SAXPY = {"a": 2.5, "x": X, "y": np.empty_like(X), "n": N, "staged": "WG"}


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path / "data"))


def saxpy(device, arguments=SAXPY, **changes):
    params = changes.pop("params", {"WG": (16, 64), "WORK": (1, 4)})
    fixed = changes.pop("fixed", {"SHIFT": "0.5f"})
    text = KernelText(KERNELS / "saxpy.cl", changes.pop("kernel", None), params, fixed)
    given = {"global_size": "ceil_div(n, WORK)", "local_size": "WG", "device": device, **changes}
    return kernel_file(text, arguments, **given)


def planted(device, faults, **changes):
    text = KernelText(KERNELS / "planted.cl.mako", None, {"FAULT": faults}, {"WG_SIZE": 16})
    arguments = {"source": X, "doubled": np.empty_like(X), "n": N}
    return kernel_file(text, arguments, "n", outputs=["doubled"], device=device, **changes)


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
    assert first.group == ("TILE", "max(2, 4)", "1")
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
    assert signature(SOURCE, "second").group == ("WG", "1", "1")
    for kernel, words in ((None, "which kernel"), ("third", "'third'")):
        with pytest.raises(InvalidProblem, match=f"{words}.*first, second"):
            signature(SOURCE, kernel)
    with pytest.raises(InvalidProblem, match="has no kernel"):
        signature("__kernel int broken(", None)


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
    assert launch.params["SOURCE"] == (KERNELS / "saxpy.cl").read_text()
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


def test_it_goes_to_another_process_and_each_task_has_its_journal(device):
    def task(**changes):
        return make_task(saxpy(device, **changes), device=device)

    again = pickle.loads(pickle.dumps(task()))
    assert journal_file(again) == journal_file(task())
    assert again.problem == task().problem and hash(again.problem) == hash(task().problem)
    others = [
        task(arguments={**SAXPY, "x": X + 1}),
        task(arguments={**SAXPY, "a": 3.0}),
        task(local_size="round_up(WG, 16)"),
        task(expected=X),
        task(restrictions=["WG < 50"]),
        task(fixed={"SHIFT": 1}),
    ]
    assert len({journal_file(item) for item in (task(), *others)}) == 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": {"n": 3}}, "needs a value for a, x, y, staged; it takes: const float a"),
        ({"arguments": {**SAXPY, "z": 1}}, "has no argument z"),
        ({"arguments": {**SAXPY, "n": -3}}, "'uint n' cannot be -3"),
        ({"arguments": {**SAXPY, "n": 2.5}}, "'uint n' cannot be 2.5"),
        ({"arguments": {**SAXPY, "x": X.astype(float)}}, "cannot be an array of float64"),
        ({"arguments": {**SAXPY, "x": 7}}, "needs an array"),
        ({"arguments": {**SAXPY, "staged": "m"}}, "unknown name 'm'"),
        ({"outputs": []}, "no result to check"),
        ({"outputs": ["w"]}, "no argument w"),
        ({"expected": {"x": X}}, "are given for x, and the kernel writes y"),
        ({"expected": X[1:]}, "has shape"),
        ({"restrictions": ["WGG < 3"]}, "unknown name 'WGG'"),
        ({"restrictions": ["WG < 3"]}, "the restrictions leave none"),
        ({"local_size": "WG, 1"}, "of one to three dimensions each"),
        ({"local_size": None}, "local size must be given"),
        ({"params": {"WG": ()}}, "WG has no values"),
        ({"fixed": {"WG": 2}}, "the parameter WG is fixed, and has values to try too"),
        ({"params": {"W-Z": (1, 2)}}, "'W-Z' is no name of a parameter"),
        ({"arguments": {**SAXPY, "staged": -4}}, "'staged' needs a positive size, not -4"),
        ({"global_size": "9" * 23}, "is more than OpenCL can count"),
        ({"kernel": "saxpi"}, "no kernel 'saxpi'"),
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
        ("lazy", "leaves 1 elements of 'doubled' unwritten"),
        ("after", "writes outside the array 'doubled'"),
    ):
        operation = planted(device, (fault,))
        with pytest.raises(
            (BuildError, LaunchError), match=f"with which all others are compared, {words}"
        ):
            operation.expected(operation.problem(), {})


def test_results_may_differ_by_rounding(device):
    operation = planted(device, ("none",))
    right = {"doubled": 2 * X}
    near: Difference = operation.compare(operation.problem(), {}, right, {"doubled": 2.0001 * X})
    far: Difference = operation.compare(operation.problem(), {}, right, {"doubled": 2.01 * X})
    assert near.ok and not far.ok


# --------------------------------------------------------------------------- tuning


def test_it_is_tuned_in_a_process_of_its_own(device):
    result = ol.tune_kernel(
        KERNELS / "planted.cl.mako",
        {"WG_SIZE": (16, 64), "FAULT": ("none", "wrong", "syntax", "input")},
        {"source": X, "doubled": np.empty_like(X), "n": N},
        "n",
        outputs=["doubled"],
        expected=2 * X,
        restrictions=["WG_SIZE == 16 or FAULT == 'none'"],
        strategy="exhaustive",
        time_limit=30,
        device=device,
    )
    assert result.best is not None and result.best.config["FAULT"] == "none"
    assert result.failures == {"correctness": 2, "compile": 1}
    assert len(result.evaluations) == 5 and result.stored
    assert result.task.operation.name == "planted.cl.mako" and result.share_of_peak is None


def test_a_kernel_without_inputs(device, tmp_path):
    kernel = tmp_path / "iota.cl"
    kernel.write_text("kernel void iota(global int *out) { out[get_global_id(0)] = STEP * 2; }")
    result = ol.tune_kernel(
        kernel, {"STEP": (1, 2)}, {"out": np.empty(64, np.int32)}, 64, local_size=8,
        expected=np.full(64, 2), strategy="exhaustive", budget=2, device=device,
    )  # fmt: skip
    assert {item.config["STEP"]: item.status for item in result.evaluations} == {
        1: "correct",
        2: "correctness",
    }


# --------------------------------------------------------------- from the command line


def command(*arguments):
    return [
        *("tune", str(KERNELS / "saxpy.cl"), "--param", "WG=16,64", "--param", "WORK=1,4"),
        *("--fixed", "SHIFT=0.5f", "--global", "ceil_div(n, WORK)", "--local", "WG"),
        *("--strategy", "exhaustive", *map(str, arguments)),
    ]


def test_the_command_line_tunes_a_file(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", 2.5 * X + 0.5)
    np.save(tmp_path / "wrong.npy", X)
    arguments = ("--arg", f"n={N}", "--arg", "y=n", "--arg", "a=2.5", "--arg", "staged=WG")
    file = ("--arg", f"x={tmp_path / 'x.npy'}")
    assert main(command(*arguments, *file, "--check", f"y={tmp_path / 'y.npy'}", "--json")) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == "oclab/1" and content["algorithm"] == "saxpy"
    assert len(content["evaluations"]) == 4 and content["failures"] == {}
    assert content["problem"]["arguments"].startswith(f"x float32[{N}], y float32[{N}], a=2.5")
    assert main(command(*arguments, *file, "--check", tmp_path / "wrong.npy")) == 1
    assert "no configuration gave a right result" in capsys.readouterr().out
    random = ("--arg", "x=random:float32:n", "--where", "WORK == 4", "--plot", tmp_path / "p.png")
    assert main(command(*arguments, *random)) == 0
    said = capsys.readouterr().out
    assert 'compared with the result of the first one, {"WG": 16, "WORK": 4}' in said
    assert "the first configuration" in said and "2: not WORK == 4" in said
    assert (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--arg", "n"), "--arg takes NAME=VALUE, not 'n'"),
        (("--arg", "n=3", "--arg", "n=4"), "--arg n is given twice"),
        (("--arg", "n=3", "--arg", "x=three"), "unknown name 'three'"),
        (("--arg", "n=3", "--arg", "x=vec:3"), "--arg x=vec:3: data type 'vec' not understood"),
        (("--arg", "n=3", "--arg", "x=float32:a:3"), "[zeros:|random:|out:]TYPE:SIZE"),
        (("--arg", "n=3", "--arg", "x=n-3"), "the size must be positive"),
        (("--arg", "n=3", "--arg", "x=random:x.npy"), "takes a file, or out: and a file, not"),
        (("--arg", "n=3", "--arg", "x=1e30"), "no memory holds so many"),
        (("--arg", "n=3"), "needs a value for a, x, y, staged"),
        (("--arg", "n=3", "--check", "none.npy"), "cannot read none.npy"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, words, capsys):
    assert main(command(*arguments)) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""


def test_a_file_that_is_not_there_and_help(capsys):
    for name in ("none.cl", "none.cl.mako"):
        assert main(["tune", name, "--param", "A=1", "--global", "1"]) == 2
        assert f"{name}: No such file" in capsys.readouterr().err
    assert main(["tune", "none.cl", "--help"]) == 0
    assert "--param NAME=A,B" in capsys.readouterr().out
    assert main(["tune", "bogus"]) == 2
    assert "There is no oclab tune 'bogus'; there are: conv2d" in capsys.readouterr().err
    assert main(["tune", "scale.c"]) == 2
    assert "the files of kernels end in .cl or .mako" in capsys.readouterr().err


def test_an_edit_of_an_included_file_is_seen(device, tmp_path):
    source = '#include "outer.h"\n'
    source += "kernel void iota(global int *out) { out[get_global_id(0)] = STEP; }"
    (tmp_path / "outer.h").write_text('#  include "inner.h"\n')
    spaced = tmp_path / "a b"
    spaced.mkdir()
    (tmp_path / "inner.h").write_text("#define STEP 1\n")
    for name in ("iota.cl", "iota.cl.mako"):
        kernel, mako = tmp_path / name, name.endswith(".mako")
        kernel.write_text(('<%page args="WG"/>\n' if mako else "") + source)
        text = KernelText(kernel, None, {"WG": (8, 16)}, {})
        arguments = {"out": np.empty(64, np.int32)}
        journals, digests, results = [], [], []
        operation = kernel_file(text, arguments, "64", local_size="WG", device=device)
        for step in (1, 2):
            (tmp_path / "inner.h").write_text(f"#define STEP {step}\n")
            task = make_task(operation, device=device)
            journals.append(journal_file(task))
            digests.append(kernel_digest(task.algorithm.templates))
            ran = operation.run(task.problem, {}, config={"WG": 8})
            results.append(int(ran.outputs["out"][0]))
        assert results == [1, 2]
        assert len(set(journals)) == len(set(digests)) == 2
        (spaced / name).write_text(kernel.read_text())
        text = KernelText(spaced / name, None, {"WG": (8, 16)}, {})
        with pytest.raises(InvalidProblem, match="no folder with a space in its name"):
            make_task(kernel_file(text, arguments, "64", local_size="WG"), device=device)


def test_vectors_of_three_take_the_room_of_four(device, tmp_path):
    kernel = tmp_path / "double.cl"
    kernel.write_text(
        "kernel void twice(global const float3 *x, global float3 *y, local float3 *t) {"
        "  size_t i = get_global_id(0), k = get_local_id(0); t[k] = x[i]; y[i] = F * t[k]; }"
    )
    x = X[:192].reshape(-1, 3)

    def made(y, **changes):
        text = KernelText(kernel, None, {"F": (2,)}, {})
        arguments = {"x": x, "y": y, "t": 8}
        return kernel_file(text, arguments, "64", local_size="8", device=device, **changes)

    for y in (np.empty((64, 3), np.float32), np.empty((64, 4), np.float32)):
        for changes in ({}, {"expected": 2 * x}):
            task = make_task(made(y, **changes), device=device)
            plan = task.algorithm.plan(task.problem, Config(F=2), device)
            assert plan.launches[0].arguments["t"] == LocalMemory(128)
            evaluation = Trial(task, lambda phase: None).evaluate(Config(F=2), np.inf)
            assert evaluation.status == "correct", evaluation.reason
    right = made(np.empty((64, 3), np.float32), expected=2 * x + 1)
    task = make_task(right, device=device)
    assert Trial(task, lambda phase: None).evaluate(Config(F=2), np.inf).status == "correctness"
    with pytest.raises(InvalidProblem, match="needs an array of shape"):
        made(np.empty(192, np.float32))


def test_a_kernel_that_reads_what_it_writes_is_refused(device, tmp_path):
    kernel = tmp_path / "add.cl"
    kernel.write_text("kernel void add(global TYPE *y) { y[get_global_id(0)] += 1; }")
    for name in ("int", "float", "double"):
        source = kernel.read_text().replace("TYPE", name)
        (tmp_path / f"{name}.cl").write_text(source)
        text = KernelText(tmp_path / f"{name}.cl", None, {"W": (1,)}, {})
        dtype = {"int": np.int32, "float": np.float32, "double": np.float64}[name]
        operation = kernel_file(
            text, {"y": np.empty(64, dtype)}, "64", local_size="8", device=device
        )
        with pytest.raises(LaunchError, match="reads what it writes cannot be tuned"):
            operation.expected(operation.problem(), {})


def test_what_is_wrong_with_the_first_configuration_is_told_as_itself(device):
    for fault, kind, words in (
        ("syntax", BuildError, r"^planted.cl.mako: the first configuration {.*} did not build"),
        ("after", LaunchError, "^the first configuration {.*} writes outside the array 'doubled'"),
        ("crash", LaunchError, "^the first configuration {.*} crashed .SIGSEGV.*--check FILE"),
    ):
        sandbox = Sandbox(make_task(planted(device, (fault,)), device=device))
        with pytest.raises(kind, match=words.replace("} ", "}.*")) as caught:
            sandbox.evaluate(Config(FAULT=fault), np.inf, 60)
        assert str(caught.value).count("planted.cl.mako") <= 1
        assert kind is not BuildError or "undeclared" in caught.value.log
    assert (
        BuildError("", log="failed: BAD_OPTIONS - failed\n").first_error == ": failed: BAD_OPTIONS"
    )


def test_a_file_is_read_unless_it_is_said_to_be_an_output(tmp_path):
    np.save(tmp_path / "x.npy", X)
    known = signature("kernel void f(global float *x, global float *y, uint n) {}").arguments
    text = KernelText(tmp_path / "f.cl", None, {}, {})
    given = {"x": str(tmp_path / "x.npy"), "y": f"out:{tmp_path / 'x.npy'}", "n": "1e4"}
    values, outputs = _values(known, given, text, 0)
    assert outputs == ["y"] and values["x"].shape == values["y"].shape == X.shape
    values, outputs = _values(known, {**given, "x": "random:n"}, text, 0)
    assert outputs == ["y"] and values["x"].shape == (10000,)


def test_parameters_that_a_template_does_not_have(tmp_path):
    kernel = tmp_path / "k.cl.mako"
    kernel.write_text('<%page args="OTHER"/>\nkernel void k(global int *y) {}')
    with pytest.raises(InvalidProblem, match=r"k\.cl\.mako: it needs no parameter W, and it also"):
        KernelText(kernel, None, {"W": (1,)}, {}).signature({"W": 1})

"""A kernel in a file, tuned from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kernel_files import KERNELS, N, X, planted

from opencl_lab.core.errors import BuildError, InvalidProblem, LaunchError
from opencl_lab.core.plan import LocalMemory
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.kernel_arrays import argument_values
from opencl_lab.lab.tuning.journal import journal_of
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.signature import signature
from opencl_lab.lab.tuning.trial import Evaluator
from opencl_lab.lab.tuning.tuner import make_task

pytestmark = pytest.mark.usefixtures("private_data")


# --------------------------------------------------------------- from the command line


def command(*arguments):
    return [
        *("tune", str(KERNELS / "saxpy.cl"), "--param", "WG=16,64", "--param", "WORK=1,4"),
        *("--fixed", "SHIFT=0.5f", "--global", "ceil_div(n, WORK)", "--local", "WG"),
        *("--strategy", "exhaustive", *map(str, arguments)),
    ]


@pytest.mark.full
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
    assert "no configuration gave a correct result" in capsys.readouterr().out
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
        (("--arg", "n=3", "--arg", "x=1e30"), "the array does not fit into memory"),
        (
            ("--arg", "n=3", "--arg", "y=out:2*WG"),
            "y=out:2*WG: an array whose size names a --param is",
        ),
        (("--arg", "n=3"), "needs a value for a, x, y, staged"),
        (("--arg", "n=3", "--check", "none.npy"), "cannot read none.npy"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, words, capsys):
    assert main(command(*arguments)) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""


SUM = """
__attribute__((reqd_work_group_size(GROUPS, 1, 1)))
kernel void sum(global const int *x, global int *part, global int *total, const int n) {
    int found = 0;
    for (int i = get_local_id(0); i < n; i += GROUPS) found += x[i];
    part[2 * get_local_id(0) + 1] = found;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        total[0] = 0;
        for (int i = 0; i < GROUPS; i++) total[0] += part[2 * i + 1];
    }
}
"""


def test_working_memory_has_a_size_by_parameters(device, tmp_path, monkeypatch, capsys):
    (tmp_path / "sum.cl").write_text(SUM)
    np.save(tmp_path / "x.npy", np.arange(1000, dtype=np.int32))
    np.save(tmp_path / "right.npy", np.array([499_500], np.int32))
    monkeypatch.chdir(tmp_path)
    given = {"x": "x.npy", "n": "1000", "part": "2 * GROUPS", "total": "1"}
    params = {"GROUPS": (4, 16)}
    text = KernelText(tmp_path / "sum.cl", None, params, {})
    arguments = signature(SUM, None, "sum.cl", text.first).arguments
    values, outputs, inout = argument_values(arguments, given, {}, 0, params)
    assert values["part"] == "2 * GROUPS" and (outputs, inout) == (["total"], [])
    operation = kernel_file(text, values, "GROUPS", device=device)
    problem = operation.problem()
    for groups in (4, 16):
        plan = operation.algorithms[0].plan(problem, Config(GROUPS=groups), device)
        (part,) = plan.with_role("scratch")
        assert part.shape == (2 * groups,)
        run = operation.run(problem, {"x": values["x"]}, config={"GROUPS": groups})
        assert run.outputs["total"][0] == 499_500
    command = ["tune", "sum.cl", "--param", "GROUPS=4,16", "--global", "GROUPS", "--json"]
    command += ["--strategy", "exhaustive", "--check", "right.npy"]
    for name, value in given.items():
        command += ["--arg", f"{name}={value}"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert {item["status"] for item in found["evaluations"]} == {"correct"}
    np.save(tmp_path / "GROUPS.npy", np.arange(1000, dtype=np.int32))  # a file comes first
    for name in ("GROUPS.npy", f"{tmp_path}/GROUPS.npy", "out:GROUPS.npy", "inout:GROUPS.npy"):
        read = argument_values(arguments, {**given, "x": name}, {}, 0, params)[0]["x"]
        np.testing.assert_array_equal(read, values["x"])
    for wrong, said in ({"x": "GROUPS"}, "working memory"), ({"total": "GROUPS"}, "no result"):
        with pytest.raises(InvalidProblem, match=said):
            kernel_file(text, {**values, **wrong}, "GROUPS", device=device)


def test_a_file_that_is_not_there_and_help(capsys):
    for name in ("none.cl", "none.cl.mako"):
        assert main(["tune", name, "--param", "A=1", "--global", "1"]) == 2
        assert f"{name}: No such file" in capsys.readouterr().err
    assert main(["tune", "none.cl", "--help"]) == 0
    assert "--param NAME=A,B" in capsys.readouterr().out
    assert main(["tune", "bogus"]) == 2
    assert "There is no oclab tune 'bogus'; there are: conv2d" in capsys.readouterr().err
    assert main(["tune", "scale.c"]) == 2
    assert "nor a kernel file (.cl or .mako)" in capsys.readouterr().err


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
            journals.append(journal_of(task).path)
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
            evaluation = Evaluator(task, lambda phase: None).evaluate(Config(F=2), np.inf)
            assert evaluation.status == "correct", evaluation.reason
    right = made(np.empty((64, 3), np.float32), expected=2 * x + 1)
    task = make_task(right, device=device)
    assert Evaluator(task, lambda phase: None).evaluate(Config(F=2), np.inf).status == "correctness"
    with pytest.raises(InvalidProblem, match="needs an array of shape"):
        made(np.empty(192, np.float32))


def test_a_kernel_that_reads_what_it_writes_says_so(device, tmp_path):
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
        with pytest.raises(LaunchError, match=r"y\[0\] is .*pass inout=\['y'\], or --arg y=inout:"):
            operation.expected(operation.problem(), {})


@pytest.mark.full
def test_what_is_wrong_with_the_first_configuration_is_told_as_itself(device):
    for fault, kind, words in (
        ("syntax", BuildError, r"^planted.cl.mako: the first configuration {.*} did not build"),
        ("after", LaunchError, "^the first configuration {.*} writes outside the array 'doubled'"),
        (
            "crash",
            LaunchError,
            "^the first configuration {.*} does not run: .*SIGSEGV.*--check FILE",
        ),
    ):
        sandbox = Sandbox(make_task(planted(device, (fault,)), device=device))
        with pytest.raises(kind, match=words.replace("} ", "}.*")) as caught:
            sandbox.evaluate(Config(FAULT=fault), np.inf, 60)
        assert caught.value.sentence.count("the first configuration") == 1
        assert kind is not BuildError or "undeclared" in caught.value.log
    assert (
        BuildError("", log="failed: BAD_OPTIONS - failed\n").first_error == ": failed: BAD_OPTIONS"
    )


@pytest.mark.full
def test_a_first_configuration_that_hangs_ends_in_time_and_is_not_tried_again(capsys, monkeypatch):
    arguments = [
        *("tune", str(KERNELS / "planted.cl.mako"), "--param", "FAULT=hang,none"),
        *("--fixed", "WG_SIZE=16", "--arg", f"n={N}", "--arg", "source=random:n"),
        *("--arg", "doubled=n", "--global", "n", "--timeout", "1", "--quiet"),
    ]
    assert main(arguments) == 4  # without a limit it would never end
    assert "does not run: timed out after 1 s, while launching" in capsys.readouterr().err
    monkeypatch.setattr("opencl_lab.lab.tuning.sandbox.Worker", None)  # nothing is launched
    assert main(arguments) == 4
    assert "does not run: timed out after 1 s" in capsys.readouterr().err


@pytest.mark.full
def test_a_type_may_be_a_parameter(tmp_path, capsys):
    kernel = tmp_path / "scale.cl"
    kernel.write_text(
        "kernel void scale(global const T *x, global T *y, const T factor) {"
        " y[get_global_id(0)] = factor * x[get_global_id(0)]; }"
    )
    arguments = [
        *("tune", str(kernel), "--param", "WG=8,16", "--fixed", "T=int", "--global", "64"),
        *("--arg", "x=64", "--arg", "y=64", "--arg", "factor=3", "--local", "WG", "--json"),
    ]
    assert main([*arguments, "--budget", "2"]) == 0
    about = json.loads(capsys.readouterr().out)["problem"]["arguments"]
    assert about.startswith("x int32[64], y int32[64], factor=3")


def test_a_file_is_read_unless_it_is_said_to_be_an_output(tmp_path):
    np.save(tmp_path / "x.npy", X)
    source = "kernel void f(global float *x, global float *y, uint n) {}"
    arguments = signature(source).arguments
    given = {"x": str(tmp_path / "x.npy"), "y": f"out:{tmp_path / 'x.npy'}", "n": "1e4"}
    values, outputs, _ = argument_values(arguments, given, {}, 0)
    assert outputs == ["y"] and values["x"].shape == values["y"].shape == X.shape
    values, outputs, _ = argument_values(arguments, {**given, "x": "random:n"}, {}, 0)
    assert outputs == ["y"] and values["x"].shape == (10000,)
    np.savez(tmp_path / "both.npz", a=X, b=X[:3])
    member = f"{tmp_path / 'both.npz'}:b"
    files = {**given, "x": member, "y": f"out:{member}"}
    values, outputs, _ = argument_values(arguments, files, {}, 0)
    assert outputs == ["y"] and values["x"].shape == values["y"].shape == X[:3].shape
    given = {**given, "x": f"inout:{tmp_path / 'x.npy'}", "y": "inout:zeros:n"}
    values, *written = argument_values(arguments, given, {}, 0)
    assert written == [[], ["x", "y"]] and not values["y"].any()
    np.testing.assert_array_equal(values["x"], X)


def test_parameters_that_a_template_does_not_have(tmp_path):
    kernel = tmp_path / "k.cl.mako"
    kernel.write_text('<%page args="OTHER"/>\nkernel void k(global int *y) {}')
    with pytest.raises(InvalidProblem, match=r"k\.cl\.mako: it needs no parameter W, and it also"):
        KernelText(kernel, None, {"W": (1,)}, {}).launched({"W": 1})
    kernel.write_text("kernel void k(global int *y) { y[0] = ${W + V}; }")
    text = KernelText(kernel, None, {"W": (1,)}, {"V": 2})
    with pytest.raises(InvalidProblem, match="first line must be <%page") as caught:
        text.launched({"W": 1})
    line = str(caught.value).rpartition(" must be ")[2]
    kernel.write_text(f"{line}\n{kernel.read_text()}")
    assert text.launched({"W": 1})[0].kernel == "k"
    kernel.write_text('<%page args="W, V"/>\nkernel void k(global int *y) { y[0] = ${U}; }')
    with pytest.raises(BuildError, match=r"k\.cl\.mako .*'U' is not defined; the line <%page"):
        text.launched({"W": 1})

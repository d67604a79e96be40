"""A kernel in a file, tuned from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kernel_files import KERNELS, N, X

from opencl_lab.core.errors import BuildError, InvalidProblem, LaunchError
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.tune_kernel import _argument_values
from opencl_lab.lab.tuning.journal import journal_of
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText, signature
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
        (("--arg", "n=3", "--arg", "x=three"), "unknown name 'three'"),
        (("--arg", "n=3", "--arg", "x=float32:a:3"), "a file, or [zeros:|random:][TYPE:]SIZE"),
        (("--arg", "n=3", "--arg", "x=n-3"), "the size must be positive"),
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


def test_a_kernel_that_reads_what_it_writes_says_so(device, tmp_path):
    (tmp_path / "add.cl").write_text("kernel void add(global int *y) { y[get_global_id(0)] += 1; }")
    text = KernelText(tmp_path / "add.cl", None, {"W": (1,)}, {})
    arguments = {"y": np.empty(64, np.int32)}
    operation = kernel_file(text, arguments, "64", local_size="8", device=device)
    with pytest.raises(LaunchError, match=r"y\[0\] is .*inout=\[NAME\], or --arg NAME=inout:"):
        operation.expected(operation.problem(), {})


@pytest.mark.full
def test_a_first_configuration_that_hangs_ends_in_time(capsys):
    arguments = [
        *("tune", str(KERNELS / "planted.cl.mako"), "--param", "FAULT=hang,none"),
        *("--fixed", "WG_SIZE=16", "--arg", f"n={N}", "--arg", "source=random:n"),
        *("--arg", "doubled=n", "--global", "n", "--timeout", "1", "--quiet"),
    ]
    assert main(arguments) == 4  # without a limit it would never end
    assert "does not run: timed out after 1 s, while launching" in capsys.readouterr().err


def test_arrays_are_read_drawn_or_written(tmp_path):
    np.savez(tmp_path / "both.npz", a=X, b=X[:3])
    arguments = signature("kernel void f(global float *x, global float *y, uint n) {}").arguments
    given = {"x": f"{tmp_path / 'both.npz'}:b", "y": "n", "n": "1e4"}
    values, *written = _argument_values(arguments, given, {}, 0)
    assert written == [["y"], []] and values["x"].shape == (3,) and values["y"].shape == (10000,)
    for text, shape in (("random:n", (10000,)), ("zeros:float32:2 * n", (20000,))):
        values, *written = _argument_values(arguments, {**given, "x": text}, {}, 0)
        assert written == [["y"], []] and values["x"].shape == shape
    given = {**given, "x": f"inout:{tmp_path / 'both.npz'}:a", "y": "inout:zeros:n"}
    values, *written = _argument_values(arguments, given, {}, 0)
    assert written == [[], ["x", "y"]] and not values["y"].any()
    np.testing.assert_array_equal(values["x"], X)


SUM = """
__attribute__((reqd_work_group_size(GROUPS, 1, 1)))
kernel void sum(global const int *x, global int2 *part, global int *total, const int n) {
    int found = 0;
    for (int i = get_local_id(0); i < n; i += GROUPS) found += x[i];
    part[2 * get_local_id(0) + 1].y = found;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        total[0] = 0;
        for (int i = 0; i < GROUPS; i++) total[0] += part[2 * i + 1].y;
    }
}
"""


def test_working_memory_has_a_size_by_parameters(device, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sum.cl").write_text(SUM)
    np.save("GROUPS.npy", np.arange(1000, dtype=np.int32))  # a file, in spite of its name
    np.save("right.npy", np.array([499_500], np.int32))
    command = ["tune", "sum.cl", "--param", "GROUPS=4,16", "--global", "GROUPS", "--json"]
    command += ["--strategy", "exhaustive", "--check", "right.npy"]
    for argument in ("x=GROUPS.npy", "n=1000", "part=2 * GROUPS", "total=1"):
        command += ["--arg", argument]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["status"] for item in found["evaluations"]] == ["correct"] * 2
    assert ", part int32[2 * GROUPS]" in found["problem"]["arguments"]
    text = KernelText(tmp_path / "sum.cl", None, {"GROUPS": (4, 16)}, {})
    arrays = {"x": np.ones(9, "i"), "n": 9, "part": "2 * GROUPS", "total": np.zeros(1, "i")}
    operation = kernel_file(text, arrays, "GROUPS", device=device)
    plan = operation.algorithms[0].plan(operation.problem(), Config(GROUPS=16), device)
    assert [buffer.shape for buffer in plan.with_role("scratch")] == [(64,)]  # pairs of numbers
    for wrong, said in ({"x": "GROUPS"}, "working memory"), ({"total": "GROUPS"}, "no result"):
        with pytest.raises(InvalidProblem, match=said):
            kernel_file(text, {**arrays, **wrong}, "GROUPS", device=device)

"""`oclab source`: what it prints is the plan, and its code is that of the templates."""

import json
import re
from pathlib import Path

import pyopencl as cl
import pytest
from command_line import oclab, oclab_process, one_sentence

from opencl_lab.core.template import render
from opencl_lab.drivers.pretend import can_pretend
from opencl_lab.lab.cli.source import formatted
from opencl_lab.lab.registry import get_operation, operations

SMALL = {
    "sort": {"n": 70_001},
    "gemm": {"size": 33, "dtype": "complex64", "alpha": 1 + 2j},
    "conv2d": {"size": 40, "ksize": 31},
    "filter": {"size": 40, "median": 3},
    "dft": {"n": 1_009},
    "topk": {"n": 3_000, "k": 4},
    "unique": {"n": 3_000, "counts": True},
    "searchsorted": {"n": 300},
}


def flags(options):
    return [
        word
        for name, value in options.items()
        for word in ([f"--{name}"] if value is True else [f"--{name}", value])
    ]


def squeezed(text):
    """Return code without white space, and without what joins the lines of macros."""
    return re.sub(r"[\s\\]", "", text)


@pytest.mark.parametrize("name", operations())
def test_it_prints_the_launches_of_the_plan_in_order_and_each_program_once(name, device):
    operation, options = get_operation(name), SMALL[name]
    problem = operation.problem(**options)
    plan = operation.solver.plan(problem, operation.side(problem, device))
    arguments = ("source", name, *flags(options), "--device", device.spec)
    printed, found = oclab(*arguments), json.loads(oclab(*arguments, "--json").stdout)
    heads = re.findall(r"^ \* Launch (\d+) of \d+: kernel (\w+) of", printed.stdout, re.MULTILINE)
    kernels = [launch.kernel for launch in plan.launches]
    assert heads == [(str(number), kernel) for number, kernel in enumerate(kernels, 1)]
    assert [item["name"] for item in found["buffers"]] == list(plan.by_name)
    for launch, said in zip(plan.launches, found["launches"], strict=True):
        assert said["kernel"] == launch.kernel
        assert tuple(said["global_size"]) == launch.global_size
        assert tuple(said["local_size"]) == launch.local_size
        assert list(said["arguments"]) == list(launch.arguments)
        code = found["programs"][said["program"]]["source"]
        assert squeezed(code) == squeezed(render(launch.template, launch.params).text)
        assert printed.stdout.count(f"*/\n{code}") == 1
    assert len(found["programs"]) == len({item["source"] for item in found["programs"]})


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # NVIDIA's compiler says something
def test_what_it_prints_of_one_program_compiles(device, queue):
    name = "direct-naive"
    printed = oclab("source", "dft", "--n", 60, "--algorithm", name, "--device", device.spec)
    (options,) = re.findall(r"built with (.*)", printed.stdout)
    program = cl.Program(queue.context, printed.stdout).build(options.split())
    assert [kernel.function_name for kernel in program.all_kernels()] == ["dft_naive"]


def test_steps_of_an_fft_say_their_passes_and_whether_they_share_a_launch(device):
    arguments = ("source", "dft", "--n", 44_100)
    if device.kind == "cpu":
        printed = oclab(*arguments, "--algorithm", "fft", "--device", device.spec).stdout
        assert re.search(r"STEPS +2, fused.*\n.*STEPS\[0\].*\n", printed)
    if not can_pretend(device):
        pytest.skip("only PoCL's device can be pretended to be another")
    printed = oclab_process(*arguments, "--pretend", "amd-gcn", OCLAB_DEVICE="")
    assert printed.stderr == ""  # which would tell of a self-test, with launches
    assert "Launch 1 of 2: kernel fft_local" in printed.stdout and "2, fused" not in printed.stdout
    steps = re.findall(r"STEPS\[0\] +(\d+) points in passes of radix ([\d, ]+),", printed.stdout)
    assert steps == [("140", "14, 10"), ("315", "9, 7, 5")]
    page = Path(__file__).parents[1].joinpath("docs/command_line.md").read_text(encoding="utf-8")
    shown = page.partition("--pretend amd-gcn\n")[2].partition("```")[0].splitlines()
    assert len(shown) > 20 and {*shown} - {*printed.stdout.splitlines()} == {"..."}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("sort", "--algorithm", "nothing"), 2),
        (("gemm", "--algorithm", "hybrid"), 2),
        (("sort", "--device", "no such device"), 3),
    ],
)
def test_what_has_no_kernels_here_ends_in_a_sentence(arguments, status):
    result = oclab("source", *arguments)
    assert result.returncode == status and one_sentence(result)


def test_what_works_in_parts_or_is_empty_says_so():
    assert "in parts  " in oclab("source", "sort", "--n", 10**6, OCLAB_DEVICE_BYTES="1M").stdout
    assert "Nothing is launched" in oclab("source", "sort", "--n", 0).stdout


SOURCE = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
  void f(const int a,
     const int b) /* goes
                     on */
  {


#pragma unroll
        for (int i = 0; i < 3; ++i)
  if (a) {
x(a,
y);

            }
  else
    x = a
        ? "{" : b;
    z;   // {
  }
#define LONG(a)      f(a,     b)
"""
INDENTED = """\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void f(const int a,
       const int b) /* goes
                       on */
{
    #pragma unroll
    for (int i = 0; i < 3; ++i)
        if (a) {
            x(a,
              y);
        }
        else
            x = a
                ? "{" : b;
    z;   // {
}
#define LONG(a) \\
    f(a, \\
    b)
"""


def test_c_is_indented_by_its_brackets():
    assert formatted(SOURCE) == INDENTED

"""What programs for GPUs that are not here are made of, and that their compilers take them."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from offline_reports import fake_ocloc

from opencl_lab.core.template import ROOT, render
from opencl_lab.lab.offline import TARGETS, VARIABLE, compile_for, missing
from opencl_lab.lab.registry import operations

sys.path.append(str(Path(__file__).parents[1] / "tools"))

rendered = importlib.import_module("rendered_kernels")
offline = importlib.import_module("offline_targets")
page = importlib.import_module("page_offline")

NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*##[^\n]*", re.DOTALL | re.MULTILINE)
DIGITS = r"(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|0[xX][\da-fA-F.]+[pP][-+]?\d+"
DOUBLE = re.compile(rf"(?<![\w.])(?:{DIGITS})(?![\w.])")
WIDTHS = {"skl": (8, 16, 32), "pvc": (16, 32)}
"""Items of a thread of Intel's GPUs, for two generations."""


def test_what_a_double_literal_is():
    assert DOUBLE.findall("x * 0.5 + 1e-3 - .5e2 / 0x1p-24 + 3.") == [
        "0.5", "1e-3", ".5e2", "0x1p-24", "3.",
    ]  # fmt: skip
    assert not DOUBLE.findall("x.s0 + 0.5f - 1e3f * 0x1.8p23f + v1.x * 12 + 0x1e5 + a_1e5")


@pytest.mark.parametrize("where", ["plain-gpu", "pocl"])
@pytest.mark.parametrize("name", operations())
def test_kernels_without_double_have_no_double_literals(name, where):
    """A device without double rounds one, with a warning, or refuses the program."""
    device, seen, found = rendered.DEVICES[where], set(), set()
    for solver, said, problem in rendered.problems():
        for named in solver.algorithms if solver.name == name else ():
            algorithm = named.on(device.kind)
            if algorithm.supports(problem, device) is not None:
                continue
            plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
            for launch in plan.launches:
                key = launch.template, repr(launch.params)
                if key in seen:
                    continue
                seen.add(key)
                code = NO_CODE.sub(" ", render(launch.template, launch.params).text)
                if not re.search(r"\bdouble", code) and DOUBLE.search(code):
                    found.add((launch.template, DOUBLE.search(code)[0], said))
    assert seen and not found


def test_no_kernel_depends_on_how_many_items_run_together():
    """Where one does, on devices other than NVIDIA's, it must ask for the number."""
    asks = re.compile(r"\b(?:get_)?(?:intel_)?sub_group")
    for path in ROOT.rglob("*.mako"):
        code = NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
        assert not asks.search(code) or "intel_reqd_sub_group_size" in code, path


def test_the_page_counts_what_spills_and_what_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, fake_ocloc(tmp_path))
    (tmp_path / "versions").write_text("libigc1\t1.0\nlibz3-4\t4.8\n")
    monkeypatch.setattr(page, "DATA", tmp_path / "data.json")
    spills = "__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void f() {}"
    given = [
        offline.Program("a", spills, (), ["gemm blocked n=1", "gemm tiled n=1"], by_auto=True),
        offline.Program("b", spills, (), ["gemm tiled n=2"]),
        offline.Program("c", "__kernel void f() {}", (), ["sort radix n=1"]),
        offline.Program("d", "wrong", (), ["sort radix n=2"]),
    ]
    for name in ("pvc", "skl", "skl"):  # a row replaces that of an earlier run
        offline.keep(offline.row_of(TARGETS[name], given))
    assert "d (sort radix n=2) fails:\n1:1:45: error" in capsys.readouterr().out
    found = page.read()
    assert "`libigc1` 1.0." in page.said(found) and "libz3" not in page.said(found)
    head, rows, words = page.targets(found)
    assert [row[0] for row in rows] == ["`skl`", "`pvc`"]
    assert rows[0][words:] == [
        "4", "1", "6", "1", "1", "178", "256", "32,768", "256", "3, 5 of 7",
    ]  # fmt: skip
    assert len(head) == len(rows[0])
    assert page.spills(found)[1] == [
        ["gemm blocked", "1: 178", "1: 178"], ["gemm tiled", "1: 178", "1: 178"],
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    "target, width", [(name, width) for name, widths in WIDTHS.items() for width in widths]
)
def test_programs_compile_for_each_number_of_items(target, width):
    """What a kernel takes but for registers does not depend on it."""
    target = TARGETS[target]
    if reason := missing(target):
        pytest.skip(reason)
    asked = f"__kernel __attribute__((intel_reqd_sub_group_size({width})))"
    for program in offline.programs("intel-xe", share=True):  # which ask for no number
        asking = re.sub(r"\b__kernel\b", asked, program.source)
        free = compile_for(target, program.source, program.options)
        bound = compile_for(target, asking, program.options)
        assert {kernel.width for kernel in bound} == {width}, program.template
        pairs = [[(kernel.kernel, kernel.local_bytes) for kernel in all_] for all_ in (free, bound)]
        assert pairs[0] == pairs[1], program.template

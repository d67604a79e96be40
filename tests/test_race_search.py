"""The search for races under Oclgrind: what it makes of reports, its cases, and a few of them."""

from __future__ import annotations

import importlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from radix_checks import GPU

from opencl_lab.core import template
from opencl_lab.core.plan import check_plan

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

races = importlib.import_module("race_search")

PLANTED_KINDS = {case.planted: name for name, case in races.CASES.items() if case.planted}
"""A case of each kind of fault."""

LOG = """
Read-write data race at global memory address 0xb000000000078
\tKernel: histograms

\tFirst entity:  Global(30,0,0) Local(30,0,0) Group(0,0,0)
\t  store volatile i32 0, i32 addrspace(1)* %arrayidx12.i, align 4, !dbg !478, !tbaa !251
\tAt line 212 (column 29) of input.cl:
\t  histogram[word] = 0;

\tSecond entity: Global(94,0,0) Local(30,0,0) Group(1,0,0)
\t  %call173 = tail call spir_func i32 @_Z10atomic_addPU3AS1Vjj(i32 addrspace(1)* noundef %a)
\tAt line 293 (column 13) of input.cl:
\t  atomic_add(&histogram[word], count);

Invalid read of size 4 at global memory address 0x3000000000190
\tKernel: scatter
\tEntity: Global(1,0,0) Local(1,0,0) Group(0,0,0)
\t  %3 = load i32, i32 addrspace(1)* %arrayidx1, align 4, !dbg !20, !tbaa !15
\tAt line 4 (column 12) of input.cl:
\t  own[j] = source[begin];
"""


def test_what_is_made_of_reports():
    """Order between groups may be explained; nothing within a group is, nor any other report."""
    found = races.parse(LOG + LOG.replace("Group(1,0,0)", "Group(0,0,0)"))
    statements = ("histogram[word] = 0;", "atomic_add(&histogram[word], count);")
    race = "Read-write data race in global memory"
    between = races.RaceReport(race, "histograms", statements, True)
    within = races.RaceReport(race, "histograms", statements, False)
    outside = races.RaceReport(
        "Invalid read of size 4 in global memory", "scatter", ("own[j] = source[begin];",)
    )
    assert found == {between: 1, within: 1, outside: 2}
    assert races.why(between) == races.LAST_COMER
    assert races.why(within) is None and races.why(outside) is None
    assert len(races.judge("radix-onesweep", found)) == 2
    assert races.judge("radix-onesweep", {between: 1}) == []
    (missed,) = races.judge("planted-merge", {outside: 1})
    assert missed == "the planted fault is not reported: data race"
    assert races.judge("planted-merge", {within: 1}) == []
    assert races.judge("planted-outside", {outside: 1}) == []
    assert races.judge("planted-outside", {within: 1}) != []
    tickets = {replace(between, kernel="fft_local", statements=("a", "b")): 1}
    assert races.judge("fft-local-tickets", tickets) == []
    assert len(races.judge("fft-local", tickets)) == 1
    assert len(races.judge("fft-local-tickets", {within: 1})) == 1
    padding = "Uninitialized value written to local memory address 0x10\n\tKernel: scatter\n"
    place = "\tAt line 2 (column 1) of input.cl:\n\t  " + races.PADDED + "\n"
    assert races.judge("radix-scan", races.parse(padding + place)) == []
    assert len(races.judge("radix-scan", races.parse(padding))) == 1


@pytest.fixture
def lowered(monkeypatch):
    for limit, value in races.LOWERED.items():
        monkeypatch.setattr(limit, value)


def sources(name):
    """Return a case, its plan, inputs and outputs, and the texts of its kernels."""
    case = races.CASES[name]
    made = case.make(replace(GPU, kind="cpu"))
    texts = {template.render(item.template, item.params).text for item in made[0].launches}
    return case, made, texts


def test_the_explained_statements_are_there(lowered):
    texts = set().union(*(sources(name)[2] for name in races.CASES))
    for kernel, *statements in races.EXPLAINED:
        inside = [text for text in texts if f"{kernel}(" in text]
        for words in statements:
            assert any(words in text for text in inside), words


@pytest.mark.parametrize("name", races.CASES)
def test_cases_can_be_planned(name, lowered):
    """And what one of them edits is in a source."""
    case, (plan, arrays, expected), texts = sources(name)
    check_plan(plan, replace(GPU, kind="cpu"))
    assert plan.launches and set(arrays) | set(expected) <= set(plan.by_name)
    if case.edit:
        assert any(case.edit[0] in text for text in texts)


def test_without_oclgrind_there_is_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["race_search.py", "--short"])
    assert races.main() == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_run_that_stops_is_a_finding(tmp_path):
    stopped = tmp_path / "oclgrind"
    stopped.write_text("#!/bin/sh\necho 'Undefined external function: x' >&2\nexit 3\n")
    stopped.chmod(0o755)
    said, reports = races.run_case("unique", str(stopped))
    (line,) = races.judge("unique", reports)
    assert said == "" and line.startswith("Undefined external function: x in the run")


@pytest.mark.skipif(not shutil.which("oclgrind"), reason="Oclgrind is not installed")
@pytest.mark.parametrize(
    "name", ["radix-onesweep", "topk-cut", "fft-vector", *sorted(PLANTED_KINDS.values())]
)
def test_a_search(name):
    said, reports = races.run_case(name, shutil.which("oclgrind"))
    assert races.judge(name, reports) == []
    assert said.startswith("1 ")  # launches: it was run

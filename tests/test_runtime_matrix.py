"""The tool that runs the matrix on runtimes: crashes and hangs are results; the page of all."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

matrix = importlib.import_module("runtime_matrix")
pages = importlib.import_module("pages")

INTERPRETER = """#!{python}
import json, os, pathlib, signal, sys, time
log = pathlib.Path(os.environ["OCLAB_MATRIX_LOG"])
def write(*line):
    with log.open("a") as file:
        print(json.dumps(line), file=file)
seen = log.read_text()
for case, end in {cases}:
    if f'"{{case}}"' in seen:
        continue
    write(case, "began", "")
    if end == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if end == "hang":
        time.sleep(60)
    if end == "exit":
        print("INTERNALERROR> no conftest")
        sys.exit(3)
    write(case, end, "why")
"""


@pytest.fixture
def run(tmp_path):
    """Return what runs cases that end in given ways, by an interpreter that is made for it."""

    def made(*cases, limit=60, patience=120):
        python = tmp_path / "python"
        python.write_text(INTERPRETER.format(python=sys.executable, cases=cases))
        python.chmod(0o755)
        options = argparse.Namespace(python=str(python), jobs=1, limit=limit, only="")
        runtime = matrix.Runtime("of a test", "", case_seconds=patience)
        return matrix.outcomes(runtime, options)

    return made


def test_a_crash_is_the_result_of_its_case_alone(run):
    ended, complete = run(("a", "passed"), ("b", "crash"), ("c", "failed"), ("d", "skipped"))
    assert complete
    assert ended == {
        "a": ("passed", "why"),
        "b": ("failed", "the process ended: SIGSEGV, signal 11 (Segmentation fault)"),
        "c": ("failed", "why"),
        "d": ("skipped", "why"),
    }


CASE = "tests/test_matrix.py::test_matrix[{}]"
ENDED = {
    CASE.format("sort-odd-even-merge-0:0-n-8"): ("passed", ""),
    CASE.format("sort-odd-even-merge-0:0-n-9"): ("failed", "AssertionError: off by 3.5 (2e-3)"),
    CASE.format("sort-odd-even-merge-0:0-n-7"): ("failed", "AssertionError: off by 7.25 (1e-3)"),
    CASE.format("sort-odd-even-merge-0:0-rows"): ("skipped", "odd-even-merge on X: no fp64"),
    CASE.format("sort-radix-0:0-n-8"): ("passed", ""),
    CASE.format("sort-radix-0:0-n-8-on-gpus"): ("passed", ""),
    CASE.format("gemm-tensor-0:0-size-8"): ("skipped", "tensor on X: no units"),
}


def test_cases_are_counted_by_algorithm_and_form():
    found = {
        (cell["operation"], cell["algorithm"]): cell for cell in matrix.cells(ENDED, "0:0", "cpu")
    }
    merge = found["sort", "odd-even-merge"]
    assert merge["passed"] == 1 and merge["limited"] == {"no fp64": 1}
    assert merge["failed"] == {"off by N (N)": ["n-9", "n-7"]}  # one reason
    assert {name for _, name in found} >= {"radix", "radix, for GPUs", "tensor"}
    (on_gpu,) = matrix.cells({CASE.format("sort-radix-0:0-n-8"): ("passed", "")}, "0:0", "gpu")
    assert on_gpu["algorithm"] == "radix, for GPUs"


def test_the_page_has_every_cell(tmp_path):
    result = {
        "title": "Some runtime", "note": "", "date": "2026-11-25", "processor": "X", "cores": 2,
        "platform_version": "OpenCL 3.0 Some 1.0  Linux", "driver": "1.0", "complete": True,
        "share": "(n-8)",
        "cells": matrix.cells(ENDED, "0:0", "cpu"),
    }  # fmt: skip
    known = matrix._merge(tmp_path / "data.json", {"some": result})
    known = matrix._merge(tmp_path / "data.json", {"pocl": {**result, "cells": []}})
    assert list(known) == ["pocl", "some"]
    text = pages.runtimes(known)
    assert "| sort | odd-even-merge |  | **2 wrong** of 3 |" in text
    assert "| gemm | tensor |  | - |" in text and "| sort | radix, for GPUs |  | 1 |" in text
    assert "- no units: gemm tensor" in text and "`pocl`, `some` ran a share of the cases" in text
    assert "- `some`: sort by odd-even-merge, 2 cases: off by N (N)" in text

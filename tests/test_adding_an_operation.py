"""The tutorial's operation works in everything that operations do, and the page shows its code."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs/examples/transpose.py"
PAGE = ROOT / "docs/adding_an_operation.md"


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE.parent)  # the tuner's processes have the same path
        yield importlib.import_module("transpose")
        del sys.modules["transpose"]


def matrix(rows, columns, dtype):
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", ["tiled", "plain"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 70), (33, 32), (100, 31)])
def test_results(algorithm, shape, example):
    for dtype in ("float32", "int8", "complex64"):
        a = matrix(*shape, dtype)
        given = example.transpose(a, algorithm=algorithm)
        assert given.dtype == a.dtype and np.array_equal(given, a.T)


def test_strides_out_and_device_arrays(example, queue):
    import pyopencl.array

    a = matrix(40, 60, np.float32)
    out = np.zeros((20, 40), np.float32)
    assert example.transpose(a[:, ::3], out=out) is out
    assert np.array_equal(out, a[:, ::3].T)
    on_device = pyopencl.array.to_device(queue, a)
    assert np.array_equal(example.transpose(on_device).get(), a.T)
    with pytest.raises(InvalidProblem):
        example.transpose(a[0])


def test_its_trials_are_right(example, device, rng):
    (trials,) = example.TRIALS
    for trial in (*trials.trials, *trials.drawn(device, 3)):
        call, arrays, expected = trial.task(rng)
        assert not trial.error((call(*arrays, algorithm="plain"),), expected), trial.title


@pytest.mark.full
def test_the_tuner_takes_it(example):
    result = ol.tune(example.TRANSPOSE, algorithm="plain", budget=3, time_limit=20, size=200)
    assert result.best is not None and not result.failures


def python(*arguments, folder, path=ROOT):
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(path)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def oclab(*arguments, folder):
    return python(str(EXAMPLE), *arguments, folder=folder)


@pytest.mark.full
def test_the_command_line_has_it(tmp_path):
    text = oclab("transpose", "--size", "300", "--algorithm", "all", "--json", folder=tmp_path)
    rows = {row["implementation"]: row["status"] for row in json.loads(text)["results"]}
    wanted = ("opencl:tiled", "opencl:plain", "c:seq", "numpy")
    assert {name: rows[name] for name in wanted} == dict.fromkeys(wanted, "correct")


def test_the_page_shows_the_code_as_it_is():
    blocks = re.findall(r"```(?:python|c)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    there = EXAMPLE.read_text(encoding="utf-8")
    there += (EXAMPLE.parent / "transpose.cl.mako").read_text(encoding="utf-8")
    for block in blocks:
        for part in block.split("...\n"):  # what the page leaves out
            assert part.strip("\n") in there, part
    shown = sum(block.count("\n") for block in blocks)
    assert shown > 80


RANK_TEMPLATE = """\
/* Each item counts the keys that go before its own, and writes its own to that place. */
<%page args="ELEMENT"/>\
<%namespace name="keys" file="keys.mako"/>\
${keys.declare(ELEMENT)}
__kernel void rank(__global const ukey_t *keys,
% if ELEMENT.value and not ELEMENT.indices:
                   __global const value_t *values,
% endif
% if not ELEMENT.indices:
                   __global ukey_t *sorted,
% endif
% if ELEMENT.value:
                   __global ${"long" if ELEMENT.indices else "value_t"} *sorted_values,
% endif
                   const ulong n)
{
    const ulong i = get_global_id(0), row = get_global_id(1) * n;
    const ukey_t own = code(keys[row + i]);
    ulong place = row;
    for (ulong j = 0; j < n; ++j) {
        const ukey_t other = code(keys[row + j]);
        place += other < own || (other == own && j < i);
    }
% if not ELEMENT.indices:
    sorted[place] = keys[row + i];
% endif
% if ELEMENT.value:
    sorted_values[place] = ${"i" if ELEMENT.indices else "values[row + i]"};
% endif
}
"""
RANK = """\
import numpy as np

from opencl_lab.core.plan import Launch, Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements


class Rank(Algorithm):
    name = "rank"
    templates = ("sort/rank.cl.mako",)
    space = SearchSpace(())

    def default_config(self, problem, device):
        return Config()

    def plan(self, problem, config, device):
        elements = Elements(problem)
        buffers, size = elements.buffers, (problem.n, problem.rows)
        arguments = {**elements.arguments, "n": np.uint64(problem.n)}
        params = {"ELEMENT": elements.element}
        rank = Launch(self.templates[0], "rank", params, size, (1, 1), arguments)
        return Plan(tuple(buffers), (rank,) if problem.n * problem.rows else ())
"""
USES_OF_RANK = """\
import numpy as np
import opencl_lab as ol
from opencl_lab.lab.cli.main import main
from opencl_lab.ops.select.by_sort import BySort
from opencl_lab.ops.selftest import SelfTest

rng = np.random.default_rng(3)
keys, how = rng.integers(0, 50, 700).astype("int32"), {"algorithm": "rank"}
order = np.argsort(keys, kind="stable")
assert np.array_equal(ol.sort(keys, **how), keys[order])
assert np.array_equal(ol.argsort(keys, **how), order)
got = ol.sort_by_key(keys, np.arange(700.0), **how)
assert np.array_equal(got[0], keys[order]) and np.array_equal(got[1], order)
asked = dict.fromkeys(("return_index", "return_inverse", "return_counts"), True)
for given, right in zip(ol.unique(keys, **asked), np.unique(keys, **asked)):
    assert np.array_equal(given, right)
assert "sort/rank.cl.mako" in BySort().templates  # a change of it makes what was tuned stale
listed = {(family.operation, family.algorithm) for family, _ in
          SelfTest(ol.select_device(), True, print).families().value}
assert ("sort", "rank") in listed
assert main(["sort", "--n", "500", "--algorithm", "rank", "--quiet"]) == 0
"""


@pytest.mark.full
def test_an_algorithm_in_three_steps(tmp_path):
    """A template, a class and a line in the registry, as CONTRIBUTING.md says."""
    for name in ("opencl_lab", "clkernels"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
    (tmp_path / "clkernels/sort/rank.cl.mako").write_text(RANK_TEMPLATE)
    sort = tmp_path / "opencl_lab/ops/sort"
    (sort / "rank.py").write_text(RANK)
    solver, line = (sort / "solver.py").read_text(), '        "radix": Radix(),\n'
    assert solver.count(line) == 1
    added = f'{line}        "rank": "opencl_lab.ops.sort.rank:Rank",\n'
    (sort / "solver.py").write_text(solver.replace(line, added))
    python("-c", USES_OF_RANK, folder=tmp_path, path=tmp_path)

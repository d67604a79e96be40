"""Whole runs of the tuner on a device, their plots, and kernels of a user's own."""

import os
import subprocess
import sys
from pathlib import Path

import planted
import pytest
from tuning_runs import Replay, in_journal, replay, tile_time, tuned_by

import opencl_lab as ol
from opencl_lab.lab.tuning.plots import plot_tuning

pytestmark = pytest.mark.usefixtures("private_data")


# ------------------------------------------------------------------ on a device


def test_a_whole_run_finds_checks_and_stores_a_winner():
    result = ol.tune(planted.HARMLESS, strategy="exhaustive", budget=50, device="cpu", n=3000)
    assert isinstance(result, ol.TuneResult)
    assert result.best.config["FAULT"] == "none" and result.stored
    assert result.failures == {"correctness": 1, "compile": 1}
    assert result.pruning.total == 15 and result.pruning.left == 6
    assert set(result.removed) == {
        "faults need no more than one work-group size",
        "kernel planted: work-group of … items, the device takes at most "
        f"{result.device.capabilities.max_work_group}",
    }
    problem = planted.HARMLESS.problem(n=3000)
    arrays = planted.HARMLESS.generate(problem, 5)
    run = planted.HARMLESS.run(problem, arrays)
    assert run.outputs["doubled"].tobytes() == (2 * arrays["source"]).tobytes()
    chosen = planted.HARMLESS.algorithms[0].configure(problem, result.device)
    assert chosen == result.best.config

    # The record of this run, replayed, gives the same evaluations with no device.
    task = result.task
    recorded = list(in_journal(result.journal).values())
    again = tuned_by(Replay(recorded), task, strategy="exhaustive", budget=50, fresh=True)
    assert {item.config: item.status for item in again.evaluations} == {
        item.config: item.status for item in result.evaluations
    }


# ---------------------------------------------------------------------- plots


@pytest.mark.few(1)
@pytest.mark.parametrize("fails", [False, True])
def test_plots_of_searches(task, tmp_path, fails):
    def time_of(config):
        return None if fails and config["TILE"] != 16 else tile_time(config)

    result, _ = replay(task, time_of=time_of, strategy="random")
    path = tmp_path / "search.png"
    plot_tuning(path, result, "title")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_nothing_but_failures(task, tmp_path):
    result, _ = replay(task, time_of=lambda config: None, budget=4)
    plot_tuning(tmp_path / "search.svg", result, "title")
    assert "failed: 4" in (tmp_path / "search.svg").read_text()


# ---------------------------------------------------------------- own kernels


@pytest.mark.full
def test_the_worked_example(tmp_path):
    example = Path(__file__).parents[1] / "docs" / "examples" / "tune_your_kernel.py"
    root = str(Path(ol.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, str(example), "1"],
        env={**os.environ, "PYTHONPATH": root, "OCLAB_DEVICE": "cpu"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "best: " in result.stdout and "times as fast" in result.stdout

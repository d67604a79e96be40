"""Sweeps that were stopped go on: what is taken over, what is not, and what a folder then has."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace

import pytest
from command_line import command, oclab, one_sentence
from comparison_rows import row

from opencl_lab.core.plan import Work
from opencl_lab.lab.engine.sweep import FILE, Unfinished

QUICK = ("--repeats", "1", "--against", "c:seq")

pytestmark = pytest.mark.usefixtures("undrawn")


def bench(out, sizes="100,200,300", *more):
    return oclab("bench", "sort", "--sizes", sizes, "--out", out, *QUICK, *more)


def document(out):
    return json.loads((out / "results.json").read_text())


def test_the_same_command_goes_on_where_it_was_interrupted(tmp_path, measured):
    measured.stop.add(300)
    stopped = bench(tmp_path)
    assert stopped.returncode == 130 and measured.sizes == [100, 200]
    assert stopped.stderr.endswith("oclab: interrupted; the same command resumes with n=300\n")
    before = document(tmp_path)
    assert before["complete"] is False and before["problem"]["sizes"] == [100, 200]
    assert (tmp_path / FILE).exists()
    measured.stop.clear()
    again = bench(tmp_path)
    assert again.returncode == 0 and measured.sizes == [100, 200, 300]
    assert "taken over from" in again.stdout and ": n=100, n=200\n" in again.stdout
    after = document(tmp_path)
    assert after["complete"] is True and after["taken_over"] == [100, 200]
    assert [item["n"] for item in after["results"]] == [100, 100, 200, 200, 300, 300]
    assert after["results"][:4] == before["results"]  # to the last digit
    assert not (tmp_path / FILE).exists()
    assert bench(tmp_path).returncode == 0 and measured.sizes[3:] == [100, 200, 300]


def test_other_sizes_of_the_same_sweep_are_added(tmp_path, measured):
    measured.stop.add(300)
    bench(tmp_path)
    again = bench(tmp_path, "50,200")
    assert measured.sizes == [100, 200, 50] and "over from" in again.stdout
    assert document(tmp_path)["problem"]["sizes"] == [50, 200]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--seed", "3"), "differs in options;"),
        (("--order", "sorted"), "differs in options;"),
        (("--algorithm", "odd-even-merge"), "differs in algorithms;"),
        (("--patience", "3"), "differs in patience;"),
        (("--fresh",), ""),
    ],
)
def test_another_sweep_begins_anew(tmp_path, measured, more, said):
    measured.stop.add(300)
    bench(tmp_path)
    measured.stop.clear()
    again = bench(tmp_path, "100,200,300", *more)
    assert again.returncode == 0 and measured.sizes[2:] == [100, 200, 300]
    assert said in again.stdout and ("all sizes are measured again" in again.stdout) == bool(said)
    assert "taken over" not in again.stdout and not (tmp_path / FILE).exists()


@pytest.mark.full
def test_finished_results_of_another_sweep_are_not_replaced(tmp_path, measured):
    assert bench(tmp_path).returncode == 0
    (tmp_path / "roofline.png").touch()  # of a device whose peaks are known
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    gemm = ("bench", "gemm", "--sizes", "8", "--out", tmp_path, *QUICK)
    others = (
        (("bench", "sort", "--sizes", "100", "--out", tmp_path, *QUICK), "sizes"),
        (("bench", "sort", "--sizes", "100,200,300", "--out", tmp_path, "--repeats", 1), "against"),
        (("bench", "sort", "--sizes", "100,200,300", "--out", tmp_path, *QUICK, "--dtype", "int8"),
         "dtype"),
        (gemm, "operation"),
    )  # fmt: skip
    for other, differs in others:
        refused = oclab(*other)
        assert refused.returncode == 2 and one_sentence(refused)
        assert f"results.json is of another sweep, which differs in {differs}; " in refused.stderr
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert measured.sizes == [100, 200, 300]
    assert bench(tmp_path, "50,100,200,300", "--time-limit", "9").returncode == 0
    assert document(tmp_path)["problem"]["sizes"] == [50, 100, 200, 300]
    (tmp_path / "results.json").write_text("{}")
    damaged = bench(tmp_path)
    assert damaged.returncode == 2 and "or replace it with --fresh" in damaged.stderr
    measured.stop.add(300)
    assert bench(tmp_path, "100,200,300", "--seed", "3", "--fresh").returncode == 130
    measured.stop.clear()
    assert "taken over" in bench(tmp_path, "100,200,300", "--seed", "3").stdout
    assert document(tmp_path)["options"]["seed"] == 3


@pytest.mark.full
def test_a_process_that_was_killed_leaves_its_finished_sizes(tmp_path):
    """As by kill -9, or where the power fails."""
    slow = ["--sizes", "100,200,20000000", "--out", str(tmp_path), *QUICK]
    process = subprocess.Popen(
        command("bench", "sort", *slow, "--quiet"), env={**os.environ}, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            done = (tmp_path / FILE).exists() and (tmp_path / FILE).read_bytes().count(b'"size"')
            if done == 2:
                break
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "results.json").exists()
    again = bench(tmp_path, "100,200,250")
    assert again.returncode == 0 and ": n=100, n=200\n" in again.stdout
    assert document(tmp_path)["taken_over"] == [100, 200]


# ------------------------------------------------------------------- the file

IDENTITY = {"operation": "sort", "device": "x", "threads": None, "runs": (1, 2)}
CONFIGS = [{"WG_SIZE": 64}]


def stored(folder, **more):
    return Unfinished(folder, IDENTITY, **more)


def rows_of(size):
    return [replace(row("opencl:x", size), config=CONFIGS[0], work=Work(1.0, 2.0)), row("c:seq")]


def test_a_size_is_read_back_as_it_was(tmp_path):
    first = stored(tmp_path)
    assert first.take(9, CONFIGS) is None and not first.goes_on
    first.keep(9, CONFIGS, rows_of(9))
    first.keep(90, CONFIGS, rows_of(90))
    again = stored(tmp_path)
    found = again.take(9, CONFIGS)
    assert again.goes_on and again.date([9, 90]) >= again.date([9]) > "2026"
    assert [item.as_row() for item in found] == [item.as_row() for item in rows_of(9)]
    assert again.take(9, [{"WG_SIZE": 32}]) is None and again.take(8, CONFIGS) is None
    again.keep(9, CONFIGS, rows_of(7))  # later records count
    assert stored(tmp_path).take(9, CONFIGS)[0].total_ms.median == 7


@pytest.mark.parametrize("cut", [1, 30, 700])
def test_damage_costs_the_damaged_sizes_only(tmp_path, cut):
    first = stored(tmp_path)
    for size in (1, 2, 3):
        first.keep(size, CONFIGS, rows_of(size))
    os.truncate(first.path, first.path.stat().st_size - cut)
    again = stored(tmp_path)
    assert [again.take(size, CONFIGS) is None for size in (1, 2, 3)] == [False, False, True]
    again.keep(3, CONFIGS, rows_of(3))
    assert stored(tmp_path).take(3, CONFIGS) is not None

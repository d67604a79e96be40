"""The command line of the fuzzers: which cases run, what is said of them, the exit status."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

run_cases = importlib.import_module("fuzz.command_line").run_cases


@pytest.mark.parametrize(("case", "status"), [(3, 1), (4, 0)])
def test_a_case_runs_alone_and_says_how_to_run_it_again(case, status, monkeypatch, capsys):
    seen = []

    def check(world, seed, case):
        seen.append((seed, case))
        world.counts["sort"] += 1
        return ["it is off"] if case == 3 else []

    monkeypatch.setattr(sys, "argv", ["fuzz", "--seed", "5", "--case", str(case)])
    assert run_cases("Cases.", check) == status
    said = capsys.readouterr().out
    assert seen == [(5, case)] and f"1 cases, {status} with findings" in said
    assert ("--seed 5 --case 3:\n  it is off" in said) == bool(status)
    assert "sort                 1, errors      0" in said


def test_cases_go_on_until_the_time_is_over_or_someone_interrupts(monkeypatch, capsys):
    seen = []

    def check(world, seed, case):
        seen.append(case)
        if case == 9:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(sys, "argv", ["fuzz", "--first", "7", "--seconds", "1e6"])
    assert run_cases("Cases.", check) == 0
    monkeypatch.setattr(sys, "argv", ["fuzz", "--seconds", "0"])
    assert run_cases("Cases.", check) == 0
    assert seen == [7, 8, 9]
    said = capsys.readouterr().out
    assert "interrupted" in said and "2 cases, 0 with findings" in said

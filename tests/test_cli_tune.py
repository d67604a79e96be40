"""`oclab tune`; in a process of its own where signals end it, or another one runs beside it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import command, oclab

SORT = ("tune", "sort", "--n", "3000", "--algorithm", "odd-even-merge")
GEMM = ("tune", "gemm", "--size", "64", "--algorithm", "naive")  # builds in no time


@pytest.fixture(autouse=True)
def folder(private_data):
    """Return where this test's journals and tuned configurations are."""
    return Path(os.environ["OCLAB_DATA_DIR"])


def process(*arguments, **options):
    """Start a command in a process of its own."""
    return subprocess.Popen(command(*arguments), **options)


def journals(folder):
    return sorted((folder / "journals").glob("*.jsonl"))


def lines_in_journal(folder):
    return sum(path.read_bytes().count(b'"evaluation"') for path in journals(folder))


@pytest.mark.full
@pytest.mark.parametrize(
    ("operation", "options"),
    [
        ("sort", ("--n", 3000, "--algorithm", "odd-even-merge")),
        ("gemm", ("--size", 64, "--algorithm", "tiled")),
    ],
)
def test_plain_lines_and_a_summary(folder, tmp_path, operation, options):
    plot = tmp_path / "search.png"
    arguments = ("tune", operation, *options, "--budget", 2, "--strategy", "random")
    result = oclab(*arguments, "--plot", plot)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout and result.stderr == ""
    for text in ("device:", "search 1/2; best ", "ended by the budget", "removed:", "Finals"):
        assert text in result.stdout
    assert f"stored: {operation} uses it from now on" in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert lines_in_journal(folder) == 2
    (overlay,) = (folder / "tuning").glob("*.json")
    assert overlay.name == f"{operation}.json"


@pytest.mark.full
def test_json_is_one_document_and_nothing_else():
    result = oclab("--json", *SORT, "--budget", "3", "--dtype", "float32")
    assert result.returncode == 0, result.stderr
    content = json.loads(result.stdout)
    assert content["schema"] == "oclab/1" and content["command"] == "tune"
    assert content["problem"]["n"] == 3000 and content["problem"]["dtype"] == "float32"
    assert content["problem"]["operation"] == "sort" and content["device"]["kind"] == "cpu"
    (best,) = content["results"]
    assert best["ok"] and best["implementation"] == "opencl:odd-even-merge"
    assert best["kernel_ms"] > 0 and best["gbps"] > 0 and best["total_ms"] is None
    spread = best["kernel_spread_ms"]
    assert spread["min"] <= spread["median"] == best["kernel_ms"] <= spread["max"]
    assert len(content["evaluations"]) == 3
    assert {"config", "status", "reason", "times_ms"} <= set(content["evaluations"][0])
    removed = content["removed"]
    assert removed["total"] == removed["left"] + sum(removed["reasons"].values())
    assert content["stored"] and content["stopped"] == "budget" and content["resumed"] == 0
    assert content["per_minute"] > 0 and content["built_ahead"] <= 3


def test_quiet_prints_nothing():
    result = oclab(*GEMM, "--budget", "1", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.full
def test_the_same_command_goes_on_and_fresh_begins_anew():
    def tune(budget, *more):
        return json.loads(oclab("--json", *GEMM, "--budget", budget, *more).stdout)

    assert tune(1)["resumed"] == 0
    second = tune(2)
    assert second["resumed"] >= 1 and len(second["evaluations"]) >= 2
    assert tune(1, "--fresh")["resumed"] == 0


def _interrupt(folder, number, evaluations=3):
    """Start a long run, send it a signal after some evaluations, and return how it ended."""
    started = process(
        *(*GEMM, "--time-limit", "100"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while lines_in_journal(folder) < evaluations and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(started.pid, number)
    output, errors = started.communicate(timeout=30)
    return started.returncode, output, errors


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_found_and_says_how_to_go_on(folder, number):
    status, output, errors = _interrupt(folder, number)
    assert status == 130
    assert "the same command resumes" in errors and "Traceback" not in errors
    lines = output.splitlines()
    (winner,) = (line for line in lines if line.startswith("winner:"))
    config = winner[len("winner: ") : winner.index("}") + 1]
    assert not any(config in line for line in lines if line.startswith("finals"))
    assert "ended by an interrupt" in output and "winner:" in output and "stored:" in output
    kept = lines_in_journal(folder)
    again = json.loads(oclab("--json", *GEMM, "--budget", "1").stdout)
    assert kept >= 3 and again["resumed"] == len(again["evaluations"]) == kept


@pytest.mark.full
def test_kill_keeps_what_was_found(folder):
    status, _, _ = _interrupt(folder, signal.SIGKILL)
    kept = lines_in_journal(folder)
    assert status == -signal.SIGKILL and kept >= 3
    again = json.loads(oclab("--json", *GEMM, "--budget", "3").stdout)
    assert again["resumed"] == kept


@pytest.mark.full
def test_two_tuners_at_once(folder):
    arguments = ("--json", *GEMM, "--budget", "2")
    both = [process(*arguments, stdout=subprocess.PIPE) for _ in range(2)]
    contents = [json.loads(each.communicate(timeout=120)[0]) for each in both]
    assert all(content["stored"] and content["results"][0]["ok"] for content in contents)
    (journal,) = journals(folder)
    records = [json.loads(line) for line in journal.read_text().split("\n") if line]
    assert sum("evaluation" in record for record in records) >= 2


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("tune", "sort", "--n", "0"), 2, "nothing to time"),
        (("tune", "sort", "--budget", "0"), 2, "budget must be positive"),
        (("tune", "sort", "--algorithm", "bogo"), 2, "no algorithm 'bogo'"),
        (("tune", "gemm", "--dtype", "int32"), 2, "dtype must be one of"),
        (("tune", "sort", "--plot", "x.doc"), 2, "cannot plot"),
        (("tune", "sort", "--seed", "-1"), 2, "not in the range"),
        (("tune", "sort", "--device", "toaster"), 3, "no OpenCL device matches"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(folder, arguments, status, said):
    result = oclab(*arguments)
    assert result.returncode == status
    assert said in result.stderr and "Traceback" not in result.stderr and not result.stdout
    assert journals(folder) == []


@pytest.mark.full
def test_what_was_compared_with_nothing_is_not_stored(folder):
    result = oclab(*SORT, "--budget", "1")
    assert result.returncode == 0, result.stderr
    assert "not stored: no other configuration was tried" in result.stdout
    assert not list((folder / "tuning").glob("*.json"))

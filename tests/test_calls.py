"""What a call costs: the rows, the shares, the command."""

import json

import numpy as np
import pytest

from opencl_lab.lab.cli import main
from opencl_lab.lab.engine import calls as module
from opencl_lab.lab.engine.calls import (
    ALLOCATION,
    LAUNCHES,
    OURS,
    measure_calls,
)
from opencl_lab.lab.engine.request import Request, point_of
from opencl_lab.lab.reference.peers import libraries, named
from opencl_lab.lab.registry import operations


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(module, "quiesce", lambda: None)
    monkeypatch.setattr(module, "KERNEL_RUNS", 3)


def small(operation):
    """Return a problem whose calls take little, to be measured once."""
    options = {"dft": {"n": 90, "batch": 2}}.get(operation.name, {operation.size_option: 20})
    return point_of(operation, options, 0, Request(repeats=1))


@pytest.mark.parametrize("operation", operations().values(), ids=lambda item: item.name)
def test_public_calls_and_peers_solve_the_problem(operation):
    point = small(operation)
    problem, inputs, calls = point.problem, point.make_inputs(), operation.calls
    expected = operation.expected(problem, inputs)
    right = expected[operation.output]

    def check(result, names=calls.returned):
        given = {
            name: np.asarray(part, expected.get(name, part).dtype).reshape(right.shape)
            for name, part in named(names or (operation.output,), result).items()
        }
        assert operation.compare(problem, inputs, expected, {**expected, **given}).ok

    ours = calls.usual(problem, inputs)
    check(ours.function(*ours.arrays, **ours.options))
    check(ours.function(*ours.arrays, **ours.explicit()))
    tried = 0
    for library, loaded in libraries(cuda=False):
        if library.name in calls.peers:
            arrays = {name: library.put(loaded, array) for name, array in inputs.items()}
            result = calls.peers[library.name](problem, loaded, arrays)
            check(result, calls.peers_returned or calls.returned)
            tried += 1
    assert tried


@pytest.mark.few(2)
@pytest.mark.parametrize("operation", operations().values(), ids=lambda item: item.name)
def test_every_row_is_measured(operation, device):
    point = small(operation)
    report = measure_calls(point, device)
    rows = {(item.what, item.side) for item in report.costs}
    assert {(OURS, "device"), (OURS, "host"), (LAUNCHES, "device"), (ALLOCATION, "")} <= rows
    assert all(0 < item.host_us <= item.call_us for item in report.costs)
    assert report.kernel_us > 0 and report.launches >= 1
    expected = operation.expected(point.problem, point.make_inputs())
    room = operation.room(point.problem, expected).values()
    assert report.result_bytes == sum(np.prod(shape) * dtype.itemsize for shape, dtype in room)
    assert not report.left_out


def test_the_command(tmp_path, capsys):
    command = ["bench", "gemm", "--calls", "--sizes", "8,16", "--repeats", "1"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.count(LAUNCHES) == 2 and "µs of a call on device arrays: launches" in text
    assert "µs in kernels by their events" in text and " us " not in text
    for name in ("back-to-back calls", "µs per call", "host time", "speed-up"):
        assert text.count(name) == 2
    assert main([*command, "--json", "--out", str(tmp_path / "calls")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["size"] for row in content["results"]] == [8, 16]
    assert json.loads((tmp_path / "calls" / "calls.json").read_text()) == content
    assert main(["bench", "gemm", "--sizes", "8"]) == 2
    assert main([*command, "--algorithm", "tiled"]) == 2
    assert main([*command, "--baseline", "numpy"]) == 0
    assert capsys.readouterr().out.count("over numpy") == 2
    assert main([*command, "--baseline", "nobody"]) == 2
    assert "there are: opencl_lab, " in capsys.readouterr().err
    for option in (["--against", "none"], ["--threads", "1"]):
        assert main([*command, *option]) == 2
        assert f"--calls takes no {option[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("finished", [0, 1])
def test_an_interrupt_keeps_the_sizes_that_are_finished(finished, monkeypatch, tmp_path, capsys):
    def measure_once(*arguments, **options):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return measure_calls(*arguments, **options)

    left = finished
    monkeypatch.setattr("opencl_lab.lab.cli.sweep_outputs.measure_calls", measure_once)
    folder = tmp_path / "calls"
    command = ["bench", "gemm", "--calls", "--sizes", "8,16", "--repeats", "1"]
    assert main([*command, "--out", str(folder)]) == 130
    assert capsys.readouterr().err == "oclab: interrupted\n"
    assert folder.exists() == bool(finished)
    if finished:
        content = json.loads((folder / "calls.json").read_text())
        assert [row["size"] for row in content["results"]] == [8]

"""`oclab bench OPERATION --calls`: what a call costs and where its time goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from opencl_lab.cli.common import document, print_json, progress_bar, settings, write_files
from opencl_lab.comparison.calls import OURS, CallReport, measure_calls
from opencl_lab.comparison.table import number
from opencl_lab.discovery import Selection
from opencl_lab.operation import Operation
from opencl_lab.paths import write_target
from opencl_lab.solver import Problem
from opencl_lab.wording import counted, size_text

__all__ = ["CALL_RESULTS", "bench_calls"]

CALL_RESULTS = ("calls.json",)

EXPLAINED = (
    "launches: enqueueing them alone, with memory from a pool; memory: the driver's for the "
    "result; python: the rest until the call returns; waiting: what the device still needs then"
)

EVENTS = (
    "that is more than the call takes: the events are those of a few calls made before, while "
    "the others are repeated until all is warm; compare them with each other only"
)


def bench_calls(
    chosen: Operation[Any],
    selection: Selection,
    options: dict[str, Any],
    problems: Sequence[tuple[int, Problem, dict[str, Any]]],
    rounds: int,
    folder: Path | None,
) -> int:
    """Measure calls of several sizes, print a table of each or JSON, and write that to `folder`."""
    series: list[tuple[int, CallReport]] = []
    interrupt: KeyboardInterrupt | None = None
    with progress_bar(chosen.name) as progress:
        for index, (size, problem, complete) in enumerate(problems):
            progress(index, len(problems), f"{chosen.size_option}={size}")
            try:
                data = chosen.generate(problem, options["seed"], **complete)
                report = measure_calls(
                    chosen, chosen.calls, problem, data, selection.device, rounds=rounds
                )
            except KeyboardInterrupt as error:  # what was measured is kept all the same
                interrupt = error
                break
            series.append((size, report))
    failed = _print_and_write(chosen, selection, options, series, folder) if series else 0
    if interrupt is not None:
        raise interrupt
    return failed


def _print_and_write(
    chosen: Operation[Any],
    selection: Selection,
    options: dict[str, Any],
    series: Sequence[tuple[int, CallReport]],
    folder: Path | None,
) -> int:
    """Print the results, then write the files; return the exit status of these."""
    content = document(
        "bench",
        device={**selection.device.as_dict(), "reason": selection.reason},
        problem={"operation": chosen.name, "sizes": [size for size, _ in series]},
        options=options,
        results=[{chosen.size_option: size, **report.as_dict()} for size, report in series],
    )
    if settings().json:
        print_json(content)
    else:
        settings().say(f"device: {selection.device}: {selection.reason}")
        for size, report in series:
            settings().show(_table(f"{chosen.name}: {chosen.size_option}={size}", report))
            _say_shares(report)
        settings().say(EXPLAINED)
    if folder is None:
        return 0
    failed = write_files(*(partial(_write, folder / name, content) for name in CALL_RESULTS))
    if not failed:
        settings().say(f"written to {folder}: {' '.join(CALL_RESULTS)}")
    return failed


def _write(path: Path, content: dict[str, Any]) -> None:
    with write_target(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")


def _table(title: str, report: CallReport) -> Table:
    """Return a row a kind of call, the peers beside the public call on the same side."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("back-to-back calls", no_wrap=True)
    table.add_column("arrays", no_wrap=True)
    for name in ("µs per call", "host time", "relative time"):
        table.add_column(name, justify="right", no_wrap=True)
    ours = {item.side: item for item in report.costs if item.what == OURS}
    for item in report.costs:
        ratio = f"{item.call_us / ours[item.side].call_us:.2f}x" if item.side in ours else "-"
        table.add_row(
            item.what, item.side or "-", number(item.call_us, 3), number(item.host_us, 3), ratio
        )
    return table


def _say_shares(report: CallReport) -> None:
    """Print where the time of a call goes, and why that of kernels may be more than it."""
    launches = counted(report.launches, "launch", "launches")
    settings().say(
        f"its {launches}: {number(report.kernel_us, 3)} µs in kernels by their events; "
        f"its result: {size_text(report.result_bytes)}"
    )
    if report.kernel_us > report.cost(OURS, "device").call_us:
        settings().say(EVENTS)
    shares = ", ".join(f"{name} {number(value, 3)}" for name, value in report.shares().items())
    settings().say(f"µs of a call on device arrays: {shares}")
    for name, reason in report.left_out.items():
        settings().say(f"{name} is left out: {reason}")

"""`oclab bench OPERATION --calls`: the cost of a call, and where its time goes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.table import Table

from opencl_lab.core.wording import counted, size_text
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import print_and_write, write_json, write_results
from opencl_lab.lab.cli.sweep_outputs import bench_document
from opencl_lab.lab.engine.calls import OURS, CallReport, measure_calls
from opencl_lab.lab.engine.explore import Exploration, grid
from opencl_lab.lab.engine.request import check_baseline
from opencl_lab.lab.engine.sweep import Sweep
from opencl_lab.lab.presentation.table import number, ratio_text, titled_table

CALL_RESULTS = ("calls.json",)

EXPLAINED = (
    "launches: only enqueueing them, with memory from a pool; memory: allocating the result by the "
    "driver; python: the remaining time until the call returns; waiting: the time from then until "
    "the device is done"
)

EVENTS = (
    "that is more than the call takes: the events are of a few earlier calls, while the calls "
    "above are repeated until all is warm; compare events with each other only"
)


def bench_calls(sweep: Sweep, base: str, folder: Path | None) -> int:
    """Measure calls of several sizes, print a table of each or JSON, and write that to `folder`.

    Speed-ups are over the calls named `base`. Results from before an interrupt are kept.
    """
    check_baseline(base, (OURS, *sweep.chosen.calls.peers))
    with progress_bar(sweep.chosen.name) as progress:

        def measure(size: int) -> CallReport:
            progress(len(run.seen), len(sweep.sizes), sweep.label(size))
            return measure_calls(sweep.point(size), sweep.selection.device)

        run = Exploration(measure)
        stopped = run.run(grid(sweep.sizes))
    failed = _print_and_write(sweep, run.seen, base, folder) if run.seen else 0
    if stopped == "interrupted":
        raise KeyboardInterrupt
    return failed


def _print_and_write(
    sweep: Sweep, reports: Mapping[int, CallReport], base: str, folder: Path | None
) -> int:
    """Print the results, then write the files; return the exit status of these."""
    rows = [{**sweep.named(size), **report.as_dict()} for size, report in reports.items()]
    content = bench_document(sweep, rows, list(reports))
    files = {file: partial(write_json, content=content) for file in CALL_RESULTS}

    def show() -> None:
        settings().say_device()
        for size, report in reports.items():
            title = f"{sweep.chosen.name}: {sweep.heading(size)}"
            settings().show(_table(title, report, base))
            _say_shares(report)
        settings().say(EXPLAINED)

    return print_and_write(content, show, lambda: write_results(folder, files))


def _table(title: str, report: CallReport, base: str) -> Table:
    """Return a row for each kind of call, with its speed-up over the `base` on the same side."""
    numbers = ("µs per call", "host time", f"speed-up\nover {base}")
    table = titled_table(title, ("back-to-back calls", "arrays"), numbers)
    bases = {item.side: item.call_us for item in report.costs if item.what == base}
    for item in report.costs:
        times = (number(item.call_us, 3), number(item.host_us, 3))
        ratio = bases[item.side] / item.call_us if item.side in bases else None
        table.add_row(item.what, item.side or "-", *times, ratio_text(ratio))
    return table


def _say_shares(report: CallReport) -> None:
    """Print where the time of a call goes, and why kernels may seem to take longer than calls."""
    launches = counted(report.launches, "launch", "launches")
    settings().say(
        f"its {launches}: {number(report.kernel_us, 3)} µs in kernels by their events; "
        f"its result: {size_text(report.result_bytes)}"
    )
    if report.in_caller:
        settings().say("calls on host arrays run in the calling thread")
    if report.kernel_us > report.cost(OURS, "device").call_us:
        settings().say(EVENTS)
    shares = ", ".join(f"{name} {number(value, 3)}" for name, value in report.shares().items())
    settings().say(f"µs of a call on device arrays: {shares}")
    for name, reason in report.left_out.items():
        settings().say(f"{name} is left out: {reason}")

"""`oclab bench OPERATION --calls`: what a call costs and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from opencl_lab.core.wording import counted, size_text
from opencl_lab.lab.cli.common import print_json, settings
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import write_json, write_results
from opencl_lab.lab.engine.calls import OURS, CallReport, measure_calls
from opencl_lab.lab.engine.request import check_baseline
from opencl_lab.lab.engine.sweep import Sweep
from opencl_lab.lab.presentation.table import number

__all__ = ["CALL_RESULTS", "bench_calls"]

CALL_RESULTS = ("calls.json",)

EXPLAINED = (
    "launches: enqueueing them alone, with memory from a pool; memory: the driver's for the "
    "result; python: the rest until the call returns; waiting: what the device still needs then"
)

EVENTS = (
    "that is more than the call takes: the events are those of a few calls made before, while "
    "the calls above are repeated until all is warm; compare events with each other only"
)


def bench_calls(sweep: Sweep, base: str, folder: Path | None) -> int:
    """Measure calls of several sizes, print a table of each or JSON, and write that to `folder`.

    Speed-ups are over the calls called `base`.
    """
    chosen, series = sweep.chosen, list[tuple[int, CallReport]]()
    check_baseline(base, (OURS, *chosen.calls.peers))
    interrupt: KeyboardInterrupt | None = None
    with progress_bar(chosen.name) as progress:
        for index, point in enumerate(sweep.points):
            progress(index, len(sweep.points), f"{chosen.size_option}={point.size}")
            try:
                report = measure_calls(
                    chosen,
                    chosen.calls,
                    point.problem,
                    sweep.data(point.size),
                    sweep.selection.device,
                    rounds=sweep.request.repeats,
                    budget=sweep.request.budget,
                )
            except KeyboardInterrupt as error:  # what was measured is kept all the same
                interrupt = error
                break
            series.append((point.size, report))
    failed = _print_and_write(sweep, series, base, folder) if series else 0
    if interrupt is not None:
        raise interrupt
    return failed


def _print_and_write(
    sweep: Sweep, series: Sequence[tuple[int, CallReport]], base: str, folder: Path | None
) -> int:
    """Print the results, then write the files; return the exit status of these."""
    name, option = sweep.chosen.name, sweep.chosen.size_option
    content = sweep.document(
        [{option: size, **report.as_dict()} for size, report in series],
        sizes=[size for size, _ in series],
    )
    if settings().json:
        print_json(content)
    else:
        settings().say_device()
        for size, report in series:
            settings().show(_table(f"{name}: {sweep.heading(size)}", report, base))
            _say_shares(report)
        settings().say(EXPLAINED)
    if folder is None:
        return 0
    return write_results(
        folder, {file: partial(write_json, content=content) for file in CALL_RESULTS}
    )


def _table(title: str, report: CallReport, base: str) -> Table:
    """Return a row per kind of call, all beside that of the `base` on the same side."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("back-to-back calls", no_wrap=True)
    table.add_column("arrays", no_wrap=True)
    for name in ("µs per call", "host time", f"speed-up\nover {base}"):
        table.add_column(name, justify="right", no_wrap=True)
    bases = {item.side: item for item in report.costs if item.what == base}
    for item in report.costs:
        ratio = f"{bases[item.side].call_us / item.call_us:.2f}x" if item.side in bases else "-"
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

"""Progress of a command on standard error: a bar, or a line at intervals."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opencl_lab.core.interrupt import released
from opencl_lab.lab.cli.common import complain, settings

if TYPE_CHECKING:  # imported where they are used: see `opencl_lab.lab.cli.lazy`
    from opencl_lab.lab.engine.runner import ProgressReport

BAR_DELAY_SECONDS = 1.0  # quicker commands show no bar
LINE_SECONDS = 10.0  # between lines, if standard error is not a terminal


@contextmanager
def progress_bar(title: str) -> Iterator[ProgressReport]:
    """Yield a progress report that draws a bar on standard error after a second.

    If it is not a terminal, lines at intervals report the progress instead. With ``--quiet`` or
    ``--json`` nothing is shown.
    """
    from opencl_lab.lab.presentation.screen import Screen

    console = Screen(stderr=True, file=settings().errors)
    if settings().quiet or settings().json:
        yield lambda done, total, label: None
        return
    if not console.is_terminal:
        with _progress_lines(title) as report:
            yield report
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(title, total=None)
    timer = threading.Timer(BAR_DELAY_SECONDS, bar.start)
    timer.daemon = True

    def stop(_: object) -> None:
        timer.cancel()
        timer.join()
        bar.stop()

    with released(timer.start, stop):
        yield lambda done, total, label: bar.update(
            task, completed=done, total=total or None, description=f"{title}: {label}"
        )


@contextmanager
def _progress_lines(title: str) -> Iterator[ProgressReport]:
    """Yield a progress report that prints a line every `LINE_SECONDS` on standard error."""
    begin = time.monotonic()
    over = threading.Event()
    latest = (0, 0, "starting")

    def report(done: int, total: int, label: str) -> None:
        nonlocal latest
        latest = done, total, label

    def print_lines() -> None:
        while not over.wait(LINE_SECONDS):
            done, total, label = latest
            seconds = time.monotonic() - begin
            count = f"{done}/{total}" if total else f"{done} done"
            complain(f"{title}: {label} ({count}, {seconds:.0f} s)")

    printer = threading.Thread(target=print_lines, daemon=True)
    printer.start()
    try:
        yield report
    finally:
        over.set()
        printer.join()

"""Progress of `oclab tune`: plain lines, or a bar with the best so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from opencl_lab.core.interrupt import released
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.measuring.roofline import share_text
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.result import TuneResult, TuningProgress, share_of_peak
from opencl_lab.lab.tuning.task import TuningTask

LINE_SECONDS = 10.0  # between plain lines without an improvement


def _best_text(task: TuningTask, best: Evaluation | None, whole: bool = True) -> str:
    """Return the best time so far, with its configuration if `whole`."""
    if best is None:
        return "nothing correct yet"
    share, why = share_of_peak(task, best.time_ms)
    about = f", {why}" if why else ""
    peak = "" if share is None else f" ({share_text(share)} % of peak{about})"
    return f"best {number(best.time_ms)} ms{peak}" + (f" {best.config}" if whole else "")


def failure_counts(failures: Mapping[str, int]) -> str:
    """Return the number of failures by status, in words."""
    if not failures:
        return ""
    return "failed: " + ", ".join(f"{count} {status}" for status, count in failures.items())


def _tried(state: TuningProgress) -> str:
    return f"{state.evaluated}" + (" tried" if state.total is None else f"/{state.total}")


def pace(state: TuningProgress | TuneResult) -> str:
    """Return the pace, the builds ahead, and the share of the space, in words."""
    parts = [f"{state.per_minute:.0f} a minute"] if state.per_minute else []
    parts += [f"{state.built_ahead} built ahead"] if state.built_ahead else []
    parts += [f"{number(100 * state.share, 2)} % of the space"] if parts and state.share else []
    return ", ".join(parts)


class _Lines:
    """Progress as plain lines: for each improvement, and at intervals."""

    def __init__(self, task: TuningTask):
        self._task = task
        self._shown: Any = None
        self._last = 0.0
        self._notes = 0

    def __call__(self, state: TuningProgress) -> None:
        for note in state.notes[self._notes :]:
            settings().say(f"note: {note}")
        self._notes = len(state.notes)
        now = time.monotonic()
        what = (state.phase, state.best and state.best.config)
        if what == self._shown and now < self._last + LINE_SECONDS:
            return
        self._shown, self._last = what, now
        left = "" if state.seconds_left is None else f"{state.seconds_left:.0f} s left"
        parts = (
            f"{state.phase} {_tried(state)}",
            # After the finals the winner is printed in full.
            _best_text(self._task, state.best, state.phase == "search"),
            failure_counts(state.failures),
            pace(state),
            left,
        )
        settings().say("; ".join(part for part in parts if part))


class _Bar:
    """Progress as a bar, with the best so far below it."""

    def __init__(self, task: TuningTask):
        self._task = task
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[tried]}", markup=False),
        )
        self._row = self._bar.add_task("starting", total=None, tried="")
        self._state: TuningProgress | None = None
        self._reported = time.monotonic()

    def __call__(self, state: TuningProgress) -> None:
        self._state, self._reported = state, time.monotonic()

    def __rich__(self) -> Group:
        state = self._state
        if state is None:
            return Group(self._bar)
        tried = _tried(state)
        elapsed = time.monotonic() - self._reported
        shares = [0.0] if state.total is None else [state.evaluated / state.total]
        if state.seconds_left is not None:
            left = max(0.0, state.seconds_left - elapsed)
            tried += f", {left:.0f} s left"
            shares.append(1 - left / max(state.time_limit or 0.0, left, 1e-9))
        has_end = state.total is not None or state.seconds_left is not None
        self._bar.update(
            self._row,
            description=state.phase,
            tried=tried,
            completed=max(shares),
            total=1.0 if has_end else None,
        )
        lines = (
            _best_text(self._task, state.best),
            pace(state),
            failure_counts(state.failures),
            *state.notes,
        )
        return Group(self._bar, *(Text(line) for line in lines if line))


@contextmanager
def watch(task: TuningTask) -> Iterator[Any]:
    """Yield a progress display: a live bar on a terminal, else plain lines."""
    if settings().quiet or settings().json:
        yield None
    elif not sys.stdout.isatty():
        yield _Lines(task)
    else:
        bar = _Bar(task)
        live = Live(bar, console=settings().console, refresh_per_second=4, transient=True)
        with released(live.start, lambda _: live.stop()):

            def show(state: TuningProgress) -> None:
                bar(state)
                live.refresh()  # a short search ends before the first automatic refresh

            yield show

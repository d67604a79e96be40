"""Output of `oclab tune` at the end: sentences and a table, or a JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from opencl_lab.core.wording import counted
from opencl_lab.drivers.discovery import Selection
from opencl_lab.lab.cli.common import document, settings
from opencl_lab.lab.measuring.roofline import share_text, stored_peaks
from opencl_lab.lab.presentation.table import number, peak_caption
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.prune import Pruning
from opencl_lab.lab.tuning.result import TuneResult, TuningProgress

OPTIONAL_COLUMNS = ("% peak", "runs", "GFLOP/s", "GB/s", "min..max")
"""Columns that are omitted on narrow terminals, in this order."""

ENDED_BY = {
    "complete": "the end of the strategy",
    "budget": "the budget",
    "time": "the time limit",
    "interrupted": "an interrupt",
}
REASONS = 5  # shown for failures and removed configurations without -v


def result_document(result: TuneResult, selection: Selection) -> dict[str, Any]:
    """Return the JSON document of a result."""
    rows = [] if result.best is None else [result.as_row(result.best)]
    default = None if result.default is None else result.as_row(result.default)
    return document(
        "tune",
        device=selection.as_dict(),
        problem={"operation": result.task.operation.name, **result.problem.as_dict()},
        algorithm=result.task.algorithm_name,
        results=rows,
        default=default,
        speedup_over_default=result.speedup,
        finalists=[result.as_row(item) for item in result.finalists],
        stable=result.stable,
        stopped=result.stopped,
        seconds=result.seconds,
        resumed=result.resumed,
        restarts=result.restarts,
        stored=result.stored,
        journal=None if result.journal is None else str(result.journal),
        notes=list(result.notes),
        removed=result.pruning.as_dict(),
        per_minute=result.per_minute,
        built_ahead=result.built_ahead,
        failures=result.failures,
        evaluations=[item.as_dict() for item in result.evaluations],
    )


def print_result(result: TuneResult) -> None:
    """Print the search, the finals and the winner."""
    _print_space(result.pruning)
    _print_search(result)
    for note in result.notes:
        settings().say(f"note: {note}")
    if result.best is None:
        nothing = "no configuration gave a correct result"
        settings().say(nothing if result.failures else "there was no time to try any")
        return
    if stored_peaks(result.device) is None:
        settings().say(
            "run `oclab doctor` to measure the device's peaks: results are compared with them"
        )
    settings().show(_table(result), OPTIONAL_COLUMNS)
    stable = "" if result.stable else ", not yet stable: it needs more time"
    settings().say(f"winner: {result.best.config}{_gain(result)}{stable}")
    if result.stored:
        used = operations().get(result.task.operation.name) is result.task.operation
        later = "uses it from now on" if used else "starts with it when it is tuned again"
        settings().say(f"stored: {result.task.operation.name} {later}")
    elif len(result.evaluations) < 2:
        settings().say("not stored: no other configuration was tried")


def failure_counts(failures: Mapping[str, int]) -> str:
    """Return the number of failures by status, in words."""
    if not failures:
        return ""
    return "failed: " + ", ".join(f"{count} {status}" for status, count in failures.items())


def pace(state: TuningProgress | TuneResult) -> str:
    """Return the pace and the builds ahead, in words."""
    parts = [f"{state.per_minute:.0f} a minute"] if state.per_minute else []
    parts += [f"{state.built_ahead} built ahead"] if state.built_ahead else []
    return ", ".join(parts)


def _print_space(pruning: Pruning) -> None:
    """Print the size of the space, and what was removed from it and why."""
    say, verbose = settings().say, settings().verbose
    total = counted(pruning.total, "combination")
    if pruning.removed is None:
        say(f"space: {total}, too many to look at each")
        return
    removed = "; removed:" if pruning.removed else ""
    say(f"space: {total}, {pruning.left} can run here{removed}")
    reasons = list(pruning.removed.items())
    for reason, count in reasons if verbose else reasons[:REASONS]:
        say(f"  {count}: {reason}")
    if not verbose and len(reasons) > REASONS:
        say(f"  and {counted(len(reasons) - REASONS, 'reason')} more, which -v shows")


def _print_search(result: TuneResult) -> None:
    """Print the number of evaluations, their pace, and the failures."""
    say, verbose = settings().say, settings().verbose
    resumed = f", {result.resumed} of them from earlier runs" if result.resumed else ""
    say(
        f"evaluated {counted(len(result.evaluations), 'configuration')}{resumed}, in "
        f"{result.seconds:.0f} s; ended by {ENDED_BY[result.stopped]}"
    )
    if speed := pace(result):
        say(speed)
    failed = [item for item in result.evaluations if item.status != "correct"]
    if failed:
        say(f"{failure_counts(result.failures)}; replacements of the worker: {result.restarts}")
        for item in failed if verbose else failed[-REASONS:]:
            say(f"  {item.status}: {item.reason} {item.config}")


def _gain(result: TuneResult) -> str:
    """Return how the winner compares with the built-in configuration, to end a sentence."""
    default = result.task.operation.default_name
    if result.gained:
        return (
            "" if result.speedup is None else f", {result.speedup:.2f}x the {default} configuration"
        )
    assert result.best is not None
    others = sum(item.config != result.best.config for item in result.finalists)
    compared = f"{counted(others, 'other')} timed in turns with it, none faster beyond noise"
    return f", the {default} configuration: " + (
        compared if others else "no other was timed in turns with it"
    )


def _table(result: TuneResult) -> Table:
    finalists = result.finalists or (result.best,)
    rows = [result.as_row(item) for item in finalists if item is not None]
    rate = "gflops" if rows[0]["gflops"] else "gbps"
    peaks = rows[0]["peak_fraction"] is not None
    title = "Finals" if result.finalists else "The best so far, not measured again"
    title += ", all by kernel time"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.caption = peak_caption(row["peak_note"] for row in rows)
    names = ["kernel ms", "min..max", "runs", {"gflops": "GFLOP/s", "gbps": "GB/s"}[rate]]
    for name in (*names, *(["% peak"] if peaks else [])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("configuration")
    assert result.best is not None
    for row in rows:
        spread = row["kernel_spread_ms"]
        default = result.default is not None and row["config"] == dict(result.default.config)
        differs = {
            name: value
            for name, value in row["config"].items()
            if value != result.best.config[name]
        }
        # Configurations do not fit; that of the winner is printed below the table.
        shown = "the winner" if not differs else ", ".join(f"{n}={v}" for n, v in differs.items())
        table.add_row(
            number(row["kernel_ms"]),
            f"{number(spread['min'], 3)}..{number(spread['max'], 3)}",
            str(spread["runs"]),
            number(row[rate]),
            *([share_text(row["peak_fraction"])] if peaks else []),
            Text(shown + (f" ({result.task.operation.default_name})" if default else "")),
        )
    return table

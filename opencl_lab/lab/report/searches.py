"""Sections about documents of `oclab tune`: the winner, the search and the finals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results, times_of
from opencl_lab.lab.presentation.changes import problem_fields
from opencl_lab.lab.presentation.table import (
    Cell,
    CellTable,
    finite,
    number,
    number_cell,
    spread_cell,
)
from opencl_lab.lab.report.documents import objects, texts
from opencl_lab.lab.report.figures import Picture, picture_of, plot_search
from opencl_lab.lab.report.summary import Trouble

STOPPED = {
    "complete": "The strategy was completed.",
    "budget": "The budget was used up.",
    "time": "The time limit was reached.",
    "interrupted": "The search was interrupted.",
}


def search_text(results: Results) -> list[str]:
    """Return sentences about the winner, its gain, and the number of configurations tried."""
    content = results.content
    tried = len(objects(content.get("evaluations")))
    seconds = finite(content.get("seconds"))
    took = "" if seconds is None else f" in {seconds:.0f} s"
    removed, space = results.mapping("removed"), ""
    if isinstance(removed.get("total"), int) and isinstance(removed.get("left"), int):
        about = "" if removed.get("exact") else "about "
        space = f" of {about}{removed['left']:,} that can run here"
        space += f" (the space has {removed['total']:,})"
    ended = STOPPED.get(str(content.get("stopped")), "")
    said = [f"{counted(tried, 'configuration')}{space} were tried{took}. {ended}".rstrip()]
    best = next(iter(objects(content.get("results"))), None)
    if best is None:
        return ["No configuration gave a correct result.", *said]
    kernel = finite(best.get("kernel_ms"))
    text = "an unknown time" if kernel is None else f"{number(kernel)} ms in kernels"
    default = content.get("default")
    gain = finite(content.get("speedup_over_default"))
    if isinstance(default, dict) and default.get("config") == best.get("config"):
        won = f"The built-in configuration wins, with {text}: none is faster beyond noise."
    elif gain is not None:
        won = f"The winner takes {text}, {number(gain, 3)} times as fast as the built-in one."
    else:
        won = f"The winner takes {text}."
    stored = ["It is stored, and used from now on."] if content.get("stored") is True else []
    config = best.get("config")
    if not isinstance(config, dict):
        return [won, *said, *stored]
    words = ", ".join(f"{name}={value}" for name, value in config.items())
    return [won, *said, *stored, f"Its parameters: {words}."]


def search_troubles(results: Results) -> list[Trouble]:
    """Return remarks on the search, and how many configurations failed with each status."""
    found = [Trouble(text, False) for text in texts(results.content.get("notes"))]
    if results.content.get("stable") is False:
        found.append(Trouble("The finals found no stable winner; a longer search may.", False))
    tried = objects(results.content.get("evaluations"))
    failed = Counter(str(x.get("status")) for x in tried if x.get("status") != "correct")
    return found + [
        Trouble(f"{counted(count, 'configuration')} failed ({status})", True)
        for status, count in failed.items()
    ]


def search_table(results: Results) -> CellTable:
    """Return a table of the finals, the fastest first; without finals, of the best one."""
    content = results.content
    rows = objects(content.get("finalists")) or objects(content.get("results"))
    configs = [row["config"] if isinstance(row.get("config"), dict) else {} for row in rows]
    names, _ = problem_fields(configs)
    default = content.get("default")
    built_in = default.get("config") if isinstance(default, dict) else None
    columns: dict[str, Callable[[int], Cell]] = {
        "place": lambda at: Cell(str(at + 1), at),
        "kernel ms": lambda at: number_cell(rows[at].get("kernel_ms")),
        "min..max": lambda at: spread_cell(
            times_of(rows[at], "kernel_times") or times_of(rows[at], "kernel_spread_ms")
        ),
        "GFLOP/s": lambda at: number_cell(rows[at].get("gflops")),
        **{name: partial(lambda name, at: number_cell(configs[at].get(name)), name)
           for name in names},
        "which": lambda at: Cell("built in" if configs[at] == built_in else ""),
    }  # fmt: skip
    caption = f"The finals, measured in turns; all have the same {'other ' if names else ''}"
    return CellTable.of(range(len(rows)), columns, f"{caption}parameters." * (len(rows) > 1))


def search_figures(results: Results) -> list[Picture]:
    """Draw the times of the search."""
    tried = objects(results.content.get("evaluations"))
    times = [_time(item) for item in tried]
    if not any(times):
        return []
    default = results.mapping("default").get("config")
    configs = (item.get("config") for item in tried)
    built_in = next(
        (t for t, config in zip(times, configs, strict=True) if config == default), None
    )
    return [picture_of("The search", partial(plot_search, trials=times, default=built_in))]


def _time(item: Mapping[str, Any]) -> float | None:
    """Return the median time of a configuration; None if it failed."""
    times = item.get("times_ms")
    found = map(finite, times) if isinstance(times, list) else ()
    values = [value for value in found if value is not None and value > 0]
    return median(values) if values else None

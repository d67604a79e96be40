"""Sections about documents of `oclab tune`: the winner, the search and the finals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results, times_of
from opencl_lab.lab.presentation.lines import group_name
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.report.cells import (
    Cell,
    PageTable,
    number_cell,
    spread_cell,
    table_without_empty,
)
from opencl_lab.lab.report.documents import finite, objects, texts
from opencl_lab.lab.report.plots import SearchPoint, plot_search
from opencl_lab.lab.report.summary import Trouble
from opencl_lab.lab.report.svg import Figure, figure_of

MOST_POINTS = 400  # largest number of configurations in a plot
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
    words = [f"Its parameters: {_config(config)}."] if isinstance(config, dict) else []
    return [won, *said, *stored, *words]


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


def search_table(results: Results) -> PageTable:
    """Return a table of the finals, the fastest first; without finals, of the best one."""
    content = results.content
    rows = objects(content.get("finalists")) or objects(content.get("results"))
    configs = [row["config"] for row in rows if isinstance(row.get("config"), dict)]
    names = list(dict.fromkeys(name for config in configs for name in config))
    names = [n for n in names if len({str(config.get(n)) for config in configs}) > 1]
    default = content.get("default")
    built_in = default.get("config") if isinstance(default, dict) else None
    cells = []
    for place, row in enumerate(rows, 1):
        config = row.get("config") if isinstance(row.get("config"), dict) else {}
        assert isinstance(config, dict)
        cells.append(
            [
                Cell(str(place), place),
                number_cell(row.get("kernel_ms")),
                spread_cell(times_of(row, "kernel_times") or times_of(row, "kernel_spread_ms")),
                number_cell(row.get("gflops")),
                *(number_cell(config.get(name)) for name in names),
                Cell("built in" if config == built_in else ""),
            ]
        )
    heads = ["place", "kernel ms", "min \u2013 max", "GFLOP/s", *names, "which"]
    caption = f"The finals, measured in turns; all have the same {'other ' if names else ''}"
    return table_without_empty(heads, cells, f"{caption}parameters." if len(cells) > 1 else "")


def search_figures(results: Results, prefix: str) -> list[Figure]:
    """Draw the times of the search."""
    tried = objects(results.content.get("evaluations"))
    trials = [_trial(item) for item in tried]
    if not any(trial.milliseconds for trial in trials):
        return []
    kept, remark = _thinned(trials)
    default = results.mapping("default").get("config")
    places = (place for place, item in enumerate(tried) if item.get("config") == default)
    first = next(places, None)
    of_default = None if first is None else trials[first].milliseconds
    tips = {group_name("trial", (place,)): trial.text for place, trial in enumerate(kept, 1)}
    draw = partial(plot_search, trials=kept, default=of_default)
    return [figure_of(draw, f"{prefix}-search", tips, f"The search{remark}")]


def _thinned(trials: Sequence[SearchPoint]) -> tuple[Sequence[SearchPoint], str]:
    """Return at most as many points as a plot can show: the fastest one of neighbours."""
    if len(trials) <= MOST_POINTS:
        return trials, ""
    group_size = math.ceil(len(trials) / MOST_POINTS)
    groups = [trials[i : i + group_size] for i in range(0, len(trials), group_size)]
    kept = [min(group, key=lambda item: item.milliseconds or math.inf) for group in groups]
    return kept, f" (the fastest of every {group_size} configurations; {len(trials):,} were tried)"


def _trial(item: Mapping[str, Any]) -> SearchPoint:
    times = item.get("times_ms")
    found = map(finite, times) if isinstance(times, list) else ()
    values = [value for value in found if value is not None and value > 0]
    config = item.get("config")
    words = _config(config) if isinstance(config, dict) else ""
    if not values:
        return SearchPoint(f"{item.get('status')}: {item.get('reason') or ''} {words}", None)
    middle = median(values)
    return SearchPoint(f"{number(middle)} ms: {words}", middle)


def _config(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())

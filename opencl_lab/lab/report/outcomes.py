"""Sections about what a search came to, two runs compared, and the cost of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results, times_of
from opencl_lab.lab.presentation.changes import changes_table, counted_verdicts, problem_fields
from opencl_lab.lab.presentation.table import (
    Cell,
    CellTable,
    field,
    finite,
    number,
    number_cell,
    spread_cell,
)
from opencl_lab.lab.report.documents import objects, options_text, texts
from opencl_lab.lab.report.sweeps import Section, Trouble

STOPPED = {
    "complete": "The strategy was completed.",
    "budget": "The budget was used up.",
    "time": "The time limit was reached.",
    "interrupted": "The search was interrupted.",
}
CALL_COLUMNS = {
    "side": "arrays",
    "call_us": "\N{MICRO SIGN}s per call",
    "host_us": "\N{MICRO SIGN}s until it returns",
    "calls": "back-to-back calls",
}


def calls_section(results: Results, calls: Sequence[Mapping[str, Any]], anchor: str) -> Section:
    """Return the section about a document of `oclab bench --calls`: sizes, calls, figures."""
    known = ("what", *CALL_COLUMNS)
    sizes = dict.fromkeys(name for call in calls for name in call if name not in known)
    figure = partial(number_cell, digits=3)
    columns: dict[str, Callable[[Mapping[str, Any]], Cell]] = {
        name.replace("_", " "): field(name, figure) for name in sizes
    }
    columns["call"] = lambda call: Cell(str(call.get("what", "")), heads=True)
    columns |= {head: field(name, figure) for name, head in CALL_COLUMNS.items()}
    title, options = f"{results.operation}: cost of calls", options_text(results.options)
    return Section(anchor, title, options, CellTable.of(calls, columns))


def comparison_section(results: Results, anchor: str) -> Section:
    """Return the section about a document of `oclab bench --compare`."""
    rows = [row for row in objects(results.content.get("results")) if "verdict" in row]
    runs = results.mapping("compared")
    files = [run.get("path") for run in map(runs.get, ("old", "new")) if isinstance(run, dict)]
    threshold = finite(results.content.get("threshold"))
    limit = f"more than {threshold:g} times as long" if threshold else "too long"
    worse = sum(row.get("regression") is True for row in rows)
    said = [
        f"{len(rows)} rows are in both runs: {counted_verdicts(str(x['verdict']) for x in rows)}.",
        f"{counted(worse, 'regression')}: OpenCL rows that fail now or take {limit}, beyond noise.",
    ]
    troubles = [Trouble(text, True) for text in texts(results.content.get("warnings"))]
    for run in ("old", "new"):
        alone = texts(results.content.get(f"only_{run}"))
        if alone:
            more = f"; and {len(alone) - 3} more" * (len(alone) > 3)
            troubles.append(Trouble(f"only in the {run} run: {'; '.join(alone[:3])}{more}", False))
    title = f"Two runs compared: {', then '.join(map(str, files))}"
    return Section(anchor, title, "", changes_table(rows), said, troubles)


def search_section(results: Results, anchor: str) -> Section:
    """Return the section about a document of `oclab tune`."""
    problem = {name: x for name, x in results.mapping("problem").items() if name != "operation"}
    algorithm = results.content.get("algorithm")
    title = f"Tuning {results.operation}" + (f" by {algorithm}" if algorithm else "")
    said, troubles = _search_text(results), _search_troubles(results)
    return Section(anchor, title, options_text(problem), _finals(results), said, troubles)


def _search_text(results: Results) -> list[str]:
    """Return sentences about the winner, its gain, and the number of configurations tried."""
    content = results.content
    tried = counted(len(objects(content.get("evaluations"))), "configuration")
    left, seconds = results.mapping("removed").get("left"), finite(content.get("seconds"))
    space = f" of {left:,} that can run here" if isinstance(left, int) else ""
    took = "" if seconds is None else f" in {seconds:.0f} s"
    ended = STOPPED.get(str(content.get("stopped")), "")
    said = f"{tried}{space} were tried{took}. {ended}".rstrip()
    best = next(iter(objects(content.get("results"))), None)
    if best is None:
        return ["No configuration gave a correct result.", said]
    config, gain = best.get("config"), finite(content.get("speedup_over_default"))
    kernel = number(finite(best.get("kernel_ms")))
    if results.mapping("default").get("config") == config:
        won = f"The built-in configuration wins, with {kernel} ms: none is faster beyond noise."
    elif gain is None:
        won = f"The winner takes {kernel} ms in kernels."
    else:
        fast = f"{number(gain, 3)} times as fast as the built-in one"
        won = f"The winner takes {kernel} ms in kernels, {fast}."
    stored = ["It is stored, and used from now on."] if content.get("stored") is True else []
    words = options_text(config) if isinstance(config, dict) else ""
    return [won, said, *stored, *([f"Its parameters: {words}."] if words else [])]


def _search_troubles(results: Results) -> list[Trouble]:
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


def _finals(results: Results) -> CellTable:
    """Return a table of the finals, the fastest first; without finals, of the best one."""
    rows = objects(results.content.get("finalists")) or objects(results.content.get("results"))
    configs = [row["config"] if isinstance(row.get("config"), dict) else {} for row in rows]
    names, _ = problem_fields(configs)
    built_in = results.mapping("default").get("config")
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

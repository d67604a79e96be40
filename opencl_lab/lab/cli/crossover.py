"""`oclab bench OPERATION --crossover`: the size from which on the device is faster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import counted
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import print_and_write, write_json, write_results
from opencl_lab.lab.cli.sweep_outputs import bench_document
from opencl_lab.lab.engine.crossings import CrossoverSearch, Look, Pair
from opencl_lab.lab.engine.explore import Exploration, Stopped
from opencl_lab.lab.engine.row import Measurement, first_failure
from opencl_lab.lab.engine.runner import one_of
from opencl_lab.lab.engine.sweep import Sweep
from opencl_lab.lab.engine.timeout_predictor import TimeoutPredictor
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.plots import plot_times
from opencl_lab.lab.presentation.table import titled_table, write_rows
from opencl_lab.ops.solver import AUTO

CROSSOVER_FILES = ("crossover.csv", "crossover.json", "crossover.png")
SECONDS = 3.0
"""Default time limit of a size: it is short, since only the faster side has to be found."""
LEAST = 16
MORE = 1 << 4
"""How many times the work of the default size the largest one has."""
COLUMNS = (
    "implementation", "reference", "data", "size", "level_from", "level_to", "slower_to",
    "measured_from", "measured_to", "says",
)  # fmt: skip


def range_of(
    chosen: Operation[Any], options: Mapping[str, Any], sizes: Sequence[int] | None
) -> list[int]:
    """Return the least and the greatest size of a search.

    Without `sizes` it ends at 16 times the work of the default size.
    """
    if sizes is not None:
        if len(sizes) < 2 or sizes[0] < 1:
            raise click.UsageError("--crossover searches between two --sizes of at least 1")
        return [sizes[0], sizes[-1]]

    def work(size: int) -> float:
        complete = chosen.with_defaults({**options, chosen.size_option: size})
        try:
            found = chosen.problem(**complete).work
        except InvalidProblem:
            return math.inf
        return float(found.flops or found.bytes)

    greatest = next(item.default for item in chosen.options if item.name == chosen.size_option)
    most = work(greatest) * MORE
    while work(greatest) < work(2 * greatest) <= most < math.inf:
        greatest *= 2
    return [LEAST, greatest]


def bench_crossover(sweep: Sweep, predictor: TimeoutPredictor, folder: Path | None) -> int:
    """Search, print the results and write them to `folder`; return the exit status.

    Without a time limit or number of samples in the request, a size takes `SECONDS`. Results from
    before an interrupt are printed and written.
    """
    least, greatest = sweep.sizes
    # References that the user has not named stay so when they are requested again.
    lenient = sweep.request.lenient or not sweep.references.by_name
    if sweep.request.budget is None and sweep.request.repeats is None:
        sweep = replace(sweep, request=replace(sweep.request, budget=SECONDS))
    search = CrossoverSearch(least, greatest)
    with progress_bar(f"{sweep.chosen.name} crossover") as progress:

        def measure(look: Look) -> list[Measurement]:
            done = len(run.seen)  # the total is unknown
            label = f"size {done + 1}, {sweep.label(look.size)}"
            part = one_of(progress, done, done + 1, label)
            some = {"against": look.references, "lenient": lenient}
            asked = {} if look.references is None else some
            rows = sweep.measure(look.size, predictor, part, **asked)
            return list(map(_chosen, rows)) if sweep.request.algorithms == AUTO else rows

        run = Exploration(measure, told=lambda look, rows: predictor.add(look.size, rows))
        stopped = run.run(search.points())
    failed = _print_and_write(sweep, search, folder, stopped) if run.seen else 0
    if stopped == "interrupted":
        raise KeyboardInterrupt
    return failed or first_failure(run.seen.values())


def _chosen(row: Measurement) -> Measurement:
    """Return an OpenCL row with a name that does not depend on which algorithm is chosen."""
    if row.kind != "opencl":
        return row
    name = row.implementation.replace(row.algorithm, AUTO, 1)
    return replace(row, implementation=name)


def _print_and_write(
    sweep: Sweep, search: CrossoverSearch, folder: Path | None, stopped: Stopped
) -> int:
    """Print the crossovers, then write the files; return the exit status of these."""
    complete = stopped == "complete"
    series = search.series
    found = [_as_dict(pair) for pair in search.pairs]
    content = bench_document(
        sweep,
        [{**sweep.named(size), **row.as_row()} for size, rows in series for row in rows],
        [size for size, _ in series],
        complete=complete,
        crossovers=found,
    )
    table, data, plot = CROSSOVER_FILES
    title = f"{sweep.title} on {sweep.selection.device}"
    files: dict[str, Callable[[Path], None]] = {
        table: lambda path: write_rows(path, found, COLUMNS),
        data: partial(write_json, content=content),
        plot: lambda path: plot_times(path, series, sweep.chosen.size_option, title),
    }
    show = partial(_print, sweep, search, found, complete)
    draws = stopped != "interrupted"
    return print_and_write(lambda: content, show, lambda: write_results(folder, files, draws=draws))


def _as_dict(pair: Pair) -> dict[str, Any]:
    """Return the result of a pair, by the names of `COLUMNS`; `level` has all such sizes."""
    found = pair.crossover()
    first, last = min(pair.rows), max(pair.rows)
    says = str(found) + f", as measured up to {last}" * pair.ended
    return {
        "implementation": found.implementation,
        "reference": found.reference,
        "data": pair.rows[first][0].data,
        "size": found.size,
        "size_text": found.size_text,
        "level": list(found.level),
        "level_from": min(found.level, default=None),
        "level_to": max(found.level, default=None),
        "slower_to": max(found.behind, default=None),
        "measured_from": first,
        "measured_to": last,
        "says": says,
    }


def _print(
    sweep: Sweep, search: CrossoverSearch, found: Sequence[Mapping[str, Any]], complete: bool
) -> None:
    settings().say_device()
    option = sweep.chosen.size_option
    table = titled_table(
        f"{sweep.title}: from which {option} on the device is faster",
        ("implementation", "reference"),
        ("slower up to", f"faster from {option}", "within noise", "measured"),
    )
    for item in found:
        names, first = (item["implementation"], item["reference"]), item["measured_from"]
        start = item["size_text"] or ("never" if complete else "not known")
        start = f"<= {first}" if item["size"] == first else start
        level = f"{item['level_from']}..{item['level_to']}" if item["level"] else "-"
        cells = (*names, item["slower_to"] or "-", start, level, f"{first}..{item['measured_to']}")
        table.add_row(*(Text(str(cell)) for cell in cells))
    settings().show(table, ("measured",))
    reasons: dict[str, str] = {}  # for each implementation, why it was first not measured
    for size, rows in search.series:
        for row in rows:
            if not row.ok:
                reasons.setdefault(row.implementation, f"at {size}: {row.reason}")
    for name, reason in reasons.items():
        settings().say(f"{name} was not measured {reason}")
    stopped = "; the search was stopped early" * (not complete)
    settings().say(f"{counted(len(search.series), 'size')} measured{stopped}")

"""`oclab study list|NAME|all`: the experiments of the source reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.table import Table

from opencl_lab.core import early
from opencl_lab.core.wording import duration
from opencl_lab.lab.cli.common import (
    answer,
    device_of_jobs,
    document,
    global_options,
    option,
    settings,
)
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import (
    named_folder,
    results_folder,
    write_json,
    write_results,
    write_text,
)
from opencl_lab.lab.presentation.table import OPTIONAL_COLUMNS, table_text, write_csv
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import SCALES, Study
from opencl_lab.lab.studies.outcome import INTERRUPTED, StudyOutcome, plot_names
from opencl_lab.lab.studies.run import StudyRun

FILE_WIDTH = 160  # of tables in text files
OVER = "its share of the time limit, {}, was over"
RESULTS = ("results.csv", "results.json", "table.txt", "summary.txt")


@click.command("study")
@click.argument("name", type=click.Choice(["list", "all", *STUDIES]), metavar="list|NAME|all")
@option(
    "--scale",
    "small: a few minutes on two cores; full: the sizes of the reports, for a GPU.",
    type=click.Choice(SCALES),
    default="small",
)
@option(
    "--part NAME[,NAME]",
    "Measure only these parts of the study; `oclab study list` names them.",
    to="parts",
)
@option(
    "--out DIR",
    "Folder for the results, with a subfolder for each study; required, except with list.",
    type=click.Path(),
)
@option(
    "--repeats R", "Number of samples of each implementation.  [default: 5]", type=click.IntRange(1)
)
@option(
    "--time-limit S",
    "Time limit in seconds for all studies together; their files list what was not measured.",
    type=click.FloatRange(0, min_open=True),
)
@option(
    "--baseline NAME", "Implementation that speed-ups are over, such as numpy.  [default: c:seq]"
)
@option("--seed N", "Seed of the data.", type=click.IntRange(0), default=0)
@global_options
def study_command(
    name: str,
    scale: str,
    parts: str | None,
    out: str | None,
    time_limit: float | None,
    **options: Any,
) -> int:
    """Repeat the experiments of the source reports, and answer their questions from the results."""
    if name == "list":
        _list()
        return 0
    if out is None:
        raise click.UsageError("--out is needed: the folder for tables, plots and summaries")
    if time_limit is not None and math.isnan(time_limit):  # which Click's range accepts
        raise click.UsageError("--time-limit is a number of seconds, not nan")
    wanted = list(STUDIES.values()) if name == "all" else [STUDIES[name]]
    if parts is not None:
        wanted = [_limited(wanted, parts)]
    place = named_folder(out)
    options["asked"] = device_of_jobs()
    selection = settings().begin()
    settings().say_device()
    end = None if time_limit is None else monotonic() + time_limit
    status = 0
    contents = []
    for index, study in enumerate(wanted):
        limit = None if end is None else (end - monotonic()) / (len(wanted) - index)
        with results_folder(str(place / study.name), RESULTS) as folder:
            begin = monotonic()
            with progress_bar(study.name) as progress:
                run = StudyRun(scale, selection.device, progress=progress, **options)
                measured, ended = run.run(study, limit)
            interrupted = ended == "interrupted"
            stopped = "" if limit is None else OVER.format(duration(limit))
            outcome = StudyOutcome(
                study,
                scale,
                run.seed,
                run.device,
                measured,
                monotonic() - begin,
                INTERRUPTED if interrupted else stopped,
            )
            content = outcome.as_dict()
            contents.append(content)
            if not outcome.parts:
                settings().say(f"{study.name}: nothing was measured, nothing is written")
            else:
                _show(outcome)
                baseline = options["baseline"]
                if baseline not in (None, *(row.implementation for _, row in outcome.rows)):
                    settings().say(f"{baseline} was not measured, so no speed-up is over it")
                try:
                    status = _write(outcome, content, folder) or status or outcome.status
                except KeyboardInterrupt:
                    interrupted = True
                early.command.kept = f"the results so far are in {place}"
        if interrupted:  # results so far are written nevertheless
            if wanted[index + 1 :]:
                names = ", ".join(other.name for other in wanted[index + 1 :])
                settings().say(f"not begun: {names}")
            raise KeyboardInterrupt
    answer("study", device=selection.as_dict(), studies=contents)
    return status


def _limited(studies: Sequence[Study], names: str) -> Study:
    """Return a study with only the named parts."""
    if len(studies) > 1:
        raise click.UsageError("--part is for one study")
    study = studies[0]
    chosen = [name.strip() for name in names.split(",")]
    there = list(dict.fromkeys(part.name for part in study.parts))
    for name in chosen:
        if name not in there:
            raise click.UsageError(f"{study.name} has no part {name!r}; it has: {', '.join(there)}")
    return replace(study, parts=[part for part in study.parts if part.name in chosen])


def _list() -> None:
    """Print names, summaries and sizes of all studies."""
    listed = [
        {
            "name": study.name,
            "shows": study.shows,
            "points": {
                scale: {part.label: list(map(dict, part.points[scale])) for part in study.parts}
                for scale in SCALES
            },
        }
        for study in STUDIES.values()
    ]
    answer("study", studies=listed)
    table = Table()
    for column in ("name", "shows", *SCALES):
        table.add_column(column, overflow="fold")
    for study in STUDIES.values():
        sizes = (_sizes(study, scale) for scale in SCALES)
        table.add_row(study.name, study.shows, *sizes)
    settings().show(table)


def _sizes(study: Study, scale: str) -> str:
    """Return the sizes of a study; parts with equal sizes are named together."""
    lines: dict[str, list[str]] = {}
    for part in study.parts:
        values = (" x ".join(map(str, point.values())) for point in part.points[scale])
        lines.setdefault(f"{part.axis}: {', '.join(values)}", []).append(part.label)
    if len(lines) == 1 and len(study.parts) == 1:
        return next(iter(lines))
    return "\n".join(f"{', '.join(names)}, {line}" for line, names in lines.items())


def _show(outcome: StudyOutcome) -> None:
    for table in outcome.tables():
        settings().show(table, OPTIONAL_COLUMNS)
    settings().say(*outcome.summary().split("\n"))


def _write(outcome: StudyOutcome, content: dict[str, Any], folder: Path) -> int:
    """Write the files of a study; return an exit status."""
    leading = list(dict.fromkeys(name for before, _ in outcome.rows for name in before))
    full = document("study", device=outcome.device.as_dict(), **content)
    table, data, text, summary = RESULTS
    gaps = "".join(f"{line}\n" for line in outcome.gaps)
    tables = gaps + table_text(*outcome.tables(), width=FILE_WIDTH)
    return write_results(
        folder,
        {
            table: lambda path: write_csv(path, outcome.rows, leading=leading),
            data: lambda path: write_json(path, full),
            text: lambda path: write_text(path, tables),
            summary: lambda path: write_text(path, outcome.summary()),
            **outcome.plots,
        },
        plots=plot_names(outcome.study),
    )

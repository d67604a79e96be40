"""`oclab study list|NAME|all`: the experiments of the source reports, each by one command."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from opencl_lab.cli.common import (
    document,
    global_options,
    print_json,
    settings,
    write_files,
)
from opencl_lab.cli.progress import progress_bar
from opencl_lab.cli.results import results_folder, write_json, write_text
from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.plots import plot_speedup, plot_times
from opencl_lab.comparison.runner import BASELINE
from opencl_lab.comparison.sweep import crossovers
from opencl_lab.comparison.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.device import Device
from opencl_lab.discovery import Selection
from opencl_lab.studies.catalogue import STUDIES
from opencl_lab.studies.descriptor import (
    SCALES,
    Part,
    PartResult,
    Point,
    Printed,
    Study,
    printed_figures,
)
from opencl_lab.studies.run import run_study
from opencl_lab.wording import duration

__all__ = ["study_command"]

RESULTS = ("results.csv", "results.json", "table.txt", "summary.txt")


@dataclass(frozen=True)
class _Outcome:
    """What a study found: its rows, and the answers drawn from them."""

    study: Study
    scale: str
    device: Device
    parts: Sequence[PartResult]
    seconds: float

    @property
    def answers(self) -> list[tuple[str, list[str]]]:
        """The questions and what the rows say."""
        return [(q.text, q.answer(self.parts, self.device)) for q in self.study.questions]

    @property
    def rows(self) -> Iterator[tuple[dict[str, Any], Measurement]]:
        """Every row after the options of its problem."""
        for result in self.parts:
            for point, rows in result.rows:
                before = {"part": result.part.name, **result.part.options, **point.options}
                yield from ((before, row) for row in rows)

    def title(self, part: Part) -> str:
        """Return the name of a part of the study, which may be all of it."""
        names = dict.fromkeys((self.study.name, part.name))
        return " ".join(names)

    @property
    def status(self) -> int:
        """The exit status."""
        return next((result.status for result in self.parts if result.status), 0)


@click.command("study")
@click.argument("name", type=click.Choice(["list", "all", *STUDIES]), metavar="list|NAME|all")
@click.option(
    "--scale",
    type=click.Choice(SCALES),
    default="small",
    show_default=True,
    help="small: a few minutes on two cores; full: the sizes of the reports, for a GPU.",
)
@click.option("--out", metavar="DIR", help="Folder for the results, one below it for each study.")
@click.option(
    "--repeats", type=click.IntRange(1), help="Timed rows of calls of each.  [default: 5]"
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the data.")
@global_options
def study_command(name: str, scale: str, out: str | None, repeats: int | None, seed: int) -> int:
    """Regenerate the experiments of the source reports, with answers drawn from the rows."""
    if name == "list":
        _list()
        return 0
    if out is None:
        raise click.UsageError("--out is needed: the folder for tables, plots and summaries")
    selection = settings().begin()
    wanted = list(STUDIES.values()) if name == "all" else [STUDIES[name]]
    settings().say_device()
    status = 0
    contents = []
    for study in wanted:
        with results_folder(str(Path(out, study.name)), RESULTS) as folder:
            outcome, interrupt = _measure(study, scale, selection.device, seed, repeats)
            content = _content(outcome, selection, seed)
            contents.append(content)
            if outcome.parts:
                _show(outcome)
                status = _write(outcome, content, folder) or status or outcome.status
        if interrupt is not None:  # what was measured is written all the same
            raise interrupt
    if settings().json:
        print_json(
            document(
                "study",
                device=selection.as_dict(),
                studies=contents,
            )
        )
    return status


def _measure(
    study: Study, scale: str, device: Device, seed: int, repeats: int | None
) -> tuple[_Outcome, KeyboardInterrupt | None]:
    """Run a study; of one that is interrupted, return what was measured, and the interrupt."""
    begin = time.monotonic()
    parts: dict[str, PartResult] = {}
    interrupt = None
    with progress_bar(study.name) as progress:
        run = run_study(study, scale, device, seed=seed, repeats=repeats, progress=progress)
        try:
            for result in run:
                parts[result.part.name] = result
        except KeyboardInterrupt as error:
            interrupt = error
    seconds = time.monotonic() - begin
    return _Outcome(study, scale, device, list(parts.values()), seconds), interrupt


def _list() -> None:
    """Print the studies: names, what they show, sizes of all scales."""
    if settings().json:
        listed = [
            {
                "name": study.name,
                "shows": study.shows,
                "points": {
                    scale: {part.name: list(map(dict, part.points[scale])) for part in study.parts}
                    for scale in SCALES
                },
            }
            for study in STUDIES.values()
        ]
        print_json(document("study", studies=listed))
        return
    table = Table()
    for column in ("name", "shows", *SCALES):
        table.add_column(column, overflow="fold")
    for study in STUDIES.values():
        sizes = (_sizes(study, scale) for scale in SCALES)
        table.add_row(study.name, study.shows, *sizes)
    settings().show(table)


def _sizes(study: Study, scale: str) -> str:
    """Return the sizes of a study; parts that share theirs are named together."""
    lines: dict[str, list[str]] = {}
    for part in study.parts:
        values = (" x ".join(map(str, point.values())) for point in part.points[scale])
        lines.setdefault(f"{part.axis}: {', '.join(values)}", []).append(part.name)
    if len(lines) == 1 and len(study.parts) == 1:
        return next(iter(lines))
    return "\n".join(f"{', '.join(names)}, {line}" for line, names in lines.items())


def _content(outcome: _Outcome, selection: Selection, seed: int) -> dict[str, Any]:
    return {
        "study": outcome.study.name,
        "scale": outcome.scale,
        "seed": seed,
        "answers": [{"question": text, "answer": answer} for text, answer in outcome.answers],
        "notes": [note for result in outcome.parts for note in result.notes],
        "printed": [vars(figure) for figure in _printed(outcome.study)],
        "results": [{**before, **row.as_row()} for before, row in outcome.rows],
    }


def _printed(study: Study) -> list[Printed]:
    return [figure for figure in printed_figures() if figure.study == study.name]


def _beside(outcome: _Outcome) -> list[str]:
    """Say what the report printed, and what was measured here instead."""
    sentences = []
    for figure in _printed(outcome.study):
        text = f"{figure.what}, {Point(figure.point)}: {figure.milliseconds:g} ms on "
        text += figure.hardware
        row = next(
            (
                row
                for before, row in outcome.rows
                if row.implementation == figure.ours
                and all(before.get(name) == value for name, value in figure.point.items())
            ),
            None,
        )
        if row is None or row.total_ms is None:
            sentences.append(f"{text}; not measured here at this scale.")
        else:
            kernel = "" if row.kernel_ms is None else f", {row.kernel_ms:.3g} ms in kernels"
            sentences.append(
                f"{text}; {figure.ours} takes {row.total_ms.median:.3g} ms here{kernel}."
            )
    return sentences or [
        "No figure that the report printed is known, so none stands beside the rows."
    ]


def _summary(outcome: _Outcome) -> str:
    study = outcome.study
    lines = [f"{study.name} ({outcome.scale}): {study.shows}", str(outcome.device)]
    lines.append(f"measured in {duration(outcome.seconds)}")
    for question, answer in outcome.answers:
        lines += ["", question, *(f"  {sentence}" for sentence in answer)]
    lines += ["", "What did the report print?", *(f"  {line}" for line in _beside(outcome))]
    notes = [note for result in outcome.parts for note in result.notes]
    if notes:
        lines += ["", "What was left out?", *(f"  {note}" for note in dict.fromkeys(notes))]
    return "\n".join(lines) + "\n"


def _tables(outcome: _Outcome) -> Iterator[Table]:
    for result in outcome.parts:
        for point, rows in result.rows:
            yield comparison_table(rows, f"{outcome.title(result.part)}: {point}")


def _show(outcome: _Outcome) -> None:
    for table in _tables(outcome):
        settings().show(table, OPTIONAL_COLUMNS)
    settings().say(_summary(outcome))


def _table_text(outcome: _Outcome) -> str:
    console = Console(file=io.StringIO(), width=160)
    for table in _tables(outcome):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _plots(outcome: _Outcome, folder: Path) -> dict[str, Callable[[], None]]:
    """Return by the name of a file what draws it."""
    drawn: dict[str, Callable[[], None]] = {}
    for result in outcome.parts:
        part, series = result.part, result.series
        title = f"{outcome.title(part)} on {outcome.device}"
        time_file, speedup_file = f"{part.name}-time.png", f"{part.name}-speedup.png"
        found = crossovers(series)
        drawn[time_file] = partial(plot_times, folder / time_file, series, part.axis, title, found)
        drawn[speedup_file] = partial(
            plot_speedup, folder / speedup_file, series, part.axis, BASELINE, title
        )
        several = [(p, shares) for p, rows in result.rows if (shares := _by_workers(rows))]
        if several:
            point, workers = several[-1]
            name = f"{part.name}-workers.png"
            what = f"{title}, {point}"
            drawn[name] = partial(
                plot_speedup, folder / name, workers, "workers", "one worker", what
            )
    return drawn


def _by_workers(rows: Sequence[Measurement]) -> list[tuple[int, list[Measurement]]]:
    """Return the rows of references by their workers, with the speed-up over one of these.

    Nothing for those that ran with one number of workers only, or not with one worker.
    """
    ones = {row.algorithm: row for row in rows if row.workers == 1 and row.ok}
    found: dict[int, list[Measurement]] = {}
    for row in rows:
        if row.kind != "opencl" and row.implementation != row.algorithm and row.algorithm in ones:
            named = replace(row, implementation=row.algorithm).against(ones[row.algorithm])
            found.setdefault(row.workers, []).append(named)
    return sorted(found.items())


def _write(outcome: _Outcome, content: dict[str, Any], folder: Path) -> int:
    """Write the files of a study; return an exit status."""
    leading = list(dict.fromkeys(name for before, _ in outcome.rows for name in before))
    full = document("study", device=outcome.device.as_dict(), **content)
    table, data, text, summary = (folder / name for name in RESULTS)
    plots = _plots(outcome, folder)
    failed = write_files(
        lambda: write_csv(table, outcome.rows, leading=leading),
        lambda: write_json(data, full),
        lambda: write_text(text, _table_text(outcome)),
        lambda: write_text(summary, _summary(outcome)),
        *plots.values(),
    )
    if not failed:
        settings().say(f"written to {folder}: {' '.join((*RESULTS, *plots))}")
    return failed

"""Make the tables and plots of the pages of figures from the files in docs/data.

    python tools/pages.py

replaces what stands between ``<!-- made from docs/data: WHAT NAME -->`` and ``<!-- end -->`` on the
pages, by the function of `BLOCKS` that is called WHAT, and draws docs/plots. Tables of measured
times have at most six rows, each of which names the file that has it and all others. A second run
changes nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import page_offline
import scaling
from page_data import (
    MOST_ROWS,
    OPERATIONS,
    OURS,
    SAID_APART,
    SUMMARY,
    SWEEPS,
    DeviceRun,
    PageData,
    best_other,
    cells_today,
    few,
    matrix_cell,
    read_data,
)
from page_plots import pictures, styles_of

from opencl_lab.core.wording import plain
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.outcome import StudyOutcome

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("performance.md", "performance/*.md", "studies_h200.md", "scaling.md", "runtimes.md")
PLATFORMS = {"Portable Computing Language": "PoCL", "Intel(R) OpenCL": "Intel's CPU runtime"}
BLOCK = re.compile(r"(<!-- made from docs/data: (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)


class Page:
    """One page: what its blocks hold."""

    def __init__(self, path: Path, data: PageData):
        self._folder, self._data = path.parent, data

    def made(self, text: str) -> str:
        """Return the text of the page with every block made anew.

        Raises
        ------
        ValueError
            If a block names something that nothing makes.
        """

        def block(match: re.Match[str]) -> str:
            begin, what, name, end = match.groups()
            make = getattr(self, f"_{what}", None)
            if make is None:
                raise ValueError(f"nothing makes {what}")
            return f"{begin}{make(*filter(None, [name]))}\n{end}"

        return BLOCK.sub(block, text)

    def _summary(self) -> str:
        """Return how often we are ahead of the fastest other library, level, and behind."""
        runs = {name: self._data.runs[name] for name in SUMMARY if name in self._data.runs}
        titles = list(dict.fromkeys(run.title for some in runs.values() for run in some))
        rows = []
        for name, some in runs.items():
            cells = {run.title: counts(run) for run in some}
            what = f"{name.split('_')[0]}, {SWEEPS[name].what}"
            links = " ".join(self._link(run.results.path) for run in some)
            rows.append([what, *(cells.get(title, "-") for title in titles), links])
        return table(["sizes ahead / level / behind", *titles, "data"], rows)

    def _sweep(self, name: str) -> str:
        """Return a table of a sweep for each device."""
        parts = []
        for run in self._data.runs.get(name, ()):
            names = list(styles_of(name for _, times in run.series for name in times))
            rows = [
                [f"{size:,}", *(cell(times.get(name)) for name in names), ratio(times)]
                for size, times in few(run.series)
            ]
            head = [run.sweep.size, *names, "best other / ours", "data"]
            link = self._link(run.results.path)
            parts.append(f"{caption(run)}\n\n{table(head, [[*row, link] for row in rows])}")
        return "\n\n".join(parts) or "Not measured yet."

    def _types(self, size: str) -> str:
        """Return products of other types than float32 at one size, a row for each run."""
        rows = []
        for sweep_name in OPERATIONS["gemm"][1:]:
            for run in self._data.runs.get(sweep_name, ()):
                times = dict(run.series).get(int(size), {})
                if not times:
                    continue
                name, other = best_other(times)
                rows.append([run.sweep.what.removesuffix(", N x N"), run.title, cell(times[OURS])])
                rows[-1] += [name, cell(other), ratio(times), self._link(run.results.path)]
        head = ["type", "device", OURS, "best other", "its ms", "best other / ours", "data"]
        return f"N = {int(size):,}, milliseconds per call:\n\n{table(head, few(rows), 2)}"

    def _listing(self, name: str) -> str:
        """Return rows of a listing, evenly from its best ratio to its worst."""
        listing = self._data.listings[name]
        head, ours = listing.head, listing.compared[0]

        def worst(row: Mapping[str, str]) -> float:
            return min(listing.ratios(row).values())

        apart = [column for column in SAID_APART if column in listing.leading]
        rows = []
        for row in few(sorted(listing.rows, key=worst, reverse=True)):
            times = [
                plain(float(row[column])) if row[column] else "-" for column in listing.compared
            ]
            cells = [listing.label(row), *(row[column] for column in apart), *times]
            rows.append([*cells, f"{worst(row):.2f}x", self._link(listing.path)])
        what = ", ".join(name for name in listing.leading if name not in SAID_APART)
        columns = [what.replace("m, n, k", "m x n x k"), *apart, *listing.compared]
        columns += [f"fastest other / {ours[:-3]}", "data"]
        said = [head[key] for key in ("device", "method", "date") if key not in apart]
        text = "; ".join([*said, f"`{head['command']}`."]) + f" {head.get('note', '')}".rstrip()
        return f"{text}\n\n{table(columns, rows, 1 + len(apart))}"

    def _study(self, name: str) -> str:
        """Return where a study was measured, a table of its first part, and its answers."""
        results, outcome = self._data.studies[name]
        there, shows = results.mapping("environment"), outcome.study.shows
        built = there.get("compiler") or {}
        command = " ".join(str(word) for word in results.content["arguments"])
        parts = [
            f"![{shows}](plots/studies/{name}.svg)",
            f"{shows[:1].upper()}{shows[1:]}. `oclab {command}`, {there['started'][:10]}: "
            f"{outcome.device}; references on {there['processors']} processors, {there['cpu']}, "
            f"`gcc {str(built['version']).split()[-1]} {' '.join(built['flags'])}`.",
            self._times(outcome, self._link(results.path)),
        ]
        if outcome.gaps:
            parts.append("\n".join(["**This study is not complete.**", *outcome.gaps]))
        for question, answer in [*outcome.answers, ("What was left out?", outcome.notes)]:
            if answer:
                parts.append("\n".join([f"**{question}**", "", *(f"- {line}" for line in answer)]))
        return "\n\n".join(parts)

    def _times(self, outcome: StudyOutcome, link: str) -> str:
        """Return the times of the fastest implementations of the first part of a study."""
        points = few([(str(point), rows) for point, rows in outcome.parts[0].rows])
        found: dict[str, dict[str, Times]] = {}
        for point, rows in points:
            for row in rows:
                if row.status == "correct" and row.total_ms:
                    found.setdefault(row.implementation, {})[point] = row.total_ms
        families: dict[str, str] = {}  # of variants and numbers of workers the fastest
        for name in sorted(found, key=lambda n: (-len(found[n]), [*found[n].values()][-1].median)):
            families.setdefault(re.split(r" x|\[", name)[0], name)
        lines = [
            [name, *(cell(found[name].get(point)) for point, _ in points), link]
            for name in [*families.values()][:MOST_ROWS]
        ]
        return table(["milliseconds", *(point for point, _ in points), "data"], lines)

    def _scaling(self, what: str) -> str:
        """Return a table of the model of scaling."""
        head, rows, words = SCALING[what]()
        return table(head, rows, words, links=False)

    def _runtimes(self) -> str:
        """Return where the matrix was run, and what came out."""
        return runtimes(
            json.loads((DOCS / "runtimes.json").read_text(encoding="utf-8"))["runtimes"]
        )

    def _offline(self) -> str:
        """Return what compilers of GPUs that are not here say."""
        found = page_offline.read()
        rows = (page_offline.targets(found), page_offline.spills(found))
        return "\n\n".join([page_offline.said(found), *(table(*one, links=False) for one in rows)])

    def _link(self, path: Path) -> str:
        return f"[{path.stem}]({Path(os.path.relpath(path, self._folder)).as_posix()})"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, links: bool = True
) -> str:
    """Return a table as Markdown, whose first columns, so many, hold words.

    With `links` the last one does, too, and there are few rows.
    """
    if links and len(rows) > MOST_ROWS:
        raise ValueError(f"a table of {len(rows)} rows")
    rule = "|" + "---|" * words + "--:|" * (len(head) - words - links) + "---|" * links
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(r)} |" for r in rows)])


def caption(run: DeviceRun) -> str:
    """Return what a table of a sweep shows, and where and when it was measured."""
    device = run.results.device
    platform = PLATFORMS.get(device["platform"], device["platform"])
    places = "data on the device" if run.on_gpu else "NumPy arrays"
    return (
        f"**{run.title}**, {run.sweep.what}; {platform}, driver {device['driver']}; {places}; "
        f"{run.environment('started')[:10]}; milliseconds per call:"
    )


def cell(times: Times | None) -> str:
    """Return the median of some times."""
    return "-" if times is None else plain(times.median)


def ratio(times: Mapping[str, Times]) -> str:
    """Return how the best other library compares; in brackets where the intervals overlap."""
    ours, (_, best) = times[OURS], best_other(times)
    text = f"{best.median / ours.median:.2f}x"
    return f"({text})" if best.is_level_with(ours) else text


def counts(run: DeviceRun) -> str:
    """Return at how many sizes of a run ours is ahead of the best other, level, and behind."""
    found = {"ahead": 0, "level": 0, "behind": 0}
    for _, times in run.series:
        ours, (_, best) = times[OURS], best_other(times)
        ahead = "ahead" if best.median > ours.median else "behind"
        found["level" if best.is_level_with(ours) else ahead] += 1
    return " / ".join(map(str, found.values()))


# ------------------------------------------------------------------------------- scaling

Rows = tuple[list[str], list[list[str]], int]
"""A head, rows, and the number of columns that hold words."""


def whole(value: float) -> str:
    """Return a number with two digits, or with all before the point."""
    if value >= 1e6:
        power = len(f"{value:.0f}") - 1
        lead = f"{value / 10**power:.2g}"
        return f"10^{power}" if lead == "1" else f"{lead} * 10^{power}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def check() -> Rows:
    """Return how near predictions are to measured times."""
    rows = []
    for stem, document in scaling.documents().items():
        if not document["runs"]:
            continue
        found = scaling.comparison(stem)
        ratios = [one["predicted"] / one["measured"] for one in found]
        close = sum(abs(one - 1) <= scaling.CLOSE for one in ratios)
        counts = ", ".join(map(str, sorted({one["ranks"] for one in found})))
        rows.append([f"[{stem}](data/scaling/{stem}.json): {document['machine']['name']}", counts])
        rows[-1] += [f"{close} of {len(found)}", f"{median(ratios):.2f}"]
        rows[-1].append(f"{min(ratios):.2f} to {max(ratios):.2f}")
    head = ["machine", "ranks", f"within {scaling.CLOSE:.0%}", "predicted / measured, median"]
    return [*head, "range"], rows, 2


def efficiencies(weak: bool) -> Rows:
    """Return seconds and efficiencies of each machine and operation, as it is and changed."""
    rows = []
    for machine in scaling.machines():
        for name, (each, all_, what) in scaling.problems(machine).items():
            rows.append([f"{machine}: {name}, {whole(each if weak else all_)} {what}"])
            for ranks in scaling.RANKS:
                changes = scaling.NOW, scaling.changed(name)
                pair = [scaling.outcome(machine, name, ranks, weak, how)[:2] for how in changes]
                rows[-1].append("; ".join(f"{whole(s)} s, {share:.2f}" for s, share in pair))
    head = ["problem" + (" of one rank" if weak else "")]
    return [*head, *(f"{p:,} ranks" for p in scaling.RANKS)], rows, 1


def stops() -> Rows:
    """Return where each operation stops, and what then takes longest."""
    rows = []
    for machine in scaling.machines():
        for name in scaling.problems(machine):
            ends, longest = [], []
            for how in (scaling.NOW, scaling.changed(name)):
                at = scaling.stops(machine, name, how)
                ends.append("more than 8,192" if at is None else f"{at:,}")
                spent = scaling.outcome(machine, name, scaling.RANKS[1], True, how)[2]
                label = max(spent, key=lambda one: spent[one])
                longest.append(f"{label}, {spent[label] / sum(spent.values()):.0%}")
            rows.append([f"{machine}: {name}", *ends, *longest])
    head = ["", "half as efficient from", "changed", "longest at 1,024 ranks", "changed"]
    return head, rows, 1


def changes() -> Rows:
    """Return what each change brings."""
    rows = []
    for machine, name, ranks, stop, text, change in scaling.documents()["stated"]["changes"]:
        after = scaling.replace(scaling.PLANNED, **(change or {}))
        pair = (scaling.NOW if change is None else scaling.PLANNED), after
        found = [scaling.outcome(machine, name, ranks, True, how)[0] for how in pair]
        rows.append([f"{name}, {machine}", f"{ranks:,}", stop, text])
        rows[-1] += [f"{whole(seconds)} s" for seconds in found]
    return ["operation", "ranks", "where it stops", "change", "now", "then"], rows, 4


SCALING = {
    "check": check,
    "weak": lambda: efficiencies(True),
    "strong": lambda: efficiencies(False),
    "stops": stops,
    "changes": changes,
}

# ------------------------------------------------------------------------------- runtimes


def runtimes(known: Mapping[str, Any]) -> str:
    """Return the results of `runtime_matrix`: a row for each runtime, a cell for each algorithm."""
    rows, shares = [], defaultdict(list)
    cells, reasons = {}, defaultdict(dict)
    wrong = []
    for name, result in known.items():
        failed = 0
        kept = list(cells_today(result["cells"]))
        for cell in kept:
            place = cell["operation"], cell["algorithm"]
            cells[(*place, name)] = cell
            for why, cases in cell["failed"].items():
                failed += len(cases)
                wrong.append(f"- `{name}`: {' by '.join(place)}, {len(cases)} cases: {why}")
            for reason in cell["limited"]:
                reasons[reason][" ".join(place)] = None
        said = f"**{failed} wrong**" if failed else "all right"
        said += "" if result["complete"] else ", not all run"
        said += f"; {result['note']}" if result["note"] else ""
        told = (result["processor"], f"{result['cores']} cores", result["date"])
        version = re.split(r"  |, ", result["platform_version"])[0] + f", {result['driver']}"
        passed = sum(cell["passed"] for cell in kept)
        where = ", ".join(filter(None, told))
        rows.append([f"`{name}`", result["title"], version, where, f"{passed + failed}", said])
        if result["share"]:
            shares[result["share"]].append(f"`{name}`")
    head = ["", "runtime", "version", "where", "cases", "result"]
    parts = [table(head, rows, 4, links=False).replace("|--:|--:|", "|--:|---|", 1)]
    parts += [
        f"{', '.join(some)} ran a share of the cases: `{one}`." for one, some in shares.items()
    ]
    rows = [
        [*place, *(matrix_cell(cells.get((*place, name))) for name in known)]
        for place in sorted({place[:2] for place in cells})
    ]
    head = ["operation", "algorithm", *(f"`{name}`" for name in known)]
    parts += [table(head, rows, 2, links=False), "## What is wrong", "\n".join(wrong) or "Nothing."]
    limits = [f"- {reason}: {', '.join(names)}" for reason, names in sorted(reasons.items())]
    return "\n\n".join([*parts, "## What is not supported, and why", "\n".join(limits)])


def made(docs: Path = DOCS) -> Iterator[tuple[Path, str]]:
    """Yield the files with what they ought to hold."""
    data = read_data(docs / "data")
    for path in sorted(path for pattern in PAGES for path in docs.glob(pattern)):
        yield path, Page(path, data).made(path.read_text(encoding="utf-8"))
    for name, draw in pictures(data).items():
        yield docs / f"plots/{name}.svg", draw()


def main(docs: Path = DOCS) -> int:
    """Write the pages and the plots; those that would not change are left alone."""
    for path, text in made(docs):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(docs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Make the tables and plots of docs/scaling.md from docs/data/scaling.

    python tools/scaling_page.py

replaces what stands between ``<!-- made from docs/data/scaling: WHAT -->`` and ``<!-- end -->``,
and draws docs/plots/scaling*.svg. A second run changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from performance_plots import INK, _finish, _panels
from scaling_clusters import (
    CURVE,
    FIXED,
    PROBLEMS,
    RANKS,
    cpu_cluster,
    fastest,
    gpu_cluster,
    outcome,
    stated_cpu,
    stops,
)
from scaling_machine import Machine
from scaling_measure import CLOSE, comparison
from scaling_model import LABELS
from scaling_operations import NOW, Changes

from opencl_lab.lab.presentation.drawing import plain_number
from opencl_lab.lab.presentation.ticks import show_values

DOCS = Path(__file__).parents[1] / "docs"
PAGE = "scaling.md"
BLOCK = re.compile(r"(<!-- made from docs/data/scaling: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LARGE = "cpu16"
"""The file of the machine that the CPU nodes are like, once there is one."""
OPERATIONS = ("gemm", "sort", "fft", "conv2d")
COLOURS = dict(zip(OPERATIONS, ("#e5484d", "#3b82f6", "#2f9e44", "#a855f7"), strict=True))
MARKERS = dict(zip(OPERATIONS, "osD^", strict=True))
SHADES = dict(
    zip(LABELS, ("#2f9e44", "#0e9594", "#3b82f6", "#e5484d", "#c2740c", "#a855f7", "#7d8590"),
        strict=True)
)  # fmt: skip
LEAST = 0.003
"""Share of the time that is drawn."""
PLANNED = Changes(planned=False)
"""What other changes are compared with, or else planning would hide them."""


@dataclass(frozen=True)
class Change:
    """One row of the table of changes: on which machine and ranks, and what is changed."""

    machine: str
    operation: str
    ranks: int
    stop: str
    change: str
    after: Changes
    before: Changes = PLANNED


CHANGES = (
    Change("CPU nodes", "fft", 1024, "a rank goes over all others in Python before each exchange",
           "arrays of indices, or none of it", PLANNED, NOW),
    Change("CPU nodes", "sort", 1024, "255 (p - 1) counts in each of 4 rounds",
           "digits of 2 bits: 3 (p - 1) in each of 16", replace(PLANNED, digit=2)),
    Change("CPU nodes", "sort", 10_000, "the same", "the same", replace(PLANNED, digit=2)),
    Change("CPU nodes", "fft", 10_000, "p messages of n / p^2 points in each exchange",
           "exchanges by node", replace(PLANNED, two_level=True)),
    Change("CPU nodes", "gemm", 10_000, "panels move only within calls of MPI",
           "a thread that moves them", replace(PLANNED, progress=True)),
    Change("CPU nodes", "conv2d", 10_000, "rows of the filter are as wide as the image",
           "blocks in place of slabs", replace(PLANNED, blocks=True)),
    Change("GPU nodes", "sort", 64, "all goes through memory of the host",
           "the network takes data from the devices", replace(PLANNED, resident=True)),
    Change("GPU nodes", "gemm", 64, "the same", "the same, and a thread",
           replace(PLANNED, resident=True, progress=True)),
)  # fmt: skip


class Page:
    """The page: what its blocks hold, and its plots."""

    def __init__(self, docs: Path = DOCS):
        self.paths = sorted((docs / "data/scaling").glob("*.json"))
        self._all = {path.stem: json.loads(path.read_text("utf-8")) for path in self.paths}
        self.documents = {stem: one for stem, one in self._all.items() if one["runs"]}

    @cached_property
    def machines(self) -> dict[str, Machine]:
        """The machines of the predictions."""
        plan = {"plan": self._all["plan"]["plan"]}
        small, large = {**self._all["cpu2"], **plan}, self._all.get(LARGE)
        cpus = stated_cpu(small) if large is None else cpu_cluster({**large, **plan})
        return {one.name: one for one in (cpus, gpu_cluster(small))}

    def made(self, text: str) -> str:
        """Return the text of the page with every block made anew."""

        def block(match: re.Match[str]) -> str:
            begin, what, end = match.groups()
            return f"{begin}{getattr(self, '_' + what)()}\n{end}"

        return BLOCK.sub(block, text)

    def pictures(self) -> dict[str, Callable[[], str]]:
        """Return by the name of its file what draws each picture."""
        return {
            "scaling": self.efficiencies,
            "scaling_shares": self.shares,
            "scaling_check": self.checked,
        }

    # -------------------------------------------------------------------------- tables

    def _check(self) -> str:
        """Return measured and predicted times."""
        rows = []
        for stem, document in self.documents.items():
            found = comparison(document)
            close = sum(abs(one["ratio"] - 1) <= CLOSE for one in found)
            ratios = [one["ratio"] for one in found]
            counts = sorted({one["ranks"] for one in found})
            rows.append(
                [f"[{stem}](data/scaling/{stem}.json): {document['machine']['name']}",
                 ", ".join(map(str, counts)), f"{close} of {len(found)}",
                 f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
            )  # fmt: skip
        head = ["machine", "ranks", f"within {CLOSE:.0%}", "predicted / measured, median", "range"]
        return table(head, rows, 2)

    def _weak(self) -> str:
        return self._efficiencies(True)

    def _strong(self) -> str:
        return self._efficiencies(False)

    def _efficiencies(self, weak: bool) -> str:
        """Return seconds and efficiencies for each machine and operation."""
        rows = []
        for machine in self.machines.values():
            for name in OPERATIONS:
                cells = []
                for ranks in RANKS:
                    _, now, share = outcome(machine, name, ranks, weak)
                    _, then, better = outcome(machine, name, ranks, weak, FIXED[name])
                    cells.append(
                        f"{number(now.seconds)} s, {share:.2f}; {number(then.seconds)} s, "
                        f"{better:.2f}"
                    )
                scale = PROBLEMS[machine.name][name]
                size = number(scale.weak if weak else scale.strong)
                rows.append([f"{machine.name}: {name}, {size} {scale.what}", *cells])
        head = ["problem" + (" of one rank" if weak else ""), *(f"{p:,} ranks" for p in RANKS)]
        return table(head, rows, 1)

    def _stops(self) -> str:
        """Return where each operation stops, and what then takes longest."""
        rows = []
        for machine in self.machines.values():
            for name in OPERATIONS:
                cells = [f"{machine.name}: {name}"]
                for changes in (NOW, FIXED[name]):
                    at = stops(machine, name, changes)
                    cells.append("more than 8,192" if at is None else f"{at:,}")
                for changes in (NOW, FIXED[name]):
                    ranks, seconds = fastest(machine, name, changes)
                    cells.append(f"{ranks:,}: {number(seconds)} s")
                for changes in (NOW, FIXED[name]):
                    cells.append(longest(outcome(machine, name, RANKS[1], True, changes)[1].spent))
                rows.append(cells)
        head = ["", "half as efficient from", "changed", "one problem is fastest on", "changed",
                "longest at 1,024 ranks", "changed"]  # fmt: skip
        return table(head, rows, 1)

    def _changes(self) -> str:
        """Return what each change brings."""
        rows = []
        for one in CHANGES:
            machine = self.machines[one.machine]
            pair = [
                outcome(machine, one.operation, one.ranks, True, changes)[1].seconds
                for changes in (one.before, one.after)
            ]
            rows.append(
                [f"{one.operation}, {one.machine}", f"{one.ranks:,}", one.stop, one.change,
                 f"{number(pair[0])} s", f"{number(pair[1])} s"]
            )  # fmt: skip
        return table(["operation", "ranks", "where it stops", "change", "now", "then"], rows, 4)

    # --------------------------------------------------------------------------- plots

    def efficiencies(self) -> str:
        """Draw efficiency by ranks: as it is, and with all changes."""
        styles = {name: (COLOURS[name], MARKERS[name]) for name in OPERATIONS}

        def draw(axis: Any, item: tuple[Machine, bool]) -> None:
            machine, weak = item
            for name, (colour, marker) in styles.items():
                for changes, line in ((NOW, "-"), (FIXED[name], "--")):
                    values = [outcome(machine, name, p, weak, changes)[2] for p in CURVE]
                    label = name if line == "-" else None
                    axis.plot(CURVE, values, line, color=colour, label=label, lw=1.4,
                              marker=marker if line == "-" else None, ms=4)  # fmt: skip
            axis.set_xscale("log")
            axis.set_ylim(0, 1.08)
            axis.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
            kind = "weak: alike for each rank" if weak else "strong: one problem"
            _finish(axis, f"{machine.name}, {kind}", "ranks", "efficiency")

        rows = [[(machine, weak) for weak in (True, False)] for machine in self.machines.values()]
        return _panels("scaling", rows, draw, styles, self.paths)

    def shares(self) -> str:
        """Draw what the ranks spend their time for, at each number of ranks."""
        styles = {label: (colour, "") for label, colour in SHADES.items()}

        def draw(axis: Any, item: tuple[Machine, str]) -> None:
            machine, name = item
            for label, (colour, _) in styles.items():
                axis.bar(0, 0, color=colour, label=label)
            for at, ranks in enumerate((4, *RANKS)):
                for place, changes in enumerate((NOW, FIXED[name])):
                    spent = outcome(machine, name, ranks, True, changes)[1].spent
                    whole, below = sum(spent.values()), 0.0
                    for label, (colour, _) in styles.items():
                        share = spent[label] / whole
                        if share < LEAST:
                            continue
                        axis.bar(at + 0.42 * place - 0.21, share, 0.38, below, color=colour)
                        below += share
            axis.set_xticks(range(4), [f"{ranks:,}" for ranks in (4, *RANKS)])
            _finish(axis, f"{name}, {machine.name}", "ranks: as it is | changed", "share of time")

        rows = [[(machine, name) for name in OPERATIONS] for machine in self.machines.values()]
        return _panels("scaling_shares", rows, draw, styles, self.paths, (2.4, 2.3))

    def checked(self) -> str:
        """Draw predicted beside measured times."""
        styles = {name: (COLOURS[name], MARKERS[name]) for name in OPERATIONS}

        def draw(axis: Any, document: Mapping[str, Any]) -> None:
            found = comparison(document)
            times = [1e3 * one["measured"] for one in found]
            ends = np.array([min(times) / 1.5, max(times) * 1.5])
            axis.fill_between(ends, ends * (1 - CLOSE), ends * (1 + CLOSE), color=INK, alpha=0.2)
            axis.plot(ends, ends, color=INK, lw=1)
            for name, (colour, marker) in styles.items():
                some = [one for one in found if one["operation"] == name]
                axis.plot([1e3 * one["measured"] for one in some],
                          [1e3 * one["predicted"] for one in some],
                          marker, color=colour, label=name, ms=5)  # fmt: skip
            axis.set_xscale("log")
            axis.set_yscale("log")
            show_values(axis.xaxis, plain_number)
            show_values(axis.yaxis, plain_number)
            _finish(axis, document["machine"]["name"], "measured ms", "predicted ms")

        rows = [list(self.documents.values())]
        return _panels("scaling_check", rows, draw, styles, self.paths, (4.2, 3.4))


def longest(spent: Mapping[str, float]) -> str:
    """Return the label with most time, and its share."""
    name = max(spent, key=lambda one: spent[one])
    return f"{name}, {spent[name] / sum(spent.values()):.0%}"


def number(value: float) -> str:
    """Return a number with two digits, or with all before the point."""
    if value >= 1e6:
        power = len(f"{value:.0f}") - 1
        lead = f"{value / 10**power:.2g}"
        return f"10^{power}" if lead == "1" else f"{lead} * 10^{power}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def table(head: list[str], rows: list[list[str]], words: int) -> str:
    """Return a table whose first columns are words, and the others numbers."""
    ruler = ["---"] * words + ["--:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ruler, *rows])


def main() -> None:
    """Make the page and its plots."""
    page, path = Page(), DOCS / PAGE
    path.write_text(page.made(path.read_text("utf-8")), encoding="utf-8")
    for name, draw in page.pictures().items():
        (DOCS / f"plots/{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()

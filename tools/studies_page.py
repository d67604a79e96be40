"""Make docs/studies_h200.md and its plots from the documents in docs/data/studies/h200.

    python tools/studies_page.py

reads a document of `oclab study NAME --scale full` for each study of a report. Answers are drawn
from the rows by the studies, so they have the current wording of `oclab study`. A
second run changes nothing.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.stored import Results, read_results
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import PartResult
from opencl_lab.lab.studies.outcome import Outcome
from opencl_lab.lab.studies.stored import stored_outcome

DOCS = Path(__file__).parents[1] / "docs"
PAGE = "studies_h200.md"
SHOWN = {"dgemm": "dgemm-workers"}
"""The plot of a study; the first one where it is not named."""
STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.sans-serif": ["DejaVu Sans"],
}
DATE = re.compile(r"\s*<dc:date>.*?</dc:date>", re.DOTALL)
HEAD = """# Studies at full scale on an NVIDIA H200

Each of the source reports' studies, as `oclab study NAME --scale full` measured it: the answers to
its questions, a plot, and the times. `tools/studies_page.py` makes this page from the documents in
[data/studies/h200](data/studies/h200); nothing in it is written by hand. What the studies are is
said in [studies](studies.md), how they measure in [measuring](measuring.md).

- Times are milliseconds of a public call on NumPy arrays, so those of the device contain the copies
  there and back. In brackets are those of its kernels alone. All are medians; a star follows where
  one call was timed only.
- `-` stands for what was not run; the answers say why. The results of all others were checked.
- Where answers say *level within noise*, the intervals of the two times overlap.
- All figures are of {dates}, with opencl_lab as it was then: later changes are not in them.
"""


def read_studies(folder: Path) -> dict[str, tuple[Results, Outcome]]:
    """Return the documents in a folder, each with its outcome, in the order of the catalogue."""
    found = {}
    for name in STUDIES:
        path = folder / f"{name}.json"
        if path.is_file():
            results = read_results(path)
            found[name] = results, stored_outcome(results)
    return found


def page(studies: Mapping[str, tuple[Results, Outcome]]) -> str:
    """Return the page."""
    dates = sorted(
        {results.mapping("environment")["started"][:10] for results, _ in studies.values()}
    )
    sections = [HEAD.rstrip("\n").format(dates=" and ".join(dates)), _printed(studies)]
    sections += [section(results, outcome) for results, outcome in studies.values()]
    return "\n\n".join(sections) + "\n"


def _printed(studies: Mapping[str, tuple[Results, Outcome]]) -> str:
    """Return what the reports printed beside what was measured, as far as it is known."""
    lines = [f"- {item.sentence}" for _, outcome in studies.values() for item in outcome.printed]
    text = "The studies that are not named here have no figure of a report that is known."
    return "\n".join(["## What the reports printed", "", *lines, "", text])


def section(results: Results, outcome: Outcome) -> str:
    """Return what the page says of a study."""
    name, shows = outcome.study.name, outcome.study.shows
    words = " ".join(str(word) for word in results.content["arguments"])
    parts = [f"## {name}", f"{shows[:1].upper()}{shows[1:]}.", f"    oclab {words}"]
    parts += [_where(results, outcome), f"![{shows}](plots/studies/{name}.svg)"]
    if outcome.gaps:
        parts.append("\n".join(["**This study is not complete.**", *outcome.gaps]))
    for question, answer in outcome.answers:
        parts.append("\n".join([f"**{question}**", "", *(f"- {line}" for line in answer)]))
    if outcome.notes:
        parts.append("\n".join(["**What was left out?**", "", *(f"- {n}" for n in outcome.notes)]))
    parts += [_table(result) for result in outcome.parts]
    return "\n\n".join(parts)


def _where(results: Results, outcome: Outcome) -> str:
    """Return the line about device, processor, compiler and date."""
    there = results.mapping("environment")
    compiler = there.get("compiler") or {}
    packages = there.get("packages") or {}
    built = f"gcc {str(compiler['version']).split()[-1]}, {' '.join(compiler['flags'])}"
    return (
        f"{outcome.device}; C and libraries on {there['processors']} processors, {there['cpu']}; "
        f"`{built}`; {there['python']}, NumPy {packages['numpy']}; {there['started'][:10]}."
    )


def _table(result: PartResult) -> str:
    """Return the times of a part: a line for each implementation, a column for each size."""
    points = [str(point) for point, _ in result.rows]
    names = list(dict.fromkeys(row.implementation for _, rows in result.rows for row in rows))
    lines = [
        f"Milliseconds of {result.part.name}:",
        "",
        f"| implementation | {' | '.join(points)} |",
        f"|---|{'--:|' * len(points)}",
    ]
    for name in names:
        cells = (_cell(name, rows) for _, rows in result.rows)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(name: str, rows: Sequence[Measurement]) -> str:
    row = next((row for row in rows if row.implementation == name), None)
    if row is None or row.status == "unavailable":
        return "-"
    if not row.ok or row.total_ms is None:
        return f"failed: {row.status}"
    kernels = f" ({plain(row.kernel_ms)})" if row.kernel_ms else ""
    return plain(row.total_ms.median) + "\\*" * (row.total_ms.runs == 1) + kernels


def plot(outcome: Outcome) -> str:
    """Return the picture of a study as SVG."""
    name = outcome.study.name
    draws = outcome.plots
    draw = draws.get(f"{SHOWN.get(name, '')}.png") or next(iter(draws.values()))
    with tempfile.TemporaryDirectory(prefix="oclab-") as folder:
        path = Path(folder, "plot.svg")
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
            draw(path)
        text = DATE.sub("", path.read_text(encoding="utf-8"))
    return "\n".join(line.rstrip() for line in text.split("\n"))


def made(docs: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files with what they ought to hold."""
    studies = read_studies(docs / "data/studies/h200")
    yield docs / PAGE, page(studies)
    for name, (_, outcome) in studies.items():
        yield docs / f"plots/studies/{name}.svg", plot(outcome)


def main(docs: Path = DOCS) -> int:
    """Write the page and the plots; those that would not change are left alone."""
    for path, text in made(docs):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(docs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

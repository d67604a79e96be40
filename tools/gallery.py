"""Make the gallery of docs/gallery.md: run its commands and store their plots.

    python tools/gallery.py [--only NAME,NAME] [--folder DIR]

`ENTRIES` is the gallery. All commands run in one scratch folder (`--folder` keeps it), with its own
tuned configurations; reduced copies of the pictures go to docs/gallery, and the entry between the
markers on the page is rewritten, with the date and the device in the command's document. Other
entries are not changed. It takes two minutes on two cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/gallery.md"
WIDTH, COLOURS = 1200, 64  # of the pictures that are kept: pixels, and how many differ
RATE = 8000  # samples per second
SCREEN = (1440, 900)  # pixels of a window of the browser: wide enough for two plots
EDGE = 16  # pixels of the page around what is shown of it
FIRST_PLOTS = """(() => {
  const boxes = [...document.querySelectorAll("figure")].map((x) => x.getBoundingClientRect());
  const row = boxes.filter((box) => box.top === boxes[0].top);
  const all = document.querySelector("#summary").closest("section").getBoundingClientRect();
  const height = Math.max(...row.map((box) => box.bottom)) - all.top;
  return [all.left + window.scrollX, all.top + window.scrollY, all.width, height];
})()"""
"""From the summary to the end of the first row of plots: left, top, width, height."""


@dataclass(frozen=True)
class Entry:
    """One place of the gallery.

    Parameters
    ----------
    name : str
        Of the markers and of the picture that is kept.
    title : str
    command : str
        What is run, as a user types it; a line for each of several commands.
    file : str
        The picture that is taken of its output, in the scratch folder.
    caption : str
        One sentence.
    prepare : callable, optional
        Makes the input in the scratch folder.
    """

    name: str
    title: str
    command: str
    file: str
    caption: str
    prepare: Callable[[Path], None] | None = None

    @property
    def picture(self) -> str:
        """The file that is kept, as the page names it."""
        return f"gallery/{self.name}.png"


class Missing(Exception):
    """A command failed, or a picture is not there; the text says which."""


def write_scene(folder: Path) -> None:
    """Draw scene.png: discs, bars and a slope of grey, in 480 x 320 pixels."""
    width, height = 480, 320
    slope = np.linspace(40, 120, width).astype(np.uint8)
    image = Image.fromarray(np.tile(slope, (height, 1)))
    draw = ImageDraw.Draw(image)
    draw.ellipse((40, 50, 200, 210), fill=230)
    draw.ellipse((95, 105, 145, 155), fill=20)
    for index in range(6):
        left = 250 + 36 * index
        draw.rectangle((left, 60 + 22 * index, left + 16, 270), fill=250 - 30 * index)
    draw.polygon([(60, 290), (150, 230), (230, 300)], fill=180)
    image.save(folder / "scene.png")


def write_chord(folder: Path) -> None:
    """Write chord.wav: a second of three plucked strings of 262, 330 and 392 Hz, with overtones."""
    time = np.arange(RATE) / RATE
    parts = (
        np.exp(-(2 + overtone) * time) * np.sin(2 * np.pi * hertz * overtone * time) / overtone**2
        for hertz in (262, 330, 392)
        for overtone in range(1, 6)
    )
    samples = (0.25 * 32767 * sum(parts)).astype(np.int16)
    wavfile = importlib.import_module("scipy.io.wavfile")
    wavfile.write(folder / "chord.wav", RATE, samples)


ENTRIES = (
    Entry(
        "sort",
        "Sorts by size",
        "oclab bench sort --sizes 100,1000,10000,100000,1000000 --algorithm all "
        "--against numpy,c:omp --out sort",
        "sort/time.png",
        "Every sort of ours beside NumPy and OpenMP, with spreads; rings mark the sizes from which "
        "on one of them is faster than another.",
    ),
    Entry(
        "gemm",
        "Matrix products below the roofline",
        "oclab bench gemm --sizes 64,128,256,512,1024,2048 --against blas,c:omp --out gemm",
        "gemm/roofline.png",
        "GFLOP/s of float32 products by what they compute per byte, beside BLAS and OpenMP; the "
        "ceilings are the peaks that `oclab doctor` measured.",
    ),
    Entry(
        "spectrum",
        "The spectrum of a chord",
        "oclab dft chord.wav --plot spectrum.png",
        "spectrum.png",
        "A file of sound: three plucked strings of 262, 330 and 392 Hz with four overtones each.",
        write_chord,
    ),
    Entry(
        "edges",
        "Edges of a picture",
        "oclab conv2d scene.png --filter sobel --plot edges.png",
        "edges.png",
        "A drawn scene, its edges by a Sobel filter, and the times of all that computed them.",
        write_scene,
    ),
    Entry(
        "tuning",
        "A search for the fastest kernel",
        "oclab tune gemm --size 512 --time-limit 30 --plot tuning.png",
        "tuning.png",
        "Each dot is a configuration of the kernel that was built, checked and timed.",
    ),
    Entry(
        "workers",
        "Speed-up by workers",
        "oclab study dgemm --out studies",
        "studies/dgemm/dgemm-workers.png",
        "Products in double precision by threads of OpenMP and, where installed, ranks of MPI.",
    ),
    Entry(
        "report",
        "All of it on one page",
        "oclab bench conv2d --sizes 256,512,1024 --against c:seq,scipy --out measured/conv2d\n"
        "oclab bench sort --sizes 1000,10000,100000 --against c:seq,numpy --out measured/sort\n"
        "oclab report measured -o report.html",
        "report.png",
        "A report in a browser: how many times as long others take, by size, and plots.",
    ),
)


def run_entry(entry: Entry, folder: Path) -> str:
    """Run a command, keep its picture, and return the line about where and when it ran.

    Raises
    ------
    Missing
        If the command fails, or its picture is not there.
    """
    if entry.prepare is not None:
        entry.prepare(folder)
    around = {**os.environ, "OCLAB_DATA_DIR": str(folder / ".data"), "PYTHONPATH": str(ROOT)}
    documents = []
    for command in entry.command.split("\n"):
        words = [sys.executable, "-m", "opencl_lab", *shlex.split(command)[1:], "--json"]
        done = subprocess.run(
            words, cwd=folder, env=around, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Missing(f"{entry.name}: {command}: status {done.returncode}\n{done.stderr}")
        documents.append(json.loads(done.stdout))
    if entry.name == "report":
        take_screenshot(folder / "report.html", folder / entry.file)
    if not (folder / entry.file).is_file():
        raise Missing(f"{entry.name}: {entry.command} wrote no {entry.file}")
    keep(folder / entry.file, PAGE.parent / entry.picture)
    return where(documents[0])


def take_screenshot(page: Path, target: Path) -> None:
    """Show a page in a headless Chromium and write a picture of its summary and first plots.

    Raises
    ------
    Missing
        If there is no Chromium.
    """
    spec = importlib.util.spec_from_file_location("browser", ROOT / "tests/browser.py")
    assert spec is not None and spec.loader is not None
    browser = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(browser)
    found = browser.find_browser()
    if found is None:
        raise Missing("report: there is no Chromium")
    window = browser.Browser(found)
    try:
        window.open(page, *SCREEN)
        x, y, width, height = window.run(FIRST_PLOTS)
        clip = {
            "x": x - EDGE,
            "y": y - EDGE,
            "width": width + 2 * EDGE,
            "height": height + 2 * EDGE,
        }
        window.screenshot(target, clip)
    finally:
        window.close()


def keep(source: Path, target: Path) -> None:
    """Copy a picture, no wider than `WIDTH` and of few colours, on white as it was."""
    with Image.open(source) as opened:
        image = Image.new("RGB", opened.size, "white")
        image.paste(opened, mask=opened.getchannel("A") if "A" in opened.getbands() else None)
    if image.width > WIDTH:
        size = (WIDTH, round(image.height * WIDTH / image.width))
        image = image.resize(size, Image.Resampling.LANCZOS)
    target.parent.mkdir(exist_ok=True)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


def where(document: Mapping[str, Any]) -> str:
    """Return the device and the day that a document names; today, where it names none."""
    environment = document.get("environment") or {}
    started = environment.get("started") or datetime.now(timezone.utc).isoformat()
    device = document.get("device")
    parts = [] if device is None else [device["name"], f"{device['platform']} {device['driver']}"]
    if environment.get("processors"):
        parts.append(f"{environment['processors']} processors")
    return ", ".join([*parts, str(started)[:10]])


def markers(entry: Entry) -> tuple[str, str]:
    """Return what stands before and after a place on the page."""
    return f"<!-- made by tools/gallery.py: {entry.name} -->", f"<!-- end of {entry.name} -->"


def section(entry: Entry, line: str) -> str:
    """Return a place on the page with its markers."""
    begin, end = markers(entry)
    return "\n".join(
        [
            begin,
            f"## {entry.title}\n",
            f"![{entry.title}]({entry.picture})\n",
            f"{entry.caption}\n",
            f"```\n{entry.command}\n```\n",
            f"({line})",
            end,
        ]
    )


def with_sections(text: str, lines: Mapping[str, str]) -> str:
    """Return the page with some places written anew, in the order of `ENTRIES`.

    Places of other names that are on the page are kept where they are in `ENTRIES`.
    """
    made = []
    for entry in ENTRIES:
        begin, end = map(re.escape, markers(entry))
        there = re.search(f"{begin}.*?{end}", text, re.DOTALL)
        if entry.name in lines:
            made.append(section(entry, lines[entry.name]))
        elif there is not None:
            made.append(there[0])
    head = text.partition("<!-- made by")[0].rstrip()
    return "\n\n".join([head, *made]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all entries or some; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--only", help="names of entries, with commas between")
    parser.add_argument("--folder", type=Path, help="where the commands run, to be kept")
    given = parser.parse_args(arguments)
    names = [entry.name for entry in ENTRIES] if given.only is None else given.only.split(",")
    unknown = set(names) - {entry.name for entry in ENTRIES}
    if unknown:
        parser.error(f"no entry is called {', '.join(sorted(unknown))}")
    lines, failed = {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = (Path(scratch) if given.folder is None else given.folder).resolve()
        folder.mkdir(exist_ok=True)
        for entry in (entry for entry in ENTRIES if entry.name in names):
            try:
                lines[entry.name] = run_entry(entry, folder)
                print(f"{entry.name}: {lines[entry.name]}", flush=True)
            except Missing as error:
                failed = 1
                print(f"gallery: {error}", file=sys.stderr, flush=True)
    PAGE.write_text(with_sections(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())

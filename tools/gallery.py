"""Make the pictures of docs/gallery.md again.

    python tools/gallery.py [NAME ...]

Runs the commands and the Python that the page shows, all in one scratch folder with its own tuned
configurations; for the photo it takes scikit-image.
Of each place the file that its comment names is kept, reduced, as docs/gallery/NAME.png, and the
line about where and when it ran is written anew. It takes two minutes on two cores.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from scipy.io import wavfile

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/gallery.md"
PLACE = re.compile(
    r"<!-- picture: (?P<file>\S+) -->\n!\[[^]]*\]\(gallery/(?P<name>\w+)\.png\)\n"
    r".*?```(?P<language>\w*)\n(?P<commands>.*?)\n```\n\n\((?P<where>[^\n]*)\)\n",
    re.DOTALL,
)
WIDTH, COLOURS = 1200, 64  # of the pictures that are kept: pixels, and how many differ
RATE = 8000  # samples per second
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def write_inputs(folder: Path) -> None:
    """Draw scene.png, discs, bars and a slope of grey; play chord.wav, three plucked strings."""
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
    time = np.arange(RATE) / RATE
    parts = (
        np.exp(-(2 + overtone) * time) * np.sin(2 * np.pi * hertz * overtone * time) / overtone**2
        for hertz in (262, 330, 392)
        for overtone in range(1, 6)
    )
    wavfile.write(folder / "chord.wav", RATE, (0.25 * 32767 * sum(parts)).astype(np.int16))


def run_place(place: re.Match[str], folder: Path) -> str:
    """Run the commands of a place, keep its picture, and return where and when they ran."""
    around = {**os.environ, "OCLAB_DATA_DIR": str(folder / ".data"), "PYTHONPATH": str(ROOT)}
    documents, wanted = [], folder / place["file"]

    def output(*words: str) -> str:
        done = subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{place['name']}: {shlex.join(words)}: {done.stderr}")
        return done.stdout

    commands = place["commands"]
    if place["language"] == "python":
        output(sys.executable, "-c", commands)
        commands = "oclab devices"  # for where it ran
    for command in commands.splitlines():
        words = [sys.executable, "-m", "opencl_lab", *shlex.split(command)[1:], "--json"]
        documents.append(json.loads(output(*words)))
    page = wanted.with_suffix(".html")
    if page.is_file():  # a report, as a browser shows it
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            raise SystemExit(f"{place['name']}: there is no Chromium")
        how = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1440,1250"]
        subprocess.run([browser, *how, f"--screenshot={wanted}", page.as_uri()], check=True)
    if not wanted.is_file():
        raise SystemExit(f"{place['name']}: {place['commands']} wrote no {place['file']}")
    keep(wanted, PAGE.parent / f"gallery/{place['name']}.png")
    return where(documents[0])


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


def main(names: list[str]) -> None:
    """Make all places anew, or those that are named."""
    text = PAGE.read_text(encoding="utf-8")
    places = list(PLACE.finditer(text))
    if unknown := set(names) - {place["name"] for place in places}:
        raise SystemExit(f"no place is called {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        write_inputs(folder)
        for place in reversed(places):
            if not names or place["name"] in names:
                line = run_place(place, folder)
                print(f"{place['name']}: {line}", flush=True)
                begin, end = place.span("where")
                text = text[:begin] + line + text[end:]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

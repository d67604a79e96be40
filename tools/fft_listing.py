"""Make a listing of transforms of awkward and random lengths, as docs/data has them, of a study.

    oclab study peers --scale full --part fft_awkward,fft_random --out measured
    python tools/fft_listing.py measured/peers/results.json "2 cores of an AMD EPYC (Zen 3)"

prints the CSV file. Times are medians of public calls, all implementations by turns.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from performance_data import OURS, series_of

from opencl_lab.lab.engine.stored import Result, read_results

PARTS = ("fft_awkward", "fft_random")
METHOD = "Public calls, complex64, all libraries by turns in one process; medians in milliseconds"


def main() -> None:
    """Print the listing of a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("device", help="what the listing calls the device")
    arguments = parser.parse_args()
    results = read_results(arguments.results)
    batches: dict[int, list[Result]] = {}
    for row in results.rows:
        if row.leading.get("part") in PARTS:
            batches.setdefault(row.leading["batch"], []).append(row)
    series = {batch: series_of(rows, "n") for batch, rows in sorted(batches.items())}
    found = [(n, batch, times) for batch, some in series.items() for n, times in some]
    others = sorted({name for *_, times in found for name in times} - {OURS})
    names = [OURS, *others]
    head = {
        "device": arguments.device,
        "date": results.mapping("environment")["started"][:10],
        "method": METHOD,
        "command": f"oclab study peers --scale full --part {','.join(PARTS)}",
        "compared": "; ".join(f"{name} ms" for name in names),
    }
    for key, value in head.items():
        print(f"# {key}: {value}")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["points", "rows", *(f"{name} ms" for name in names)])
    for n, batch, times in sorted(found, key=lambda item: item[:2]):
        cells = (times[name].median if name in times else None for name in names)
        writer.writerow([n, batch, *("" if cell is None else f"{cell:.3g}" for cell in cells)])


if __name__ == "__main__":
    main()

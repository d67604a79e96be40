"""Merge exported tuning results into those shipped with the package.

    python tools/merge_tuning.py [EXPORT.json ...] [--dry-run]

On each machine whose results are to be shipped:

    oclab tune gemm --size 1024         # as often as there are problems worth it
    oclab tuning export EXPORT.json     # its own entries, format overlay

then here, in a checkout, with all exports. `opencl_lab/tuned/data/*.json`, a file for each
operation, is rewritten: existing entries, then the exports in order; a later entry replaces an
earlier one for the same algorithm, device, layout and size. Entries for other kernels than those of
this checkout are left out, also existing ones: tune again before a release. Without an export it
only removes such entries, and creates missing files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opencl_lab.core.paths import write_json
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.registry import operations
from opencl_lab.tuned.entry import Entry, document, parse
from opencl_lab.tuned.storage import shipped_file


def merged(operation: str, entries: list[Entry]) -> tuple[list[Entry], list[str]]:
    """Return the entries of an operation to ship, and a sentence on each that is left out."""
    digests = {
        item.name: kernel_digest(item.templates) for item in operations()[operation].algorithms
    }
    kept: dict[object, Entry] = {}
    left_out = []
    for entry in entries:
        if entry.operation != operation:
            continue
        what = f"{operation} by {entry.algorithm}, {dict(entry.sizes)}, {entry.device.name}"
        if entry.algorithm not in digests:
            left_out.append(f"{what}: there is no such algorithm")
        elif entry.digest != digests[entry.algorithm]:
            left_out.append(f"{what}: the kernel has changed since")
        else:
            kept[entry.identity] = entry
    return list(kept.values()), left_out


def main() -> int:
    """Merge, say what was done, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exports", nargs="*", type=Path, metavar="EXPORT.json")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    options = parser.parse_args()
    new = [entry for path in options.exports for entry in parse(path.read_text("utf-8"))]
    unknown = sorted({entry.operation for entry in new} - set(operations()))
    if unknown:
        print(f"left out, no such operation: {', '.join(unknown)}")
    for operation in operations():
        path = shipped_file(operation)
        old = parse(path.read_text("utf-8"), shipped=True) if path.exists() else []
        entries, left_out = merged(operation, [*old, *new])
        for sentence in left_out:
            print(f"left out: {sentence}")
        print(f"{path.name}: {len(old)} entries before, {len(entries)} now")
        if not options.dry_run:
            write_json(path, document(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())

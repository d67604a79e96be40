"""Merge exported tuning results into those shipped with the package.

    python tools/merge_tuning.py [EXPORT.json ...] [--dry-run]

On each machine whose results are to be shipped:

    python tools/tune_shipped.py --export EXPORT.json

then here, in a checkout, with all exports. `opencl_lab/tuned/data/*.json`, a file for each
operation, is rewritten: existing entries, then the exports in order; a later entry replaces an
earlier one for the same algorithm, device, layout and size. What has no effect is left out, also of
existing entries: of another version of the algorithm, not allowed, the built-in configuration, or
of an algorithm that ``auto`` does not take for this problem on this device. Records of the devices
are kept in `tests/data/shipped_devices.json`; exports by `oclab tuning export` need one there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.paths import write_json
from opencl_lab.core.records import sound_fields
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.task import problem_with
from opencl_lab.tuned.database import CHANGED
from opencl_lab.tuned.entry import Entry, document, parse
from opencl_lab.tuned.storage import shipped_file

RECORDS = Path(__file__).parents[1] / "tests" / "data" / "shipped_devices.json"


def devices_of(records: Iterable[Mapping[str, Any]]) -> dict[str, Device]:
    """Return devices by their keys."""
    found = (Device(**sound_fields(Device, record)) for record in records)
    return {device.key: device for device in found}


def known_devices() -> dict[str, Device]:
    """Return the devices of shipped entries."""
    return devices_of(json.loads(RECORDS.read_text("utf-8"))["devices"])


def refusal(entry: Entry, devices: Mapping[str, Device]) -> str | None:
    """Return why an entry is not shipped, or None if it is."""
    operation, device = operations()[entry.operation], devices.get(entry.device.key)
    if entry.algorithm not in operation.solver.registry:
        return "there is no such algorithm"
    if device is None:
        return "there is no record of its device"
    algorithm = operation.algorithm(entry.algorithm).on(device.kind)
    if entry.version != algorithm.version:
        return CHANGED
    problem = problem_with(operation, {**entry.layout, **entry.sizes})
    chosen = operation.choose(problem, device).name
    if chosen != entry.algorithm:
        return f"auto takes {chosen}"
    if algorithm.allowed(problem, device, entry.config) != entry.config:
        return "the configuration is not allowed"
    if entry.config == algorithm.default_config(problem, device):
        return "it is the built-in configuration"
    return None


def main() -> int:
    """Merge, say what was done, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exports", nargs="*", type=Path, metavar="EXPORT.json")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    options = parser.parse_args()
    texts = [path.read_text("utf-8") for path in options.exports]
    new, devices = [entry for text in texts for entry in parse(text)], known_devices()
    for text in texts:
        devices |= devices_of(json.loads(text).get("devices", ()))
    unknown = sorted({entry.operation for entry in new} - set(operations()))
    if unknown:
        print(f"left out, no such operation: {', '.join(unknown)}")
    used = set()
    for operation in operations():
        path = shipped_file(operation)
        old = parse(path.read_text("utf-8"), shipped=True) if path.exists() else []
        kept: dict[object, Entry] = {}
        for entry in (*old, *new):
            if entry.operation != operation:
                continue
            reason = refusal(entry, devices)
            if reason is None:
                kept[entry.identity] = entry
                used.add(entry.device.key)
            else:
                about = f"{operation} by {entry.algorithm}, {entry.layout}, {entry.sizes}"
                print(f"left out: {about}, {entry.device.name}: {reason}")
        print(f"{path.name}: {len(old)} entries before, {len(kept)} now")
        if kept and not options.dry_run:
            write_json(path, document(kept.values()))
        elif not options.dry_run:
            path.unlink(missing_ok=True)
    if not options.dry_run:
        records = [devices[key].as_dict() for key in sorted(used)]
        write_json(RECORDS, {"devices": records})
    return 0


if __name__ == "__main__":
    sys.exit(main())

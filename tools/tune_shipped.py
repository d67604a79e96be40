"""Tune the problems with shipped entries, and merge the exports of several machines into these.

    python tools/tune_shipped.py [--device SPEC] [--only TEXT,TEXT...] [--time-limit SECONDS]
        [--total SECONDS] [--export EXPORT.json]         on each machine
    python tools/tune_shipped.py --merge [EXPORT.json ...] [--dry-run]         here, in a checkout

Of each problem the algorithm that ``auto`` takes is tuned, and each winner is printed beside the
built-in configuration. The most valuable problems come first, so that `--total` leaves out the
least valuable. The export, which is rewritten after each, has the winners that are faster than the
built-in configuration beyond noise, and records of their devices. Both times are from the finals,
where they take turns. As with `oclab tune`, the user's database is used: set an empty
`OCLAB_DATA_DIR`.

`--merge` rewrites `opencl_lab/tuned/data/*.json`, a file for each operation: existing entries, then
the exports in order; a later entry replaces an earlier one for the same algorithm, device, layout
and size. What has no effect is left out, also of existing entries: of another version of the
algorithm, not allowed, the built-in configuration, or of an algorithm that ``auto`` does not take
for this problem on this device. Records of the devices are kept in
`tests/data/shipped_devices.json`; exports by `oclab tuning export` need one there.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.core.paths import write_json
from opencl_lab.core.records import sound_fields
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.registry import get_operation, operations
from opencl_lab.lab.tuning.result import TuneResult
from opencl_lab.lab.tuning.task import TuningTask, problem_with
from opencl_lab.lab.tuning.tuner import SearchOptions, run_tuning
from opencl_lab.tuned.database import CHANGED
from opencl_lab.tuned.entry import Entry, document, entry_of, parse
from opencl_lab.tuned.storage import shipped_file

RECORDS = Path(__file__).parents[1] / "tests" / "data" / "shipped_devices.json"
Task = tuple[str, dict[str, Any]]
"""Operation, and options of the problem or fields that no option sets, such as `value_bytes`."""


def _product(m: int, n: int, k: int, **more: Any) -> Task:
    return "gemm", {"m": m, "n": n, "k": k, **more}


def _square(size: int, **more: Any) -> Task:
    return _product(size, size, size, **more)


def _filtered(size: int, ksize: int) -> Task:
    return "conv2d", {"size": size, "ksize": ksize}


def _keys(n: int, dtype: str, **more: Any) -> Task:
    return "sort", {"n": n, "dtype": dtype, **more}


def _transforms(n: int, batch: int) -> Task:
    return "dft", {"n": n, "batch": batch}


ON_GPUS: tuple[Task, ...] = (  # the first 21 take 8 minutes
    _keys(1 << 26, "int64"),
    _keys(10_000_000, "float64"),
    _keys(10_000, "int64", rows=1000),
    _keys(1 << 24, "int64", value_bytes=8),
    _keys(1 << 24, "int64", indices=True),
    _keys(1 << 24, "int32"),
    _product(64, 4096, 4096),
    _product(64, 64, 1 << 20),
    _square(1000),
    _square(1024),
    _square(1024, dtype="float64"),
    _filtered(4096, 3),
    _filtered(4096, 7),
    _filtered(4096, 15),
    _filtered(1024, 3),
    _transforms(1024, 1 << 14),
    _transforms(1 << 14, 1024),
    _transforms(1 << 20, 16),
    _transforms(1000, 1 << 14),
    _square(4096),
    _square(2048),
    _square(4096, dtype="float64"),
    _square(4096, precision="3xtf32"),
    _square(4096, dtype="float16"),
    _square(4096, precision="tf32"),
    _square(512),
    _square(3000),
    _square(8192),
    _product(8192, 1024, 1024),
    _product(1, 4096, 4096),
    _product(4096, 1, 4096),
    _keys(1_000_000, "int64"),
    _keys(1_000_000, "float64"),
    _keys(50_000, "int32"),
    _transforms(256, 1 << 16),
    _transforms(1009, 1 << 14),
    _transforms(1 << 16, 1),
    _transforms(1 << 20, 1),
)
ON_CPUS: tuple[Task, ...] = (
    _square(1024),
    _square(512),
    _square(1000),
    _square(1024, dtype="float64"),
    _square(2048),
    _product(64, 4096, 4096),
    _filtered(1024, 3),
    _filtered(1024, 7),
    _filtered(1024, 15),
    _keys(1_000_000, "int64"),
    _keys(10_000_000, "int32"),
    _keys(1_000_000, "int64", value_bytes=8),
    _transforms(1024, 1024),
    _transforms(1 << 20, 1),
    _product(1, 4096, 4096),
    _product(4096, 1, 4096),
    _filtered(4096, 3),
    _filtered(4096, 7),
    _square(4096),
)
ENDING = 2.0
"""Seconds that a run takes beside its limit: processes that start and end."""


def line(result: TuneResult, size: str) -> str:
    """Return what became of a problem."""
    task, made = result.task, len(result.evaluations) - result.resumed
    best, default = (
        "none" if one is None or not one.times_ms else f"{number(one.time_ms)} ms"
        for one in (result.best, result.default)
    )
    gain = "" if result.speedup is None else f", {result.speedup:.2f}x"
    failed = "".join(f", {count} {status}" for status, count in result.failures.items())
    said = f"{task.operation.name} {task.algorithm_name} {size}: built-in {default}, tuned {best}"
    return f"{said}{gain}; {made} tried in {result.seconds:.0f} s{failed}"


def wanted(device: Device, only: str) -> list[tuple[Task, str]]:
    """Return the problems for a kind of device, each with its sizes as a text."""
    tasks = ON_CPUS if device.kind == "cpu" else ON_GPUS
    named = [
        (task, " ".join(f"{name}={value}" for name, value in task[1].items())) for task in tasks
    ]
    texts = [text.strip() for text in only.split(",")]
    return [
        (task, size) for task, size in named if any(text in f"{task[0]} {size}" for text in texts)
    ]


def task_of(name: str, given: Mapping[str, Any], device: Device) -> TuningTask:
    """Return the task for what ``auto`` takes, where calls on host arrays run."""
    operation = get_operation(name)
    options = {option.name for option in operation.options}
    set_by_options = {key: value for key, value in given.items() if key in options}
    others = {key: value for key, value in given.items() if key not in options}
    problem = replace(operation.problem(**operation.with_defaults(set_by_options)), **others)
    selected = operation.side(problem, device)
    return TuningTask(operation, operation.choose(problem, selected).name, problem, selected)


def gains(result: TuneResult) -> bool:
    """Return whether the winner is another one than the built-in, faster beyond the noise."""
    best, default = result.best, result.default
    return bool(
        result.stored and best and default and default.times_ms and best.config != default.config
    )


def entry(result: TuneResult) -> Entry:
    """Return what is shipped of a winner."""
    task, best = result.task, result.best
    assert best is not None
    version = task.algorithm.version
    about = (task.device, task.operation.name, task.algorithm_name, version, task.problem)
    return entry_of(*about, best.config, best.time_ms)


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


def merge(paths: Sequence[Path], dry_run: bool) -> None:
    """Merge exports into the shipped entries, and say what was done."""
    texts = [path.read_text("utf-8") for path in paths]
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
        if kept and not dry_run:
            write_json(path, document(kept.values()))
        elif not dry_run:
            path.unlink(missing_ok=True)
    if not dry_run:
        records = [devices[key].as_dict() for key in sorted(used)]
        write_json(RECORDS, {"devices": records})


def main() -> None:
    """Tune everything on one device, or merge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--only", default="", help="parts of 'OPERATION SIZES', with commas")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each problem")
    parser.add_argument("--total", type=float, default=math.inf, help="seconds for all together")
    parser.add_argument("--export", type=Path, help="where the winners that gain go")
    merging = parser.add_argument_group("merging")
    merging.add_argument("--merge", nargs="*", type=Path, metavar="EXPORT.json")
    merging.add_argument("--dry-run", action="store_true", help="say what would be done")
    arguments = parser.parse_args()
    if arguments.merge is not None:
        merge(arguments.merge, arguments.dry_run)
        return
    device, begin = select_device(arguments.device), time.monotonic()
    print(f"{device}, {time.strftime('%Y-%m-%d')}", flush=True)
    winners: list[Entry] = []
    devices: dict[str, Device] = {}
    for (operation, problem), size in wanted(device, arguments.only):
        left = arguments.total - (time.monotonic() - begin) - ENDING
        limit = min(arguments.time_limit, left)
        if limit < arguments.time_limit / 2:
            print(f"not tuned, no time left: {operation} {size}", flush=True)
            continue
        try:
            task = task_of(operation, problem, device)
            result = run_tuning(task, SearchOptions(time_limit=limit))
        except OclabError as error:
            print(f"not tuned: {operation} {size}: {error}", flush=True)
            continue
        print(line(result, size), flush=True)
        for note in result.notes:
            print(f"note: {note}")
        if gains(result):
            winners.append(entry(result))
            devices[task.device.key] = task.device
        if arguments.export is not None:
            records = [found.as_dict() for found in devices.values()]
            write_json(arguments.export, {**document(winners), "devices": records})
        if result.stopped == "interrupted":
            break
    print(f"{len(winners)} winners are faster than the built-in configurations beyond the noise")


if __name__ == "__main__":
    main()

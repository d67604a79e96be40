"""The tuned configurations of this user and of this package, and which of them to use.

The user's are in `data_dir("tuning")`, one file per operation; those of the package in
`tuned/data`. `opencl_lab.ops.solver` looks them up in every call. So this module is in a layer
below it, and knows problems and algorithms only by the protocols here and in `entry`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from opencl_lab.core.device import Device
from opencl_lab.core.paths import data_dir
from opencl_lab.core.space import Config
from opencl_lab.tuned import storage
from opencl_lab.tuned.entry import Entry, Origin, Sized, entry_of, parts_of, to_bucket
from opencl_lab.tuned.storage import (
    overlay_file,
    read_entries,
    say_once,
    shipped_file,
    update_entries,
)

LEVELS = (
    "this device and size",
    "this device, nearest size",
    "same architecture",
    "same vendor and kind",
)
REACH = 1
"""Most doublings between any size of an entry and of a problem for which it is used."""
SAME_SIZE = 0.1
"""Doublings within which sizes are nearly the same, for algorithms that choose by a model else."""
CHECK_INTERVAL = 1.0
"""Seconds between checks whether a file has changed."""
MAX_REMEMBERED = 4096
CHANGED = "the kernel has changed since"

T = TypeVar("T")


class Tunable(Protocol):
    """What this module needs of an algorithm, such as `opencl_lab.ops.solver.Algorithm`."""

    @property
    def name(self) -> str:
        """Its name within the operation."""

    @property
    def version(self) -> int:
        """The version of what its configurations mean."""


@dataclass(frozen=True)
class Match:
    """An entry that may be used for a problem, and how near it is: one of `LEVELS`."""

    entry: Entry
    level: str


def enabled() -> bool:
    """Return whether tuned configurations are used; they are not with ``OCLAB_TUNING=off``."""
    return os.environ.get("OCLAB_TUNING", "").lower() not in ("off", "0", "no")


# ------------------------------------------------------------------ changes


def _update(path: Path, change: Callable[[list[Entry]], Iterable[Entry]]) -> None:
    """Change the entries of one of the user's files, and drop what was read from it."""
    try:
        update_entries(path, change)
    finally:
        forget()


def add(new: Iterable[Entry], replace: bool = True) -> int:
    """Add entries to the user's own, and return how many.

    They replace older ones of the same identity; with `replace`, newer ones, too.
    """
    by_operation: dict[str, list[Entry]] = {}
    for entry in new:
        by_operation.setdefault(entry.operation, []).append(entry)
    count = 0

    def merge(added: list[Entry], old: list[Entry]) -> Iterable[Entry]:
        nonlocal count
        kept = {entry.identity: entry for entry in old}
        for entry in added:
            present = kept.get(entry.identity)
            if replace or present is None or present.timestamp < entry.timestamp:
                kept[entry.identity] = entry
                count += 1
        return kept.values()

    for operation, added in by_operation.items():
        _update(overlay_file(operation), partial(merge, added))
    return count


def store(
    device: Device,
    operation: str,
    algorithm: Tunable,
    problem: Sized,
    config: Mapping[str, Any],
    time_ms: float,
) -> None:
    """Store a configuration, with all parameters, that was found to be correct and the fastest."""
    about = (device, operation, algorithm.name, algorithm.version, problem)
    add([entry_of(*about, Config(config), time_ms)])


def clear(chosen: Callable[[Entry], bool] = lambda entry: True) -> int:
    """Delete the user's entries for which `chosen` is true, and return how many."""
    removed = 0

    def keep(old: list[Entry]) -> list[Entry]:
        nonlocal removed
        kept = [entry for entry in old if not chosen(entry)]
        removed += len(old) - len(kept)
        return kept

    for path in sorted(data_dir("tuning").glob("*.json")):
        _update(path, keep)
    return removed


def entries() -> list[Entry]:
    """Return all entries, the user's own first."""
    found = []
    for folder, shipped in ((data_dir("tuning"), False), (storage.SHIPPED, True)):
        for path in sorted(folder.glob("*.json")):
            found += _table(path, shipped)
    return found


# ------------------------------------------------------------------- lookup


def staleness(entry: Entry, device: Device, version: int) -> str | None:
    """Return why `entry` must no longer be used on `device`, or None if it may be.

    `version` is the present one of the algorithm.
    """
    if entry.version != version:
        return CHANGED
    origin = Origin.of(device)
    # Shipped entries were not measured here; another driver only makes them less near.
    if not entry.shipped and entry.device.unit == origin.unit and entry.device.key != origin.key:
        return f"the driver was {entry.device.driver} and is {origin.driver}"
    return None


def same_unit(entry: Entry, device: Device) -> bool:
    """Return whether `entry` was measured on `device`, with this driver or another."""
    return entry.device.unit == Origin.of(device).unit


def _level(entry: Entry, origin: Origin, distance: float) -> int | None:
    """Return the index in `LEVELS`, or None for a device that is too different."""
    there = entry.device
    if there.key == origin.key:
        return 0 if distance == 0 else 1
    if there.kind != origin.kind:
        return None
    if origin.architecture and there.architecture == origin.architecture:
        return 2
    if origin.kind == "cpu" and there.architecture and origin.architecture:
        return None  # other vector widths need other register blocking
    # On CPUs the OpenCL platform counts as the vendor, as the compiler is part of it.
    return 3 if there.vendor == origin.vendor or there.platform == origin.platform else None


def _entries_of(operation: str, algorithm: str) -> Iterator[Entry]:
    """Yield the entries of an algorithm, the user's own first."""
    for path, shipped in ((overlay_file(operation), False), (shipped_file(operation), True)):
        for entry in _table(path, shipped):
            if (entry.operation, entry.algorithm) == (operation, algorithm):
                yield entry


def lookup(
    device: Device,
    operation: str,
    algorithm: str,
    problem: Sized,
    version: int,
    modelled: bool = False,
    own: bool = False,
) -> list[Match]:
    """Return the entries that may serve a problem on a device, the best first.

    The order is: this device and size, this device at the nearest size, the same architecture, the
    same vendor and kind. Within each of these, the user's entries come before shipped ones, and
    nearer sizes first. Entries are left out if their layout differs, if they are more than `REACH`
    doublings away, or if they are stale; if the user's entries of this device are all stale, and
    no shipped one serves, a warning is logged once.

    `version` is the present one of the algorithm. With `modelled`, only entries of this
    device and nearly this size are used. `own` says that it is a kernel of the user, for which no
    command can be named.
    """
    layout, sizes = parts_of(problem)
    bucket, origin = to_bucket(sizes), Origin.of(device)
    found: list[tuple[tuple[float, ...], Match]] = []
    stale: list[str] = []
    for entry in _entries_of(operation, algorithm):
        named = entry.sizes.keys() == sizes.keys()  # the sizes that problems have in this version
        steps = [abs(a - b) for a, b in zip(entry.bucket, bucket, strict=True)] if named else []
        if named and (entry.layout != layout or max(steps, default=0) > REACH):
            continue
        distance = entry.doublings(sizes) if named else []
        if modelled and not (same_unit(entry, device) and max(distance, default=0.0) <= SAME_SIZE):
            continue
        reason = staleness(entry, device, version)
        if reason is not None:
            if entry.device.unit == origin.unit and not entry.shipped:
                stale.append(reason)
            continue
        level = _level(entry, origin, sum(steps))
        if named and level is not None:
            order = (level, entry.shipped, sum(steps), sum(distance), entry.time_ms)
            found.append((order, Match(entry, LEVELS[level])))
    found.sort(key=lambda item: item[0])
    matches = [match for _, match in found]
    if stale and not any(match.entry.device.key == origin.key for match in matches):
        command = f"run `oclab tune {operation} --algorithm {algorithm}`"
        say_once(
            f"the tuning of {operation} by {algorithm} on {device.name} is stale and not used: "
            f"{stale[0]}; {'tune it' if own else command} again"
        )
    return matches


def relatives(
    device: Device, operation: str, algorithm: str, problem: Sized, version: int
) -> list[Entry]:
    """Return entries of other sizes, layouts and devices that a tuner may start from.

    The nearest come first: by device, then by the number of layout fields that differ, then by
    size. Stale entries, and those of another kind of device, are left out.
    """
    (layout, sizes), origin = parts_of(problem), Origin.of(device)
    found: list[tuple[tuple[float, ...], Entry]] = []
    for entry in _entries_of(operation, algorithm):
        if entry.device.kind != origin.kind or entry.sizes.keys() != sizes.keys():
            continue
        if staleness(entry, device, version) is None:
            distance = sum(entry.doublings(sizes))
            level = _level(entry, origin, distance)
            unlike = sum(entry.layout.get(name) != value for name, value in layout.items())
            found.append(((len(LEVELS) if level is None else level, unlike, distance), entry))
    found.sort(key=lambda item: item[0])
    return [entry for _, entry in found]


# ------------------------------------------------------------------- memory
#
# Tables are read once and lookups are cached, until a file changes.

_lock = threading.RLock()
_tables: dict[Path, tuple[Any, list[Entry]]] = {}
_remembered: dict[Hashable, Any] = {}
_when_changed: list[Callable[[], None]] = []
_generation = 0
_next_check = 0.0


def _stamp(path: Path) -> Any:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _table(path: Path, shipped: bool) -> list[Entry]:
    with _lock:
        stamp = _stamp(path)
        if path not in _tables or _tables[path][0] != stamp:
            _tables[path] = (stamp, read_entries(path, shipped))
        return _tables[path][1]


def forget() -> None:
    """Drop all that is cached in memory; files are read again when needed."""
    global _generation
    with _lock:
        _tables.clear()
        _remembered.clear()
        _generation += 1
    for function in _when_changed:
        function()


def call_when_changed(function: Callable[[], None]) -> None:
    """Register a function to call once tuned configurations may have changed."""
    _when_changed.append(function)


def generation() -> int:
    """Return a number that changes when tuned configurations may have changed; see `remember`."""
    global _next_check
    if time.monotonic() >= _next_check:
        with _lock:
            _next_check = time.monotonic() + CHECK_INTERVAL
            if any(stamp != _stamp(path) for path, (stamp, _) in _tables.items()):
                forget()
    return _generation


def remember(key: Hashable, make: Callable[[], T]) -> T:
    """Return the cached result of `make` for `key`, as long as no file has changed since.

    Changes by this process take effect at once, those by other processes within a second.
    """
    before = generation()
    full = (os.environ.get("OCLAB_DATA_DIR"), key)
    with suppress(KeyError):
        remembered: T = _remembered[full]
        return remembered
    made = make()
    with _lock:
        if before == _generation:  # else the result may depend on replaced entries
            if len(_remembered) >= MAX_REMEMBERED:
                _remembered.clear()
            _remembered[full] = made
    return made

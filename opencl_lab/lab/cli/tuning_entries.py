"""Selection of stored configurations and runs, and whether they are still current."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import click

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import choose_device, devices
from opencl_lab.drivers.driver_records import KINDS
from opencl_lab.lab.cli.common import add_options, settings
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.journal import JournalRun, runs
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import Entry

STYLES = {"current": "green", "stale": "yellow", "unknown": "dim"}
SELECTION_OPTIONS = (
    click.option("--operation", metavar="NAME", help="Limit to this operation."),
    click.option("--algorithm", metavar="NAME", help="Limit to this algorithm."),
)


def selection_options(command: Any) -> Any:
    """Add the options that select entries and runs."""
    return add_options(command, SELECTION_OPTIONS)


class Chosen:
    """A selection of entries and runs by operation, algorithm and the global option ``--device``.

    Unknown names are refused, so that a typing error does not look like an empty list.
    """

    def __init__(self, operation: str | None, algorithm: str | None):
        self._operation, self._algorithm = operation, algorithm
        entries, self._logged = database.entries(), runs()
        there = {name: {item.name for item in op.algorithms} for name, op in operations().items()}
        every: list[Entry | JournalRun] = [*entries, *self._logged]
        for stored in every:
            there.setdefault(stored.operation, set()).add(stored.algorithm)
        if operation is not None and operation not in there:
            raise InvalidProblem(_unknown("operation", operation, there))
        names = there.values() if operation is None else (there[operation],)
        algorithms = set().union(*names)
        if algorithm is not None and algorithm not in algorithms:
            if operation is None:
                raise InvalidProblem(_unknown("algorithm", algorithm, algorithms))
            has = ", ".join(sorted(algorithms))
            raise InvalidProblem(f"{operation} has no algorithm {algorithm!r}; it has: {has}")
        self._keys = _device_keys(settings().device, entries, self._logged)

    def __call__(self, stored: Entry | JournalRun) -> bool:
        """Return whether an entry or run is selected."""
        key = stored.device if isinstance(stored, JournalRun) else stored.device.key
        return (
            self._operation in (None, stored.operation)
            and self._algorithm in (None, stored.algorithm)
            and (self._keys is None or key in self._keys)
        )

    def runs(self) -> list[JournalRun]:
        """Return the selected runs, the latest last."""
        return [run for run in self._logged if self(run)]


def _unknown(what: str, name: str, names: Iterable[str]) -> str:
    return f"there is no {what} {name!r}; there are: {', '.join(sorted(names))}"


def _device_keys(
    spec: str | None, entries: Sequence[Entry], logged: Sequence[JournalRun]
) -> set[str] | None:
    """Return the keys of the devices that `spec` matches, here or elsewhere; None: all."""
    if spec is None:
        return None
    texts = {run.device: run.device for run in logged}
    for entry in entries:
        origin = entry.device
        texts[origin.key] = f"{origin.name}, {origin.platform}, {origin.vendor}"
    for device in devices():
        texts[device.key] = f"{device.name}, {device.platform}, {device.vendor}"
    text = spec.strip().lower()
    if re.fullmatch(r"\d+(:\d+)?", text):
        return {choose_device(text).device.key}
    found = {
        key
        for key, named in texts.items()
        if (key.startswith(f"{text}/") if text in KINDS else text in named.lower())
    }
    if not found and text not in KINDS:
        names = {named.partition(",")[0] for named in texts.values()}
        raise InvalidProblem(_unknown("device", spec, names))
    return found


def state_of(entry: Entry) -> tuple[str, str]:
    """Return whether an entry is ``current``, ``stale`` or ``unknown``, and why."""
    operation = operations().get(entry.operation)
    algorithms = {item.name: item for item in operation.algorithms} if operation else {}
    if entry.algorithm not in algorithms:
        return "unknown", "there is no such algorithm here"
    version = algorithms[entry.algorithm].on(entry.device.kind).version
    if entry.version != version:  # also on a device that is not here
        return "stale", database.CHANGED
    reasons = {
        device.key: database.staleness(entry, device, version)
        for device in devices()
        if database.same_unit(entry, device)
    }
    reason = None if None in reasons.values() else next(iter(reasons.values()), None)
    return ("current", "") if reason is None else ("stale", reason)


def pairs_text(values: Any) -> str:
    """Return names and values as one line of text."""
    return " ".join(f"{name}={value}" for name, value in values.items())

"""`oclab tuning`: tuned configurations: list, show, export, import and clear."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.errors import InvalidProblem, OclabError
from opencl_lab.core.paths import check_target, data_dir
from opencl_lab.core.wording import counted, plain
from opencl_lab.drivers.discovery import devices
from opencl_lab.lab.cli.common import (
    add_options,
    answer,
    global_options,
    option,
    settings,
)
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.options import given_of, problem_options
from opencl_lab.lab.cli.results import write_text
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.journal import JournalRun, runs, to_t4
from opencl_lab.lab.tuning.kernel_text import read_text
from opencl_lab.lab.tuning.task import problem_with
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import Entry, Origin, parse
from opencl_lab.tuned.entry import document as entries_document

OPTIONAL_COLUMNS = ("layout", "from", "ms", "state")
"""Columns that are omitted on narrow terminals, in this order."""
DEVICE_WIDTH = 10  # at least; a driver's version may be wrapped anywhere
STYLES = {"current": "green", "stale": "yellow", "unknown": "dim"}
SELECTION_OPTIONS = (
    option("--operation NAME", "Limit to this operation."),
    option("--algorithm NAME", "Limit to this algorithm."),
)


@click.group("tuning", cls=LazyGroup)
@global_options
def tuning_command() -> None:
    """Show, export, import or clear the tuned configurations found by `oclab tune`.

    With OCLAB_TUNING=off in the environment, none of them is used.
    """


# ---------------------------------------------------------------- selection


def _selection_options(command: Any) -> Any:
    """Add the options that select entries and runs."""
    return add_options(command, SELECTION_OPTIONS)


class _Chosen:
    """A selection of entries and runs by operation, algorithm and the global option ``--device``.

    Unknown names are refused, so that a typing error does not look like an empty list.
    """

    def __init__(self, operation: str | None, algorithm: str | None):
        self._operation, self._algorithm = operation, algorithm
        self._logged = runs()
        known = {(name, a.name) for name, op in operations().items() for a in op.algorithms}
        stored: list[Entry | JournalRun] = [*database.entries(), *self._logged]
        known |= {(item.operation, item.algorithm) for item in stored}
        _check_name("operation", operation, (name for name, _ in known))
        within = (name for of, name in known if operation in (None, of))
        _check_name("algorithm", algorithm, within)
        given = settings().device is not None
        self._unit = Origin.of(settings().select().device).unit if given else None

    def __call__(self, stored: Entry | JournalRun) -> bool:
        """Return whether an entry or run is selected; the version of the driver does not matter."""
        key = stored.device if isinstance(stored, JournalRun) else stored.device.key
        return (
            self._operation in (None, stored.operation)
            and self._algorithm in (None, stored.algorithm)
            and self._unit in (None, key.rpartition("/")[0])
        )

    def own(self) -> list[Entry]:
        """Return the user's selected entries."""
        return [entry for entry in database.entries() if not entry.shipped and self(entry)]

    def runs(self) -> list[JournalRun]:
        """Return the selected runs, the latest last."""
        return [run for run in self._logged if self(run)]


def _check_name(what: str, name: str | None, names: Iterable[str]) -> None:
    known = set(names)
    if name is not None and name not in known:
        there = ", ".join(sorted(known))
        raise InvalidProblem(f"there is no {what} {name!r}; there are: {there}")


def _state_of(entry: Entry) -> tuple[str, str]:
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


def _pairs_text(values: Any) -> str:
    """Return names and values as one line of text."""
    return " ".join(f"{name}={value}" for name, value in values.items())


# --------------------------------------------------------------------- list


@tuning_command.command("list")
@_selection_options
@global_options
def list_command(operation: str | None, algorithm: str | None) -> None:
    """List the stored entries: your own, then those of the package."""
    wanted = _Chosen(operation, algorithm)
    found = [(entry, *_state_of(entry)) for entry in database.entries() if wanted(entry)]
    rows = [
        {
            **entry.as_dict(),
            "source": "shipped" if entry.shipped else "user",
            "state": state,
            "reason": reason,
        }
        for entry, state, reason in found
    ]
    answer("tuning list", path=str(data_dir("tuning")), entries=rows)
    settings().say(str(data_dir("tuning")))
    if found:
        settings().show(_entries_table(found), OPTIONAL_COLUMNS)
    else:
        settings().say("nothing is tuned yet; run `oclab tune OPERATION`")


def _problem_text(entry: Entry) -> str:
    """Return the problem of an entry, or its fields if they do not make one."""
    values = {**entry.layout, **entry.sizes}
    operation = operations().get(entry.operation)
    if operation is not None and values.keys() <= {f.name for f in fields(operation.problem())}:
        with suppress(InvalidProblem):
            return problem_with(operation, values).title
    return _pairs_text(values)


def _entries_table(found: list[tuple[Entry, str, str]]) -> Table:
    table = Table()
    for name in ("operation", "algorithm", "problem", "ms", "device", "from", "state"):
        least = DEVICE_WIDTH if name == "device" else None
        table.add_column(name, overflow="fold", min_width=least)
    for entry, state, reason in found:
        state_text = Text(state, style=STYLES[state])
        if reason:
            state_text.append(f": {reason}")
        table.add_row(
            entry.operation,
            entry.algorithm,
            _problem_text(entry),
            number(entry.time_ms),
            Text(f"{entry.device.name}, {entry.device.driver}"),
            "package" if entry.shipped else "you",
            state_text,
        )
        if settings().verbose:
            table.add_row("", "", Text(str(entry.config)))
    return table


# --------------------------------------------------------------------- show


@tuning_command.group(
    "show", cls=LazyGroup, operation_place="opencl_lab.lab.cli.tuning:show_operation_command"
)
@global_options
def show_command() -> None:
    """Show which configuration is used for a problem on the chosen device, and why."""


def show_operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that shows the configurations of one operation."""

    @click.command(
        chosen.name, help=f"Show the configurations in use for a problem of {chosen.name}."
    )
    @problem_options(chosen)
    @global_options
    def command(**given: Any) -> None:
        problem = chosen.problem(**chosen.with_defaults(given_of(given)))
        device = settings().select().device
        rows = []
        for algorithm in chosen.algorithms:
            reason = algorithm.supports(problem, device)
            if reason is not None:
                rows.append({"algorithm": algorithm.name, "origin": "unsupported", "why": reason})
                continue
            found = algorithm.tuned(problem, device)
            row: dict[str, Any] = {
                "algorithm": algorithm.name,
                "origin": "built-in default",
                "config": dict(algorithm.configure(problem, device)),
            }
            if found is not None:
                entry = found[1].entry
                row["origin"] = "shipped" if entry.shipped else "user"
                row["why"] = found[1].level
                row["entry"] = entry.as_dict()
            rows.append(row)
        answer(
            "tuning show",
            operation=chosen.name,
            device=device.as_dict(),
            problem=problem.as_dict(),
            results=rows,
        )
        settings().say(f"device: {device}")
        for row in rows:
            settings().say(*_row_lines(row))

    return command


def _row_lines(row: dict[str, Any]) -> list[str]:
    text = f"{row['algorithm']}: {row['origin']}"
    text += f" ({row['why']})" if "why" in row else ""
    if "entry" in row:
        entry = row["entry"]
        text += f", tuned with {_pairs_text(entry['sizes'])} on {entry['device']['name']}"
        text += f" to {plain(entry['time_ms'])} ms"
    return [text, *([f"  {json.dumps(row['config'])}"] if "config" in row else [])]


# ------------------------------------------------------------ export, import


@tuning_command.command("export")
@click.argument("file", type=click.Path())
@option(
    "--format",
    "overlay: your tuned entries, for opencl_lab elsewhere; t4: the latest search.",
    to="form",
    type=click.Choice(["overlay", "t4"]),
    default="overlay",
)
@_selection_options
@global_options
def export_command(file: str, form: str, operation: str | None, algorithm: str | None) -> None:
    """Write tuned entries, or a whole search, to FILE."""
    path = Path(file)
    check_target(path)
    wanted = _Chosen(operation, algorithm)
    if form == "overlay":
        own = wanted.own()
        if not own:
            raise InvalidProblem("there is nothing to export; run `oclab tune OPERATION` first")
        text = json.dumps(entries_document(own), indent=1, sort_keys=True)
        what: dict[str, Any] = {"entries": len(own)}
    else:
        found = wanted.runs()
        if not found:
            raise InvalidProblem("there is no run to export; run `oclab tune OPERATION` first")
        text = to_t4(found[-1])
        what = {"journal": str(found[-1].path), "evaluations": len(found[-1].evaluations)}
    write_text(path, text)
    answer("tuning export", path=str(path), format=form, **what)
    settings().say(f"written to {path}: {_pairs_text(what)}")


@tuning_command.command("import")
@click.argument("file", type=click.Path())
@global_options
def import_command(file: str) -> None:
    """Read FILE, which `oclab tuning export` wrote: entries newer than yours are taken over."""
    path = Path(file)
    text = read_text(path)
    try:
        new = parse(text)
    except (ValueError, OclabError) as error:
        raise InvalidProblem(f"cannot import {path}: {error}") from error
    taken = database.add(new, replace=False)
    states = [_state_of(entry)[0] for entry in new]
    count = {state: states.count(state) for state in STYLES}
    answer("tuning import", entries=len(new), taken=taken, **count)
    kept = len(new) - taken
    settings().say(
        f"{counted(taken, 'entry', 'entries')} taken over"
        + "".join(f", {states.count(s)} {s}" for s in ("stale", "unknown") if s in states)
        + (f"; {kept} not newer than yours left out" if kept else "")
    )


# -------------------------------------------------------------------- clear


@tuning_command.command("clear")
@_selection_options
@option("--stale", "Limit to stale entries.", to="only_stale", is_flag=True)
@option("--runs", "Also delete the journals of searches.", to="with_runs", is_flag=True)
@option("--yes", "Delete without asking.", is_flag=True)
@global_options
def clear_command(
    operation: str | None, algorithm: str | None, only_stale: bool, with_runs: bool, yes: bool
) -> None:
    """Delete your own tuned entries; those of the package stay."""
    wanted = _Chosen(operation, algorithm)

    def meant(entry: Entry) -> bool:
        return wanted(entry) and (not only_stale or _state_of(entry)[0] == "stale")

    own = [entry for entry in wanted.own() if meant(entry)]
    journals = wanted.runs() if with_runs else []
    if (own or journals) and not yes:
        _ask(_deleted_text(len(own), len(journals) if with_runs else None))
    removed = database.clear(meant)
    for run in journals:
        try:
            run.path.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise InvalidProblem(f"cannot delete {run.path}: {reason}") from error
    answer("tuning clear", entries=removed, runs=len(journals))
    settings().say(f"{_deleted_text(removed, len(journals) if with_runs else None)} deleted")


def _deleted_text(entries: int, journals: int | None) -> str:
    found = counted(entries, "entry", "entries")
    return found if journals is None else f"{found} and {counted(journals, 'journal')}"


def _ask(what: str) -> None:
    """Ask whether to delete, and exit unless the answer is yes; UsageError without a terminal."""
    if settings().json or sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(f"no terminal to ask whether to delete {what}: give --yes")
    if not click.confirm(f"delete {what}?", err=True):
        settings().say("nothing was deleted")
        raise click.exceptions.Exit(0)

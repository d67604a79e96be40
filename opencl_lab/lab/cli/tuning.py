"""`oclab tuning`: tuned configurations: list, show, export, import and clear."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import fields
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import data_dir
from opencl_lab.core.wording import counted, plain
from opencl_lab.lab.cli.common import document, global_options, print_json, settings
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.options import given_of, problem_options
from opencl_lab.lab.cli.tuning_entries import (
    STYLES,
    Chosen,
    pairs_text,
    selection_options,
    state_of,
)
from opencl_lab.lab.cli.tuning_exchange import export_command, import_command
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.table import number
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.task import problem_with
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import Entry

OPTIONAL_COLUMNS = ("layout", "from", "ms", "state")
"""Columns that are omitted on narrow terminals, in this order."""
DEVICE_WIDTH = 10  # at least; a driver's version may be wrapped anywhere


@click.group("tuning", cls=LazyGroup)
@global_options
def tuning_command() -> None:
    """Show, export, import or clear the tuned configurations found by `oclab tune`.

    With OCLAB_TUNING=off in the environment, none of them is used.
    """


# --------------------------------------------------------------------- list


@tuning_command.command("list")
@selection_options
@click.option("--runs", "with_runs", is_flag=True, help="Also list the journals of searches.")
@global_options
def list_command(operation: str | None, algorithm: str | None, with_runs: bool) -> None:
    """List the stored entries: your own, then those of the package."""
    wanted = Chosen(operation, algorithm)
    found = [(entry, *state_of(entry)) for entry in database.entries() if wanted(entry)]
    journals = wanted.runs() if with_runs else []
    if settings().json:
        rows = [
            {
                **entry.as_dict(),
                "source": "shipped" if entry.shipped else "user",
                "state": state,
                "reason": reason,
            }
            for entry, state, reason in found
        ]
        logged = [
            {
                "file": str(run.path),
                "operation": run.operation,
                "algorithm": run.algorithm,
                "problem": dict(run.problem),
                "device": run.device,
                "evaluations": len(run.evaluations),
                "best_ms": None if run.best is None else run.best.time_ms,
            }
            for run in journals
        ]
        more = {"runs": logged} if with_runs else {}
        print_json(document("tuning list", path=str(data_dir("tuning")), entries=rows, **more))
        return
    settings().say(str(data_dir("tuning")))
    if found:
        settings().show(_entries_table(found), OPTIONAL_COLUMNS)
    else:
        settings().say("nothing is tuned yet; run `oclab tune OPERATION`")
    for run in journals:
        best = "none correct" if run.best is None else f"best {plain(run.best.time_ms)} ms"
        settings().say(
            f"{run.path}: {run.operation} {run.algorithm} {pairs_text(run.problem)} "
            f"on {run.device}: "
            f"{counted(len(run.evaluations), 'evaluation')}, {best}"
        )


def _problem_text(entry: Entry) -> str:
    """Return the problem of an entry, or its fields if they make no valid problem."""
    values = {**entry.layout, **entry.sizes}
    operation = operations().get(entry.operation)
    if operation is not None:
        names = {item.name for item in fields(operation.problem())}
        with suppress(InvalidProblem):
            return problem_with(operation, {n: values[n] for n in values if n in names}).title
    return pairs_text(values)


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
        if settings().json:
            print_json(
                document(
                    "tuning show",
                    operation=chosen.name,
                    device=device.as_dict(),
                    problem=problem.as_dict(),
                    results=rows,
                )
            )
            return
        settings().say(f"device: {device}")
        for row in rows:
            settings().say(*_row_lines(row))

    return command


def _row_lines(row: dict[str, Any]) -> list[str]:
    text = f"{row['algorithm']}: {row['origin']}"
    text += f" ({row['why']})" if "why" in row else ""
    if "entry" in row:
        entry = row["entry"]
        text += f", tuned with {pairs_text(entry['sizes'])} on {entry['device']['name']}"
        text += f" to {plain(entry['time_ms'])} ms"
    return [text, *([f"  {json.dumps(row['config'])}"] if "config" in row else [])]


# -------------------------------------------------------------------- clear


@tuning_command.command("clear")
@selection_options
@click.option("--stale", "only_stale", is_flag=True, help="Limit to stale entries.")
@click.option("--runs", "with_runs", is_flag=True, help="Also delete the journals of searches.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@global_options
def clear_command(
    operation: str | None, algorithm: str | None, only_stale: bool, with_runs: bool, yes: bool
) -> None:
    """Delete your own tuned entries; those of the package stay."""
    wanted = Chosen(operation, algorithm)

    def meant(entry: Entry) -> bool:
        return wanted(entry) and (not only_stale or state_of(entry)[0] == "stale")

    own = [entry for entry in database.entries() if not entry.shipped and meant(entry)]
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
    if settings().json:
        print_json(document("tuning clear", entries=removed, runs=len(journals)))
        return
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


for _command in (export_command, import_command):
    tuning_command.add_command(_command)

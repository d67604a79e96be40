"""`oclab tuning`: the tuned configurations that are in use, and their exchange with others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from opencl_lab.cli.common import document, global_options, print_json, progress_bar, settings
from opencl_lab.cli.lazy import LazyGroup
from opencl_lab.cli.operation import problem_options
from opencl_lab.device import KINDS, choose_device, devices
from opencl_lab.errors import InvalidProblem, OclabError
from opencl_lab.operation import Operation
from opencl_lab.paths import check_target, data_dir, write_target
from opencl_lab.registry import operations
from opencl_lab.template import kernel_digest
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import Entry, parse
from opencl_lab.tuned.entry import document as entries_document
from opencl_lab.tuning.adopt import Adoption, adopt, problem_with, task_of
from opencl_lab.tuning.formats import read_recording
from opencl_lab.tuning.interchange import Recording, to_kernel_tuner, to_t4
from opencl_lab.tuning.runs import Run, read_run, runs
from opencl_lab.wording import counted

__all__ = ["show_operation_command", "tuning_command"]

WRITERS: dict[str, Callable[[Recording], str]] = {"kernel-tuner": to_kernel_tuner, "t4": to_t4}
OPTIONAL_COLUMNS = ("layout", "from", "ms", "state")
"""What a narrow terminal does without, in this order."""
DEVICE_WIDTH = 10  # at least; a driver's version may be broken anywhere
STYLES = {"current": "green", "stale": "yellow", "unknown": "dim"}


@click.group("tuning")
@global_options
def tuning_command() -> None:
    """Show, exchange or clear tuned configurations; `oclab tune` makes them.

    With OCLAB_TUNING=off in the environment none of them is used.
    """


def _which(command: Any) -> Any:
    """Add the options that choose among entries and runs."""
    for option in (
        click.option("--algorithm", metavar="NAME", help="Only of this algorithm."),
        click.option("--operation", metavar="NAME", help="Only of this operation."),
    ):
        command = option(command)
    return command


class _Chosen:
    """The entries and runs of an operation, an algorithm and the global option ``--device``.

    Raises
    ------
    InvalidProblem
        For a name that nothing here has, so that a slip does not look like an empty list.
    """

    def __init__(self, operation: str | None, algorithm: str | None):
        self._operation, self._algorithm = operation, algorithm
        entries, logged = database.entries(), runs()
        known = {name: {item.name for item in op.algorithms} for name, op in operations().items()}
        every: list[Entry | Run] = [*entries, *logged]
        for stored in every:
            known.setdefault(stored.operation, set()).add(stored.algorithm)
        if operation is not None and operation not in known:
            raise InvalidProblem(_unknown("operation", operation, known))
        names = known.values() if operation is None else (known[operation],)
        algorithms = set().union(*names)
        if algorithm is not None and algorithm not in algorithms:
            if operation is None:
                raise InvalidProblem(_unknown("algorithm", algorithm, algorithms))
            has = ", ".join(sorted(algorithms))
            raise InvalidProblem(f"{operation} has no algorithm {algorithm!r}; it has: {has}")
        self._keys = _device_keys(settings().device, entries, logged)

    def __call__(self, stored: Entry | Run) -> bool:
        """Return whether this entry or run is meant."""
        key = stored.device if isinstance(stored, Run) else stored.device.key
        return (
            self._operation in (None, stored.operation)
            and self._algorithm in (None, stored.algorithm)
            and (self._keys is None or key in self._keys)
        )

    def runs(self) -> list[Run]:
        """Return the runs that are meant, the latest last."""
        return [run for run in runs() if self(run)]


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    return f"there is no {what} {name!r}; there are: {', '.join(sorted(known))}"


def _device_keys(
    spec: str | None, entries: Sequence[Entry], logged: Sequence[Run]
) -> set[str] | None:
    """Return the keys of the devices that `spec` means, here or elsewhere; None: all."""
    if spec is None:
        return None
    words = {run.device: run.device for run in logged}
    for entry in entries:
        origin = entry.device
        words[origin.key] = f"{origin.name}, {origin.platform}, {origin.vendor}"
    for device in devices():
        words[device.key] = f"{device.name}, {device.platform}, {device.vendor}"
    text = spec.strip().lower()
    if re.fullmatch(r"\d+(:\d+)?", text):
        return {choose_device(text).device.key}
    found = {
        key
        for key, named in words.items()
        if (key.startswith(f"{text}/") if text in KINDS else text in named.lower())
    }
    if not found and text not in KINDS:
        names = {named.partition(",")[0] for named in words.values()}
        raise InvalidProblem(_unknown("device", spec, names))
    return found


def _state(entry: Entry) -> tuple[str, str]:
    """Return whether an entry is ``current``, ``stale`` or ``unknown``, and why."""
    operation = operations().get(entry.operation)
    algorithms = {item.name: item for item in operation.algorithms} if operation else {}
    if entry.algorithm not in algorithms:
        return "unknown", "there is no such algorithm here"
    digest = kernel_digest(algorithms[entry.algorithm].templates)
    if entry.digest != digest:
        return "stale", "the kernel has changed since"
    reasons = {
        device.key: database.staleness(entry, device, digest)
        for device in devices()
        if database.same_unit(entry, device)
    }
    reason = None if None in reasons.values() else next(iter(reasons.values()), None)
    return ("current", "") if reason is None else ("stale", reason)


# --------------------------------------------------------------------- list


@tuning_command.command("list")
@_which
@click.option("--runs", "with_runs", is_flag=True, help="List the tuner's journals as well.")
@global_options
def list_command(operation: str | None, algorithm: str | None, with_runs: bool) -> None:
    """List what is stored: your own entries, then those that came with the package."""
    wanted = _Chosen(operation, algorithm)
    found = [(entry, *_state(entry)) for entry in database.entries() if wanted(entry)]
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
        settings().say("nothing is tuned yet; `oclab tune OPERATION` does it")
    for run in journals:
        best = "none correct" if run.best is None else f"best {run.best.time_ms:.4g} ms"
        settings().say(
            f"{run.path}: {run.operation} {run.algorithm} {_pairs(run.problem)} on {run.device}: "
            f"{counted(len(run.evaluations), 'evaluation')}, {best}"
        )


def _pairs(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _problem_text(entry: Entry) -> str:
    """Return what an entry was tuned for; the bare fields where they make no problem here."""
    values = {**entry.layout, **entry.sizes}
    operation = operations().get(entry.operation)
    if operation is not None:
        known = {item.name for item in fields(operation.problem())}
        with suppress(InvalidProblem):
            return problem_with(operation, {n: values[n] for n in values if n in known}).title
    return _pairs(values)


def _entries_table(found: list[tuple[Entry, str, str]]) -> Table:
    table = Table()
    for name in ("operation", "algorithm", "problem", "ms", "device", "from", "state"):
        least = DEVICE_WIDTH if name == "device" else None
        table.add_column(name, overflow="fold", min_width=least)
    for entry, state, reason in found:
        told = Text(state, style=STYLES[state])
        if reason:
            told.append(f": {reason}")
        table.add_row(
            entry.operation,
            entry.algorithm,
            _problem_text(entry),
            f"{entry.time_ms:.4g}",
            Text(f"{entry.device.name}, {entry.device.driver}"),
            "package" if entry.shipped else "you",
            told,
        )
        if settings().verbose:
            table.add_row("", "", Text(str(entry.config)))
    return table


# --------------------------------------------------------------------- show


@tuning_command.group(
    "show", cls=LazyGroup, operation_home="opencl_lab.cli.tuning:show_operation_command"
)
@global_options
def show_command() -> None:
    """Show which configuration a problem gets on the chosen device, and why."""


def show_operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that shows what one operation uses."""

    @click.command(chosen.name, help=f"Show the configurations in use for a {chosen.name}.")
    @problem_options(chosen)
    @global_options
    def command(**given: Any) -> None:
        options = {name: value for name, value in given.items() if value is not None}
        problem = chosen.problem(**chosen.with_defaults(options))
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
            settings().say(_row_text(row))

    return command


def _row_text(row: dict[str, Any]) -> str:
    text = f"{row['algorithm']}: {row['origin']}"
    text += f" ({row['why']})" if "why" in row else ""
    if "entry" in row:
        entry = row["entry"]
        text += f", tuned with {_pairs(entry['sizes'])} on {entry['device']['name']}"
        text += f" to {entry['time_ms']:.4g} ms"
    return text + (f"\n  {json.dumps(row['config'])}" if "config" in row else "")


# ----------------------------------------------------------- export, import


@tuning_command.command("export")
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice([*WRITERS, "overlay"]),
    default="overlay",
    show_default=True,
    help="overlay: your tuned entries, for opencl_lab elsewhere; the others: a whole run.",
)
@_which
@click.option("--journal", metavar="PATH", help="The run to export.  [default: the latest]")
@global_options
def export_command(
    file: str, form: str, operation: str | None, algorithm: str | None, journal: str | None
) -> None:
    """Write tuned entries, or a run of the tuner, to FILE."""
    path = Path(file)
    check_target(path)
    wanted = _Chosen(operation, algorithm)
    if form == "overlay":
        if journal is not None:
            raise click.UsageError("--journal is of no use for the format overlay")
        own = [entry for entry in database.entries() if not entry.shipped and wanted(entry)]
        if not own:
            raise InvalidProblem("there is nothing to export; `oclab tune OPERATION` makes entries")
        text = json.dumps(entries_document(own), indent=1, sort_keys=True)
        what: dict[str, Any] = {"entries": len(own)}
    else:
        found = [read_run(Path(journal))] if journal else wanted.runs()
        if not found:
            raise InvalidProblem("there is no run to export; `oclab tune OPERATION` makes one")
        run = found[-1]
        text = WRITERS[form](run.recording())
        what = {"journal": str(run.path), "evaluations": len(run.evaluations)}
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if settings().json:
        print_json(document("tuning export", path=str(path), format=form, **what))
        return
    settings().say(f"written to {path}: {_pairs(what)}")


@tuning_command.command("import")
@click.argument("file")
@click.option("--operation", metavar="NAME", help="What a foreign file is about.")
@click.option("--algorithm", metavar="NAME", help="The algorithm whose parameters it has.")
@click.option(
    "--problem",
    "changes",
    metavar="NAME=VALUE",
    multiple=True,
    help="A field of the problem that it does not say, such as dtype=float64.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Try so many of its configurations.",
)
@click.option("--timeout", type=float, help="Seconds for each of them to build, and to run.")
@click.option("--replace", is_flag=True, help="Take over entries that are older than yours, too.")
@global_options
def import_command(
    file: str,
    operation: str | None,
    algorithm: str | None,
    changes: tuple[str, ...],
    limit: int,
    timeout: float | None,
    replace: bool,
) -> int:
    """Read FILE: an exported overlay, a cache of Kernel Tuner, T4 results, or JSON of CLBlast.

    Entries of an overlay are taken over. From the others the fastest
    configurations are tried on the chosen device, each checked in a process of
    its own, and the best is kept if it beats what is in use.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidProblem(f"cannot read {path}: {reason}") from error
    if '"oclab-tuning/' in text:
        return _import_overlay(path, text, replace)
    recording = read_recording(text)
    task = task_of(
        recording,
        settings().select().device,
        operation=operation,
        algorithm=algorithm,
        changes=_assignments(changes),
    )
    with progress_bar("import") as progress:
        adoption = adopt(
            recording,
            task,
            limit=limit,
            timeout=timeout,
            progress=lambda state: progress(state.evaluated, state.total or 0, state.phase),
        )
    _tell(adoption, recording)
    return 0 if adoption.best is not None else 1


def _import_overlay(path: Path, text: str, replace: bool) -> int:
    try:
        new = parse(text)
    except (ValueError, OclabError) as error:
        raise InvalidProblem(f"cannot import {path}: {error}") from error
    taken = database.add(new, replace)
    states = [_state(entry)[0] for entry in new]
    if settings().json:
        count = {state: states.count(state) for state in STYLES}
        print_json(document("tuning import", entries=len(new), taken=taken, **count))
        return 0
    kept = len(new) - taken
    settings().say(
        f"{counted(taken, 'entry', 'entries')} taken over"
        + "".join(f", {states.count(s)} {s}" for s in ("stale", "unknown") if s in states)
        + (f"; {kept} older than yours left out (--replace takes them)" if kept else "")
    )
    return 0


def _assignments(texts: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--problem takes NAME=VALUE, not {text!r}")
        values[name] = value
    return values


def _tell(adoption: Adoption, recording: Recording) -> None:
    task, best = adoption.task, adoption.best
    if settings().json:
        print_json(
            document(
                "tuning import",
                operation=task.operation.name,
                algorithm=task.algorithm_name,
                device=task.device.as_dict(),
                problem=task.problem.as_dict(),
                refused=adoption.refused,
                stored=adoption.stored,
                notes=list(recording.notes),
                evaluations=[item.as_dict() for item in adoption.evaluations],
                best=None if best is None else best.as_dict(),
            )
        )
        return
    say = settings().say
    say(f"{task.operation.name} by {task.algorithm_name}: {task.problem.title}")
    say(f"device: {task.device}")
    for note in recording.notes:
        say(f"note: {note}")
    if adoption.refused:
        say(f"{counted(adoption.refused, 'configuration')} cannot run here")
    for index, item in enumerate(adoption.evaluations):
        result = f"{item.time_ms:.4g} ms" if item.times_ms else f"{item.status}: {item.reason}"
        say(f"{result}  {item.config}" + ("  (in use before)" if index == 0 else ""))
    if adoption.stored:
        say("the best is stored, and used from now on")
    elif best is not None:
        say("none is faster than what is in use; nothing was stored")
    else:
        say("none gave a right result; nothing was stored")


# -------------------------------------------------------------------- clear


@tuning_command.command("clear")
@_which
@click.option("--stale", "only_stale", is_flag=True, help="Only those that are stale.")
@click.option("--runs", "with_runs", is_flag=True, help="Delete the tuner's journals as well.")
@global_options
def clear_command(
    operation: str | None, algorithm: str | None, only_stale: bool, with_runs: bool
) -> None:
    """Delete your own tuned entries; those of the package stay."""
    wanted = _Chosen(operation, algorithm)
    removed = database.clear(
        lambda entry: wanted(entry) and (not only_stale or _state(entry)[0] == "stale")
    )
    journals = wanted.runs() if with_runs else []
    for run in journals:
        try:
            run.path.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise InvalidProblem(f"cannot delete {run.path}: {reason}") from error
    if settings().json:
        print_json(document("tuning clear", entries=removed, runs=len(journals)))
        return
    settings().say(
        f"{counted(removed, 'entry', 'entries')} deleted"
        + (f", {counted(len(journals), 'journal')}" if with_runs else "")
    )

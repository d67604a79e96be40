"""`oclab tuning export|import`: tuned configurations to and from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from opencl_lab.core.errors import InvalidProblem, OclabError
from opencl_lab.core.paths import check_target, write_target
from opencl_lab.core.wording import counted, plain
from opencl_lab.lab.cli.common import document, global_options, print_json, settings
from opencl_lab.lab.cli.completion import files
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.tuning_entries import (
    STYLES,
    Chosen,
    pairs_text,
    selection_options,
    state_of,
)
from opencl_lab.lab.cli.values import pairs
from opencl_lab.lab.tuning.adopt import Adoption, adopt, read_recording, task_of
from opencl_lab.lab.tuning.interchange import Recording, to_kernel_tuner, to_t4
from opencl_lab.lab.tuning.journal import read_run
from opencl_lab.lab.tuning.kernel_text import read_text
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import document as entries_document
from opencl_lab.tuned.entry import parse

WRITERS: dict[str, Callable[[Recording], str]] = {"kernel-tuner": to_kernel_tuner, "t4": to_t4}


@click.command("export")
@click.argument("file", shell_complete=files)
@click.option(
    "--format",
    "form",
    type=click.Choice([*WRITERS, "overlay"]),
    default="overlay",
    show_default=True,
    help="overlay: your tuned entries, for opencl_lab elsewhere; the others: a whole search.",
)
@selection_options
@click.option(
    "--journal",
    metavar="PATH",
    shell_complete=files,
    help="Journal of the search to export.  [default: the latest]",
)
@global_options
def export_command(
    file: str, form: str, operation: str | None, algorithm: str | None, journal: str | None
) -> None:
    """Write tuned entries, or a whole search, to FILE."""
    path = Path(file)
    check_target(path)
    wanted = Chosen(operation, algorithm)
    if form == "overlay":
        if journal is not None:
            raise click.UsageError("--journal cannot be used with the format overlay")
        own = [entry for entry in database.entries() if not entry.shipped and wanted(entry)]
        if not own:
            raise InvalidProblem("there is nothing to export; run `oclab tune OPERATION` first")
        text = json.dumps(entries_document(own), indent=1, sort_keys=True)
        what: dict[str, Any] = {"entries": len(own)}
    else:
        found = [read_run(Path(journal))] if journal else wanted.runs()
        if not found:
            raise InvalidProblem("there is no run to export; run `oclab tune OPERATION` first")
        run = found[-1]
        text = WRITERS[form](run.recording())
        what = {"journal": str(run.path), "evaluations": len(run.evaluations)}
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if settings().json:
        print_json(document("tuning export", path=str(path), format=form, **what))
        return
    settings().say(f"written to {path}: {pairs_text(what)}")


@click.command("import")
@click.argument("file", shell_complete=files)
@click.option("--operation", metavar="NAME", help="Operation of a file of another tuner.")
@click.option("--algorithm", metavar="NAME", help="Algorithm of a file of another tuner.")
@click.option(
    "--problem",
    "changes",
    metavar="NAME=VALUE",
    multiple=True,
    help="Field of the problem that the file does not contain, such as dtype=float64; repeatable.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of configurations of the file to try.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="S",
    help="Timeout in seconds for the build and for the runs of a configuration.",
)
@click.option("--replace", is_flag=True, help="Also take over entries that are older than yours.")
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

    Entries of an overlay are taken over. The fastest configurations of other
    files are checked and timed on the chosen device, in a worker process, and
    the best one is stored if it is faster than the one in use.
    """
    path = Path(file)
    text = read_text(path)
    if '"oclab-tuning/' in text:
        return _import_overlay(path, text, replace)
    recording = read_recording(text)
    task = task_of(
        recording,
        settings().select().device,
        operation=operation,
        algorithm=algorithm,
        changes=pairs("--problem", changes),
    )
    with progress_bar("import") as progress:
        adoption = adopt(
            recording,
            task,
            limit=limit,
            timeout=timeout,
            progress=lambda state: progress(state.evaluated, state.total or 0, state.phase),
        )
    _print_adoption(adoption, recording)
    return 0 if adoption.best is not None else 1


def _import_overlay(path: Path, text: str, replace: bool) -> int:
    try:
        new = parse(text)
    except (ValueError, OclabError) as error:
        raise InvalidProblem(f"cannot import {path}: {error}") from error
    taken = database.add(new, replace)
    states = [state_of(entry)[0] for entry in new]
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


def _print_adoption(adoption: Adoption, recording: Recording) -> None:
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
        result = f"{plain(item.time_ms)} ms" if item.times_ms else f"{item.status}: {item.reason}"
        say(f"{result}  {item.config}" + ("  (in use before)" if index == 0 else ""))
    if adoption.stored:
        say("the best is stored, and used from now on")
    elif best is not None:
        say("none is faster than the one in use; nothing was stored")
    else:
        say("none gave a correct result; nothing was stored")

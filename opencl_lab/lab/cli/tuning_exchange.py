"""`oclab tuning export|import`: tuned configurations to and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from opencl_lab.core.errors import InvalidProblem, OclabError
from opencl_lab.core.paths import check_target, write_target
from opencl_lab.core.wording import counted
from opencl_lab.lab.cli.common import document, global_options, print_json, settings
from opencl_lab.lab.cli.completion import files
from opencl_lab.lab.cli.tuning_entries import (
    STYLES,
    Chosen,
    pairs_text,
    selection_options,
    state_of,
)
from opencl_lab.lab.tuning.journal import read_run
from opencl_lab.lab.tuning.kernel_text import read_text
from opencl_lab.lab.tuning.t4 import to_t4
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import document as entries_document
from opencl_lab.tuned.entry import parse


@click.command("export")
@click.argument("file", shell_complete=files)
@click.option(
    "--format",
    "form",
    type=click.Choice(["overlay", "t4"]),
    default="overlay",
    show_default=True,
    help="overlay: your tuned entries, for opencl_lab elsewhere; t4: a whole search.",
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
        text = to_t4(run)
        what = {"journal": str(run.path), "evaluations": len(run.evaluations)}
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if settings().json:
        print_json(document("tuning export", path=str(path), format=form, **what))
        return
    settings().say(f"written to {path}: {pairs_text(what)}")


@click.command("import")
@click.argument("file", shell_complete=files)
@click.option("--replace", is_flag=True, help="Also take over entries that are older than yours.")
@global_options
def import_command(file: str, replace: bool) -> int:
    """Read FILE, which `oclab tuning export` wrote: its entries are taken over."""
    path = Path(file)
    text = read_text(path)
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

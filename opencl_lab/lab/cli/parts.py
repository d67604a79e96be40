"""The command of an operation on a file that is too large to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.cli.common import complain, settings
from opencl_lab.lab.cli.outputs import rows_document, write_named
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.request import OperationRequest
from opencl_lab.lab.cli.results import print_and_write
from opencl_lab.lab.cli.values import variants
from opencl_lab.lab.engine.references import references_of
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.ops.sort.file import FileResult, FileSort
from opencl_lab.lab.presentation.plots import plot_comparison
from opencl_lab.lab.presentation.table import write_csv
from opencl_lab.lab.reference.peers import Reference

NOT_RUN = "references are not run on files that are sorted in parts: they need the whole array"


def find_job(asked: OperationRequest) -> FileSort | None:
    """Return the job that processes the input files in parts; None if they are read as a whole."""
    file, limit, algorithm = asked.files[0], asked.memory_limit, str(asked.run.algorithms)
    if limit is not None and not str(file).lower().endswith(".npy"):
        raise click.UsageError("--memory-limit is for a .npy file; leave it out")
    make = asked.chosen.find_file_job
    if make is None or file is None:
        return None
    one = "auto" if algorithm == "all" or "," in algorithm else algorithm
    job: FileSort | None = make(
        Path(file), asked.options, asked.selection.device, algorithm=one, limit=limit
    )
    return job


def run_job(asked: OperationRequest, job: FileSort) -> int:
    """Process a file in parts, print the result, and return the exit status."""
    references = _references_left_out(asked, job)
    output = asked.output
    if output is None:
        raise InvalidProblem(f"{job.reason}: name a .npy file for the result with -o")
    job.check(output)
    with progress_bar(asked.chosen.name) as progress:
        result = job.run(output, progress)
    ours = _measurement(job, result, asked.selection.device)
    rows = [ours] + [
        Measurement(item.name, item.kind, item.name, "unavailable", NOT_RUN) for item in references
    ]
    title = f"{asked.chosen.name}: {job.problem.title}\n{asked.selection.device}"
    files: list[tuple[Path | None, Callable[[Path], Any]]] = [
        (output if result.fault is None else None, lambda path: None),  # it is there
        (asked.csv, lambda path: write_csv(path, [({}, row) for row in rows])),
        (asked.plot, lambda path: plot_comparison(path, rows, title)),
    ]
    stages = {f"{stage}_ms": value * 1e3 for stage, value in result.stages.items()}
    split = job.split
    parts: dict[str, Any] = {"count": split.runs, "bytes": split.nbytes, "merged": split.merges}
    parts |= {**stages, "check_ms": result.check_seconds * 1e3}
    options = {**asked.options, **asked.files_by_name}
    content = partial(rows_document, asked, job.problem, options, files[0][0], rows, parts=parts)
    show = partial(_show, asked, job, result, rows)
    failed = print_and_write(content, show, lambda: write_named(files))
    if result.fault is not None:
        complain(f"{output} is not written: the result is wrong")
    return failed or (0 if ours.ok else 1)


def _references_left_out(asked: OperationRequest, job: FileSort) -> list[Reference]:
    """Return the references that would run on a whole array; refuse options that need one."""
    run = asked.run
    if run.resident:
        raise InvalidConfig(f"{job.reason}: leave --resident out")
    wanted = references_of(asked.chosen, run.against, asked.selection.device, False)
    references = [*wanted.on_host, *wanted.on_device]
    if references and wanted.by_name:
        raise ReferenceUnavailable(f"{references[0].name} cannot run here: {NOT_RUN}")
    names = str(run.algorithms)
    if names == "all" or "," in names or run.variants != variants(()):
        raise InvalidConfig(f"{job.reason}: name one algorithm, and no --vary")
    if run.repeats is not None and run.repeats != 1:
        raise InvalidConfig(f"{job.reason}, once: leave --repeats out")
    if run.budget is not None:
        raise InvalidConfig(f"{job.reason}, once: leave --time-limit out")
    return references


def _measurement(job: FileSort, result: FileResult, device: Device) -> Measurement:
    return Measurement(
        f"opencl:{job.split.algorithm.name}",
        "opencl",
        job.split.algorithm.name,
        "correct" if result.fault is None else "correctness",
        result.fault or "",
        config=dict(job.split.config),
        workers=device.compute_units,
        kernel_ms=result.stages["kernels"] * 1e3,
        build_ms=result.stages["build"] * 1e3,
        total_ms=Times.of([result.seconds * 1e3]),
        work=job.problem.work,
    )


def _show(
    asked: OperationRequest, job: FileSort, result: FileResult, rows: Sequence[Measurement]
) -> None:
    settings().say_device()
    rate = job.nbytes / result.seconds * 1e-9
    verdict = "correct" if result.fault is None else f"wrong: {result.fault}"
    settings().say(
        f"{asked.chosen.name}: {job.problem.title}, {rows[0].implementation} in "
        f"{job.split}: {result.seconds:.4g} s, {rate:.3g} GB/s; {verdict} "
        f"(checked in {result.check_seconds:.3g} s)"
    )
    if settings().verbose:
        stages_text = ", ".join(f"{stage} {value:.3g} s" for stage, value in result.stages.items())
        settings().say(f"stages, which overlap: {stages_text}")
    if len(rows) > 1:
        settings().say(NOT_RUN)

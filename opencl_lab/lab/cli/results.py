"""Folders of results, and text files in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.interrupt import released
from opencl_lab.core.paths import check_target, write_target
from opencl_lab.lab.cli.common import json_text, print_json, settings, write_files
from opencl_lab.lab.engine.stored import Results, read_results
from opencl_lab.lab.presentation.drawing import check_plot


def named_folder(out: str) -> Path:
    """Return the folder that an option names; an empty name is refused."""
    if not out.strip():
        raise InvalidProblem("--out is empty: name the folder for the results, such as .")
    return Path(out)


@contextmanager
def results_folder(
    out: str, files: Sequence[str], about: Mapping[str, Any] | None = None
) -> Iterator[Path]:
    """Make the folder of the results, and check early that they can be written there.

    If nothing is written, a folder that was made here is removed again. `about` describes the
    problems and implementations of the new document: an existing document is only replaced by one
    about the same. Without `about` any document is replaced.
    """
    folder = named_folder(out)
    with released(partial(_made, folder), _remove_if_empty):
        for name in files:
            check = check_plot if name.endswith(".png") else check_target
            check(folder / name)
            if about is not None and name.endswith(".json"):
                _check_earlier(folder / name, about)
        yield folder


def _made(folder: Path) -> Path | None:
    """Make a folder; return it, or None if it was there."""
    if folder.is_dir():
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise InvalidProblem(f"cannot make the folder {folder}: {why}") from error
    return folder


def _remove_if_empty(folder: Path | None) -> None:
    if folder is not None:
        with suppress(OSError):
            folder.rmdir()


def _check_earlier(path: Path, about: Mapping[str, Any]) -> None:
    """Refuse to replace a document whose results are not measured again.

    Results of a stopped sweep are taken over if possible, see `Unfinished`.
    """
    if not path.is_file():
        return
    replace = "name another folder with --out, or replace it with --fresh"
    try:
        there, new = read_results(path), Results(path, json.loads(json_text(about)), ())
    except InvalidProblem as error:
        raise InvalidProblem(f"{error}; {replace}") from error
    if there.content.get("complete") is False:
        return
    before, after = _facts(there), _facts(new)
    differ = [name for name, value in before.items() if after.get(name, value) != value]
    sizes, new_sizes = (item.mapping("problem").get("sizes") or () for item in (there, new))
    if new_sizes and any(size not in new_sizes for size in sizes):
        differ.append("sizes")
    if before["operation"] != after["operation"]:
        differ = ["operation"]  # its options differ, too
    if differ:
        names = ", ".join(differ)
        raise InvalidProblem(f"{path} is of another sweep, which differs in {names}; {replace}")


def _facts(results: Results) -> dict[str, Any]:
    """Return the problems and implementations of a document by name, without sizes."""
    first = {"operation": results.operation, "device": results.device.get("key")}
    return {**first, **results.options, **results.mapping("request")}


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON document atomically."""
    write_text(path, json_text(content))


def print_and_write(
    content: Callable[[], Mapping[str, Any]], show: Callable[[], None], write: Callable[[], int]
) -> int:
    """Print a document with --json, else show it; return the exit status of `write`.

    Files are written after that, even if nothing can be printed.
    """
    try:
        print_json(content)
        show()
    finally:
        failed = write()
    return failed


def write_results(
    folder: Path | None,
    writers: Mapping[str, Callable[[Path], None]],
    *,
    draws: bool = True,
    plots: Collection[str] = (),
) -> int:
    """Write the files of a folder, unless it is None; return an exit status.

    Plots are drawn if `draws`: that takes seconds, for which nobody waits after an interrupt. Those
    of `plots` that are not drawn are removed, if the folder has a document of an earlier run.
    """
    if folder is None:
        return 0
    if not draws:
        writers = {name: write for name, write in writers.items() if not name.endswith(".png")}
    if any((folder / name).exists() for name in writers if name.endswith(".json")):
        for name in set(plots) - set(writers):
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)
    failed = write_files(*(partial(write, folder / name) for name, write in writers.items()))
    if not failed:
        settings().say(f"written to {folder}: {' '.join(writers)}")
    return failed

"""Folders of results, and text files in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from opencl_lab.cli.common import json_text, print_json, settings, write_files
from opencl_lab.comparison.drawing import check_plot
from opencl_lab.errors import InvalidProblem
from opencl_lab.paths import check_target, write_target

__all__ = [
    "named_folder",
    "print_and_write",
    "results_folder",
    "write_json",
    "write_results",
    "write_text",
]


def named_folder(out: str) -> Path:
    """Return the folder that an option names.

    Raises
    ------
    InvalidProblem
        If the name is empty, which would mean the working directory.
    """
    if not out.strip():
        raise InvalidProblem("--out is empty: name the folder for the results; . is this one")
    return Path(out)


@contextmanager
def results_folder(out: str, files: Sequence[str]) -> Iterator[Path]:
    """Make the folder of the results, and check early that these can be written there.

    If it was made here and nothing is written, it is removed again.
    """
    folder = named_folder(out)
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidProblem(f"cannot make the folder {out}: {error.strerror or error}") from error
    try:
        for name in files:
            check = check_plot if name.endswith(".png") else check_target
            check(folder / name)
        yield folder
    finally:
        if not there:
            with suppress(OSError):  # there are results
                folder.rmdir()


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all."""
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON document as a whole or not at all."""
    write_text(path, json_text(content, sort_keys=True))


def print_and_write(
    content: Mapping[str, Any], show: Callable[[], None], write: Callable[[], int]
) -> int:
    """Print a document where JSON is wanted, else show it; then write files.

    Returns
    -------
    int
        What `write` returns, an exit status.
    """
    try:
        if settings().json:
            print_json(content)
        else:
            show()
    finally:  # also where nobody reads what is printed
        failed = write()
    return failed


def write_results(folder: Path, writers: Mapping[str, Callable[[Path], None]]) -> int:
    """Write files of a folder by their names, and say which; return an exit status."""
    failed = write_files(*(partial(write, folder / name) for name, write in writers.items()))
    if not failed:
        settings().say(f"written to {folder}: {' '.join(writers)}")
    return failed

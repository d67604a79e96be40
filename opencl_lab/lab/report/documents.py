"""Reading documents of all kinds: fields that may be damaged, file names, commands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from opencl_lab.core.records import typed
from opencl_lab.lab.engine.stored import Results

LARGEST = 1e300  # above it, axes and ratios overflow
Drawn = Annotated[float, Meta(gt=-LARGEST, lt=LARGEST)]


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a value that should be a list of objects."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Return the different texts in a value that should be a list of texts."""
    return list(dict.fromkeys(map(str, value))) if isinstance(value, list) else []


def is_comparison(results: Results) -> bool:
    """Return whether a document compares two runs."""
    return isinstance(results.content.get("compared"), dict)


def is_search(results: Results) -> bool:
    """Return whether a document describes a search for the fastest configuration."""
    return isinstance(results.content.get("evaluations"), list)


def finite(value: Any) -> float | None:
    """Return a number that can be drawn; None for other values, such as NaN."""
    try:
        found: float = typed(Drawn, value)
    except ValueError:
        return None
    return found


def source_of(results: Results, folder: Path) -> str:
    """Return the path of a document relative to the folder."""
    if results.path == folder:
        return results.path.name
    return str(results.path.relative_to(folder))


def command_of(results: Results, folder: Path) -> str:
    """Return the command that wrote a document, quoted for a shell.

    A command that printed the document gets a redirection to its file in the folder. For old
    documents, the command is reconstructed from the recorded options.
    """
    arguments = results.content.get("arguments")
    if isinstance(arguments, list) and arguments:
        words = list(map(str, arguments))
        file = f" > {shlex.quote(source_of(results, folder))}"
        written = any(word == "--out" or word.startswith("--out=") for word in words)
        return shlex.join(["oclab", *words]) + file * ("--json" in words and not written)
    words = ["oclab", results.command]
    sizes = results.mapping("problem").get("sizes")
    if isinstance(sizes, list):
        words += [results.operation, "--sizes", ",".join(map(str, sizes))]
    study, scale = (results.content.get(name) for name in ("study", "scale"))
    if isinstance(study, str):
        words += [study, *(["--scale", scale] if isinstance(scale, str) else [])]
    for name, value in results.options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    if results.command in ("bench", "study"):
        words += ["--out", "DIR"]
    return shlex.join(words)

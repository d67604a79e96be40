"""Only the declarations of OpenCL C that a program needs, to build it faster with PoCL 3.0.

The compiler of that release, which pip installs, reads Clang's ``opencl-c.h`` for every program:
15,000 declarations, which take four fifths of the build time of a small program and most of the
memory that PoCL holds for it. (Later compilers declare functions lazily.) So the program is
preceded by the header without the functions whose names do not occur in the program, and the
header's include guard is defined. A program that fails to build this way is built as usual.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "pocl_binary_distribution"
FOLDER = Path(".libs", "share", "pocl", "include")
RELEASE = "PoCL 3.0"
GUARD = "_OPENCL_H_"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DECLARATION = re.compile(r"^[^#\n]* __ovld\b[^;]*;", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*")
EXTRA = re.compile(r"\b((fast_)?(length|normalize)|dot)\s*\(")
"""Calls of functions for which PoCL declares more overloads than the header."""


def _on_one_line(declaration: re.Match[str]) -> str:
    return " ".join(declaration[0].split())


@cache
def _header() -> tuple[list[tuple[str | None, str]], frozenset[str]] | None:
    """Return the header's lines, each with the function it declares, and the names of macros.

    None if there is no such header.
    """
    try:
        package = find_spec(PACKAGE)
        assert package is not None and package.submodule_search_locations
        folder = Path(package.submodule_search_locations[0]) / FOLDER
        base = (folder / "opencl-c-base.h").read_text(encoding="utf-8")
        text = (folder / "opencl-c.h").read_text(encoding="utf-8")
    except (AssertionError, ImportError, OSError, ValueError):
        return None
    if f"#ifndef {GUARD}" not in text or '#include "opencl-c-base.h"' not in text:
        return None
    text = text.replace(f"#ifndef {GUARD}", "#if 1")  # the guard is defined by an option
    text = text.replace('#include "opencl-c-base.h"', base)
    lines: list[tuple[str | None, str]] = []
    for line in DECLARATION.sub(_on_one_line, COMMENT.sub(" ", text)).splitlines():
        line = line.strip()
        if " __ovld " in line and line.endswith(");"):
            lines.append((line.partition("(")[0].split()[-1].lstrip("*"), line))
        elif line:
            lines.append((None, line))
    used = (NAME.findall(line) for _, line in lines if line.startswith("#define"))
    return lines, frozenset().union(*used)


def with_declarations(platform_version: str, text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return a program with the declarations that it needs, and the options to build it.

    None for other platforms, and for programs that may need more than the header.
    """
    if RELEASE not in platform_version:
        return None
    header, code = _header(), COMMENT.sub(" ", text)
    if header is None or EXTRA.search(code):
        return None
    lines, used = header
    names = used.union(NAME.findall(code))
    needed: list[str] = []
    for name, line in lines:
        if line.startswith("#endif") and needed[-1].startswith("#if"):
            needed.pop()  # nothing is left between them
        elif name is None or name in names:
            needed.append(line)
    return "\n".join((*needed, "#line 1", text)), (f"-D{GUARD}",)

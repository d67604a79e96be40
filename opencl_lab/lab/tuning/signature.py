"""The signature of a kernel: its arguments and required work-group, parsed from OpenCL C.

The driver reports both, but only of built programs. A search plans thousands of configurations
before it builds one, in a process that never builds, and each may have other arguments and
another work-group. `opencl_lab.runtime.programs` compares built kernels with the driver's report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import C_TYPES

DEPTH = 6  # of nested parentheses
INSIDE = reduce(lambda inner, _: rf"(?:[^()]|\({inner}\))*", range(DEPTH), "[^()]*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = rf"__attribute__\s*\({INSIDE}\)\s*"
GROUP = re.compile(rf"\breqd_work_group_size\s*\(({INSIDE})\)")
KERNEL = re.compile(
    rf"\b(?:__)?kernel\s+(?:{ATTRIBUTE}|\w+\s+)*?void\s+(?:{ATTRIBUTE})*(\w+)\s*\(({INSIDE})\)"
)
SPACES = ("global", "constant", "local")
QUALIFIERS = (*SPACES, "private", "const", "restrict", "volatile", "signed", "unsigned")
TYPES = {name: np.dtype(dtype) for dtype, name in C_TYPES.items()}  # uint8 comes after bool


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel."""

    name: str
    space: str
    """``global``, ``constant`` or ``local`` for a pointer; empty for a value."""
    const: bool
    """Whether it is a pointer to const."""
    dtype: np.dtype[Any] | None
    """The type of one number; None for a type that the kernel defines."""
    width: int
    """Length of a vector; 1 for a number."""
    text: str
    """The declaration in the kernel."""

    @property
    def stored(self) -> int:
        """Length of a vector in memory: OpenCL stores vectors of length 3 as 4 numbers."""
        return 4 if self.width == 3 else self.width


@dataclass(frozen=True)
class Signature:
    """The name of a kernel, its arguments, and its ``reqd_work_group_size`` as an expression."""

    kernel: str
    arguments: tuple[Argument, ...]
    group: str = ""


def signature(
    source: str,
    kernel: str | None = None,
    where: str = "the source",
    macros: Mapping[str, Any] | None = None,
) -> Signature:
    """Return the signature of a kernel in OpenCL C before the preprocessor.

    Of several definitions of a kernel the first counts. `kernel` is needed if there are several
    kernels. `where` names the source in messages. `macros` are other names of types, such as
    ``{"T": "float"}``.
    """
    text = DIRECTIVE.sub("", COMMENT.sub(" ", source))
    found: dict[str, re.Match[str]] = {}
    for match in KERNEL.finditer(text):
        found.setdefault(match[1], match)
    if not found:
        raise InvalidProblem(f"{where} has no kernel")
    if kernel not in found and (kernel is not None or len(found) > 1):
        asked = "say which kernel is meant" if kernel is None else f"there is no kernel {kernel!r}"
        raise InvalidProblem(f"{asked}: {where} has {', '.join(found)}")
    match = found[kernel or next(iter(found))]
    group = GROUP.search(re.split("[;}]", text[: match.start(1)])[-1])
    items = [" ".join(item.split()) for item in re.sub(ATTRIBUTE, "", match[2]).split(",")]
    arguments = tuple(_argument(item, macros or {}) for item in items if item not in ("", "void"))
    return Signature(match[1], arguments, "" if group is None else " ".join(group[1].split()))


def _argument(text: str, macros: Mapping[str, Any]) -> Argument:
    pointed, star, _ = text.partition("*")
    words = re.findall(r"\w+", pointed if star else text.rpartition(" ")[0])
    # Words that are not macros may be keywords after underscores, such as __global.
    plain = [str(macros.get(word, word.removeprefix("__"))) for word in words]
    plain = " ".join(plain).split()
    space = next((word for word in plain if word in SPACES), "private") if star else ""
    name = next((word for word in plain if word not in QUALIFIERS), "int")
    base = re.sub(r"(?<=[a-z])(2|3|4|8|16)$", "", name)
    dtype = TYPES.get("u" * ("unsigned" in plain) + base)
    return Argument(
        (re.findall(r"\w+", text) or [""])[-1],
        space,
        space == "constant" or "const" in plain,
        dtype,
        1 if dtype is None else int(name[len(base) :] or 1),
        text,
    )

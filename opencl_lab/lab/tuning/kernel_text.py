"""The text of a kernel in a file: how it is rendered, what it includes, and its signature.

The driver reports arguments and required work-group, too, but only of built programs. A search
plans thousands of configurations before it builds one, in a process that never builds, and each may
have other arguments and another work-group. `opencl_lab.runtime.programs` compares built kernels
with the driver's report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import C_TYPES
from opencl_lab.core.space import Value
from opencl_lab.core.template import declared, kernel_digest, render

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\"<>\n]+)[\">]", re.MULTILINE)
FOLDER = re.compile(r"(?:^|\s)-I\s*(\"[^\"]*\"|\S+)")
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


@dataclass(frozen=True)
class KernelText:
    """A kernel in a file: a Mako template, or OpenCL C with its parameters as macros."""

    path: Path
    """A template, if the name ends in ``.mako``."""
    kernel: str | None
    """Name of the kernel; None if the file has only one."""
    params: Mapping[str, tuple[Value, ...]]
    """Values of each parameter."""
    fixed: Mapping[str, Any]
    """Parameters with a fixed value."""
    options: tuple[str, ...] = ()
    """Build options."""

    def __post_init__(self) -> None:
        for name, choices in self.params.items():
            if not choices:
                raise InvalidProblem(f"the parameter {name} has no values")
        for name in (*self.params, *self.fixed):
            if not (name.isascii() and name.isidentifier()):
                raise InvalidProblem(
                    f"{name!r} is not a name of a parameter: use letters, digits and _"
                )
            if name in self.params and name in self.fixed:
                raise InvalidProblem(f"the parameter {name} has a fixed value and values to try")

    @property
    def first(self) -> dict[str, Value]:
        """The first value of each parameter."""
        return {name: values[0] for name, values in self.params.items()}

    @property
    def _is_template(self) -> bool:
        return self.path.suffix == ".mako"

    def launched(
        self, config: Mapping[str, Value]
    ) -> tuple[Signature, dict[str, Any], tuple[str, ...]]:
        """Return a configuration's signature, the arguments of its template, its build options."""
        text, given = self._rendered(config), {**self.fixed, **config}
        options = (*self.options, *self._include_options(text))
        if self._is_template:
            return signature(text, self.kernel, self.path.name), given, options
        macros = {
            name: int(value) if isinstance(value, bool) else value for name, value in given.items()
        }
        told = signature(text, self.kernel, self.path.name, macros)
        return told, {}, (*options, *(f"-D{name}={value}" for name, value in macros.items()))

    def included(self, text: str | None = None) -> tuple[str, ...]:
        """Return the paths of all included files that are found.

        `text` is the rendered source, by default that of the first configuration.
        """
        given = [Path(path.strip('"')) for path in FOLDER.findall(" ".join(self.options))]
        folders = [*given, self.path.parent]
        found: dict[Path, None] = {}
        waiting = [(self.path.parent, self._rendered(self.first) if text is None else text)]
        while waiting:
            folder, text = waiting.pop(0)
            for name in INCLUDE.findall(text):
                places = (place.resolve() / name for place in (folder, *folders))
                path = next((place for place in places if place.is_file()), None)
                if path is not None and path not in found:
                    found[path] = None
                    waiting.append((path.parent, read_text(path)))
        return tuple(map(str, found))

    def _include_options(self, text: str) -> tuple[str, ...]:
        """Return build options with the folders of included files and a digest of their contents.

        Caches of sessions and drivers do not look into included files, so an unused macro with
        the digest makes sure that a program is built again if they change.
        """
        if not INCLUDE.search(text):
            return ()
        folder = str(self.path.parent)
        if re.search(r"\s", folder):
            raise InvalidProblem(
                f"{self.path.name} includes files from {folder!r}, and OpenCL takes no folder "
                "with a space in its name: rename it"
            )
        included = self.included(text)
        digest = (f"-DOCLAB_INCLUDED=0x{kernel_digest(included)}",) if included else ()
        return (f"-I{folder}", *digest)

    def _rendered(self, config: Mapping[str, Value]) -> str:
        """Return the OpenCL C of a configuration, before the preprocessor."""
        text = read_text(self.path)
        if not self._is_template:
            return text
        given = {**self.fixed, **config}
        known, required = declared(str(self.path))
        missing, unknown = sorted(required - set(given)), sorted(set(given) - known)
        if unknown and not known:
            raise InvalidProblem(
                f"{self.path.name} declares no parameters; its first line must be "
                f'<%page args="{", ".join(given)}"/>'
            )
        parts = [f"it needs no parameter {', '.join(unknown)}"] if unknown else []
        parts += [f"it {'also ' * bool(parts)}needs {', '.join(missing)}"] if missing else []
        if parts:
            raise InvalidProblem(
                f"{self.path.name}: {', and '.join(parts)}, by its line <%page args=...>"
            )
        return render(str(self.path), given).text


def read_text(path: Path) -> str:
    """Return the text of a file; InvalidProblem if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidProblem(f"cannot read {path}: {reason}") from error

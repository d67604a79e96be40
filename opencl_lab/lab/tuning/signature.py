"""What a kernel says of itself: its arguments and its work-group, read from OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem

__all__ = ["Argument", "Signature", "signature"]

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
KERNEL = re.compile(r"\b(?:__)?kernel\b")
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(")
GROUP = re.compile(r"\breqd_work_group_size\s*\(")
HEAD = re.compile(r"[\w\s]*?\bvoid\s+(\w+)\s*\(")
SPACES = ("global", "constant", "local", "private")
VECTOR = re.compile(r"([a-z_]\w*?[a-z_])(2|3|4|8|16)")
TYPES = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel.

    Parameters
    ----------
    name : str
    space : str
        ``global``, ``constant`` or ``local`` for a pointer; empty for a value.
    const : bool
        Whether the kernel may not write to what it points to.
    dtype : dtype or None
        Of one number; None for a type of the kernel's own.
    width : int
        Numbers in a vector; 1 if it is none.
    text : str
        As it is written in the kernel.
    """

    name: str
    space: str
    const: bool
    dtype: np.dtype[Any] | None
    width: int
    text: str

    @property
    def stored(self) -> int:
        """Numbers that a vector takes the room of: OpenCL stores those of three as four."""
        return 4 if self.width == 3 else self.width


@dataclass(frozen=True)
class Signature:
    """The name of a kernel, its arguments, and its ``reqd_work_group_size`` as expressions."""

    kernel: str
    arguments: tuple[Argument, ...]
    group: tuple[str, ...] = ()


def signature(source: str, kernel: str | None = None, where: str = "the source") -> Signature:
    """Return the signature of a kernel in OpenCL C.

    Parameters
    ----------
    source : str
        Before the preprocessor: of several versions of a kernel the first counts.
    kernel : str, optional
        Its name; needed where there are several.
    where : str
        The source's name in messages.

    Raises
    ------
    InvalidProblem
        If there is no such kernel, or there are several to choose from.
    """
    text = COMMENT.sub(" ", source)
    found: dict[str, Signature] = {}
    for match in KERNEL.finditer(text):
        before = DIRECTIVE.sub("", re.split("[;}]", text[: match.start()])[-1])
        signature = _read(text[match.end() :], _group(before))
        if signature is not None:
            found.setdefault(signature.kernel, signature)
    if kernel is None and len(found) == 1:
        return next(iter(found.values()))
    if kernel in found:
        return found[kernel]
    if not found:
        raise InvalidProblem(f"{where} has no kernel")
    names = ", ".join(found)
    asked = "say which kernel is meant" if kernel is None else f"there is no kernel {kernel!r}"
    raise InvalidProblem(f"{asked}: {where} has {names}")


def _group(attributes: str) -> tuple[str, ...]:
    """Return the sizes of ``reqd_work_group_size``, or nothing if it is not there."""
    sizes = GROUP.search(attributes)
    return () if sizes is None else _split(_enclosed(attributes, sizes.end())[0])


def _read(text: str, group: tuple[str, ...] = ()) -> Signature | None:
    """Return the signature that follows the word ``kernel``, None if none does."""
    rest = text
    while (head := HEAD.match(rest)) is None:
        attribute = ATTRIBUTE.search(rest)
        if attribute is None or not re.fullmatch(r"[\w\s]*", rest[: attribute.start()]):
            return None
        inner, after = _enclosed(rest, attribute.end())
        group = _group(inner) or group
        rest = rest[: attribute.start()] + after
    inner, _ = _enclosed(rest, head.end())
    items = [item for item in _split(inner) if item not in ("", "void")]
    return Signature(head[1], tuple(_argument(item) for item in items), group)


def _enclosed(text: str, begin: int) -> tuple[str, str]:
    """Return what is in the parentheses that are open at `begin`, and what follows them."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return text[begin:place], text[place + 1 :]
    return text[begin:], ""


def _split(text: str) -> tuple[str, ...]:
    """Return the parts between commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(" ".join(part.split()) for part in parts)


def _argument(text: str) -> Argument:
    pointed, star, _ = text.partition("*")
    words = re.findall(r"\w+", text)
    plain = [word.strip("_") for word in re.findall(r"\w+", pointed)]
    if not star:
        plain = plain[:-1]
    space = next((word for word in plain if word in SPACES[:3]), "private") if star else ""
    named = [w for w in plain if w not in (*SPACES, "const", "restrict", "volatile")]
    dtype, width = _type(named)
    const = space == "constant" or "const" in plain
    return Argument(words[-1] if words else "", space, const, dtype, width, text)


def _type(words: Sequence[str]) -> tuple[np.dtype[Any] | None, int]:
    """Return the type of one number and how many a vector has."""
    if "unsigned" in words:
        words = ["u" + next((word for word in words if word != "unsigned"), "int")]
    name = "".join(words).removeprefix("signed") or "int"
    vector = VECTOR.fullmatch(name)
    if vector and vector[1] in TYPES:
        return np.dtype(TYPES[vector[1]]), int(vector[2])
    return (np.dtype(TYPES[name]), 1) if name in TYPES else (None, 1)

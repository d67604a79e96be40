"""How options write numbers, and the values of kernel parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import click

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import bytes_of, number_of


def whole_numbers(text: str) -> list[int]:
    """Return the integers of a comma-separated list, which must have some."""
    try:
        numbers = [_whole(part) for part in _parts(text)]
    except (ValueError, OverflowError) as error:
        raise InvalidProblem(f"not a list of whole numbers: {text!r}") from error
    if not numbers:
        raise InvalidProblem("the list of sizes is empty")
    return numbers


def _whole(text: str) -> int:
    """Return the whole number that `text` writes, such as ``1000`` or ``1e3``."""
    if "e" not in text.lower():
        return int(text)
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(number)


class WholeNumber(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take ``1000`` or ``1e3``."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number, or end with Click's usual message."""
        try:
            return value if isinstance(value, int) else _whole(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a valid integer.", param, ctx)


class Number(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take ``0.5`` or ``1+2j``."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> complex:
        """Return the number, or end with Click's usual message."""
        try:
            return number_of(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not a valid number; complex ones are written 1+2j.", param, ctx
            )


class ByteCount(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take bytes: ``2e9``, ``256M``, ``1.5 GiB``; units of 1024."""

    name = "bytes"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number of bytes, or end with Click's usual message."""
        if isinstance(value, (int, float)):
            return value
        try:
            return bytes_of(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def variants(texts: Sequence[str]) -> dict[str, dict[str, int | str | bool]]:
    """Return every combination of ``NAME=A,B,C``, by a name for its rows."""
    axes = []
    for text in texts:
        name, _, values = text.partition("=")
        if not name.strip() or not _parts(values):
            raise InvalidProblem(f"--vary takes NAME=A,B,C, not {text!r}")
        axes.append([(name.strip(), value) for value in _parts(values)])
    return {
        ",".join(f"{name}={value}" for name, value in point): {
            name: _parameter(value) for name, value in point
        }
        for point in itertools.product(*axes)
    }


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return what each ``NAME=VALUE`` says; InvalidProblem if one is no pair, or there twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InvalidProblem(f"{option} takes NAME=VALUE, not {text!r}")
        if name in found:
            raise InvalidProblem(f"{option} {name} is given twice")
        found[name] = value
    return found


def _parameter(text: str) -> int | str | bool:
    """Return the value of a kernel parameter: a flag, a whole number, or a word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


def parameter_values(text: str) -> tuple[int | str | bool, ...]:
    """Return the values of a kernel parameter in a list with commas."""
    return tuple(map(_parameter, _parts(text)))


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def no_nan(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse what is neither below nor above a range; the callback of an option."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no number", context, option)
    return value

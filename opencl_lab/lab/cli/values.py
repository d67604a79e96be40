"""Parsing of numbers and kernel parameters in options."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import bytes_of, number_of


def whole_numbers(text: str) -> list[int]:
    """Return the integers of a comma-separated list, which must not be empty."""
    try:
        numbers = [_whole(part) for part in _parts(text)]
    except (ValueError, OverflowError) as error:
        raise InvalidProblem(f"not a list of whole numbers: {text!r}") from error
    if not numbers:
        raise InvalidProblem("the list is empty")
    return numbers


def _whole(text: str) -> int:
    """Return the whole number in `text`, such as ``1000`` or ``1e3``."""
    if "e" not in text.lower():
        return int(text)
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(number)


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options whose text `read` converts to a number, or refuses with a ValueError.

    `wrong` is the error message; it may contain the `value` and the `error`.
    """

    def __init__(self, name: str, read: Callable[[str], Any], wrong: str):
        self.name, self._read, self._wrong = name, read, wrong

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number, or fail with an error message of Click."""
        if not isinstance(value, str):
            return value  # a default
        try:
            return self._read(value)
        except (ValueError, OverflowError) as error:
            self.fail(self._wrong.format(value=value, error=error), param, ctx)


WHOLE_NUMBER = Parsed("integer", _whole, "{value!r} is not a valid integer.")
"""Such as ``1000`` or ``1e3``."""
NUMBER = Parsed(
    "number", number_of, "{value!r} is not a valid number; complex ones are written 1+2j."
)
WHOLE_NUMBERS = Parsed("integers", whole_numbers, "{error}.")
"""Such as ``0,1``."""
BYTE_COUNT = Parsed("bytes", bytes_of, "{error}.")
"""Such as ``2e9``, ``256M`` or ``1.5 GiB``, in units of 1024."""


def variants(texts: Sequence[str]) -> dict[str, dict[str, int | str | bool]]:
    """Return all combinations of ``NAME=A,B,C``, by the name of the variant."""
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
    """Return values by name; InvalidProblem for text without ``=``, or a name given twice."""
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
    with suppress(ValueError):  # such as --1, or thousands of digits
        return int(text) if text.lstrip("-").isdecimal() else text
    return text


def parameter_values(text: str) -> tuple[int | str | bool, ...]:
    """Return the values of a kernel parameter in a list with commas."""
    return tuple(map(_parameter, _parts(text)))


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def no_nan(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse NaN, which ranges accept; the callback of an option."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number", context, option)
    return value

"""What an operation is asked for, without OpenCL: processes of references import it, too."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import is_wide
from opencl_lab.core.plan import Work


@dataclass(frozen=True)
class Problem(ABC):
    """Shapes, dtype and options of one problem; its constructor validates them.

    Subclasses are frozen dataclasses, so that problems are hashable.
    """

    sizes: ClassVar[tuple[str, ...]]
    """The fields that give the size of the problem."""
    layout: ClassVar[tuple[str, ...]]
    """The other fields that change which configuration is the fastest, such as the dtype."""

    def _check_sizes(self, *names: str) -> None:
        """Refuse negative sizes, in the named fields or in all `sizes`."""
        for name in names or self.sizes:
            value = getattr(self, name)
            if value < 0:
                raise InvalidProblem(f"{name} must not be negative, not {value}")

    @property
    @abstractmethod
    def work(self) -> Work:
        """The least arithmetic and memory traffic that solves the problem."""

    @property
    def title(self) -> str:
        """A description of the problem for the user, in tables, plots and messages.

        By default: the sizes, and the fields that differ from their defaults.
        """
        default = {item.name: item.default for item in fields(self)}
        return ", ".join(
            f"{name}={value:,}" if type(value) is int else f"{name}={value}"
            for name, value in self.as_dict().items()
            if name in self.sizes or (name in default and getattr(self, name) != default[name])
        )

    @property
    def wide(self) -> bool:
        """Whether its numbers have eight bytes, see `is_wide`."""
        dtype = getattr(self, "dtype", None)
        return dtype is not None and is_wide(dtype)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: value.name
            if isinstance(value, np.dtype)
            else repr(value)  # JSON has neither infinities nor NaN
            if isinstance(value, float) and not math.isfinite(value)
            else value
            for name, value in values.items()
        }

"""Other libraries as their users call them: on arrays of their own, one call after the other."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

__all__ = ["LIBRARIES", "Call", "Calls", "Library", "OurCall", "libraries"]

Call: TypeAlias = Callable[[Any, ModuleType, Mapping[str, Any]], Any]
"""``call(problem, module, arrays)`` returns a library's result, or None where it has none."""


@dataclass(frozen=True)
class Library:
    """How arrays get into a library, and how to wait for what it has been asked.

    Parameters
    ----------
    name : str
    module : str
        What is imported and handed to a `Call`.
    side : str
        ``host``, or ``device`` for a library on a CUDA device.
    put : callable
        ``put(module, array)`` returns a NumPy array as one of the library's.
    finish : callable
        ``finish(module)`` waits until all calls are done.
    ready : callable
        ``ready(module)`` returns whether its device is there.
    """

    name: str
    module: str
    side: Literal["host", "device"] = "host"
    put: Callable[[Any, np.ndarray[Any, Any]], Any] = lambda module, array: array
    finish: Callable[[Any], None] = lambda module: None
    ready: Callable[[Any], bool] = lambda module: True

    def load(self) -> ModuleType | None:
        """Return the module, or None where it or its device is missing."""
        if find_spec(self.module) is None:
            return None
        try:
            module = importlib.import_module(self.module)
            return module if self.ready(module) else None
        except Exception:  # a broken installation says so in many ways
            return None


LIBRARIES = (
    Library("numpy", "numpy"),
    Library("scipy", "scipy"),
    Library("opencv", "cv2"),
    Library("torch", "torch", put=lambda torch, array: torch.from_numpy(array)),
    Library(
        "torch",
        "torch",
        "device",
        lambda torch, array: torch.from_numpy(array).cuda(),
        lambda torch: torch.cuda.synchronize(),
        lambda torch: torch.cuda.is_available(),
    ),
    Library(
        "cupy",
        "cupy",
        "device",
        lambda cupy, array: cupy.asarray(array),
        lambda cupy: cupy.cuda.Device().synchronize(),
        lambda cupy: cupy.cuda.runtime.getDeviceCount() > 0,
    ),
)


class OurCall(NamedTuple):
    """A public function, the arrays that it takes, and options."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    options: dict[str, Any]

    def said(self) -> dict[str, Any]:
        """Return the options that are not the default ones, as a user would give them."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: value
            for name, value in self.options.items()
            if hasattr(value, "shape") or value != parameters[name].default
        }


@dataclass(frozen=True)
class Calls:
    """The public call of an operation, and what users of other libraries call instead.

    Parameters
    ----------
    ours : callable
        ``ours(problem, arrays)`` returns the `OurCall` on arrays of either side.
    peers : mapping of str to Call
        By the names of libraries.
    resident : tuple of str
        The inputs that a user has on the device; others stay on the host.
    algorithm : str
        The one that the public function takes.
    """

    ours: Callable[[Any, Mapping[str, Any]], OurCall]
    peers: Mapping[str, Call]
    resident: tuple[str, ...]
    algorithm: str = "auto"


def libraries(cuda: bool) -> list[tuple[Library, ModuleType]]:
    """Return the libraries that are installed; those on a CUDA device only if `cuda`."""
    found = ((item, item.load()) for item in LIBRARIES if cuda or item.side == "host")
    return [(item, module) for item, module in found if module is not None]

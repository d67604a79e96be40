"""Peers: other libraries as their users call them, on their own arrays, with back-to-back calls."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.clblast import OnClblast, no_clblast
from opencl_lab.lab.reference.descriptor import (
    CReference,
    HostReference,
    MpiReference,
    imported,
    needs,
)
from opencl_lab.lab.reference.on_queue import OnQueue

Call: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], Any]
"""``call(problem, module, arrays)`` returns a library's result, or None if it has none."""


@dataclass(frozen=True)
class Library:
    """A library: its arrays, and how to wait for its calls."""

    name: str
    module: str
    """Name of the module that is passed to a `Call`."""
    side: Literal["host", "device"] = "host"
    """The side of its arrays."""
    put: Callable[[Any, np.ndarray[Any, Any]], Any] = lambda module, array: array
    """``put(module, array)`` converts a NumPy array to the library's."""
    finish: Callable[[Any], None] = lambda module: None
    """``finish(module)`` waits until all calls are done."""
    ready: Callable[[Any], bool] = lambda module: True
    """``ready(module)`` returns whether its device is available."""
    get: Callable[[Any, Any], np.ndarray[Any, Any]] = lambda module, result: np.asarray(result)
    """``get(module, result)`` converts a result to a NumPy array."""
    package: str = ""
    """Name of its pip package, if it is not `name`."""
    absent: Callable[[], str | None] | None = None
    """Returns why it is not installed, or None, for libraries without a pip package."""
    opens: Callable[[Any], Any] | None = None
    """``opens(device)`` returns what is passed instead of the module, for a library that works on
    the measured OpenCL device. Other libraries on a device use CUDA."""

    def load(self) -> Any:
        """Return the module; `ReferenceUnavailable` says why it or its device is missing."""
        package, _, _ = self.module.partition(".")
        reason = (self.absent or needs(package, self.package or self.name))()
        if reason is not None:
            raise ReferenceUnavailable(reason)
        module = imported(self.module)
        try:
            ready = self.ready(module)
        except Exception as error:  # a broken installation may raise any error
            raise ReferenceUnavailable(f"it does not work here: {_first_line(error)}") from error
        if not ready:
            raise ReferenceUnavailable("it finds no CUDA device")
        return module

    def missing(self) -> str | None:
        """Return why it or its device is missing; None if it is not."""
        try:
            self.load()
        except ReferenceUnavailable as error:
            return str(error)
        return None

    def open(self, device: Any) -> Any:
        """Return the first argument of a `Call` on data of the given OpenCL device."""
        if self.opens is None and self.side == "device" and device.compute_capability is None:
            raise ReferenceUnavailable("it works on CUDA devices only")
        return self.reach(device)

    def reach(self, device: Any) -> Any:
        """Return the first argument of a `Call` on its device: a CUDA device, or the given one."""
        module = self.load()
        return module if self.opens is None else self.opens(device)


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__


def _torch_is_ready(torch: Any) -> bool:
    """Return whether CUDA is available; if so, have it compute in float32 without TF32.

    By default cuDNN rounds factors to TF32, and cuBLAS may reduce float16 sums in float16. cuDNN
    is also told to search for its fastest algorithm.
    """
    if not torch.cuda.is_available():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about new names, which older releases lack
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return True


def _on_queue(name: str, module: str, opens: Callable[[Any], Any], **more: Any) -> Library:
    """Return a library that works on the same OpenCL queue as our calls."""
    return Library(
        name,
        module,
        "device",
        lambda there, array: there.put(array),
        lambda there: there.finish(),
        get=lambda there, result: there.get(result),
        opens=opens,
        **more,
    )


LIBRARIES = (
    Library("numpy", "numpy"),
    Library("scipy", "scipy"),
    Library("opencv", "cv2", package="opencv-python-headless"),
    Library("torch", "torch", put=lambda torch, array: torch.from_numpy(array)),
    Library(
        "torch",
        "torch",
        "device",
        lambda torch, array: torch.from_numpy(array).cuda(),
        lambda torch: torch.cuda.synchronize(),
        _torch_is_ready,
        lambda torch, result: result.cpu().numpy(),
    ),
    Library(
        "cupy",
        "cupy",
        "device",
        lambda cupy, array: cupy.asarray(array),
        lambda cupy: cupy.cuda.Device().synchronize(),
        lambda cupy: cupy.cuda.runtime.getDeviceCount() > 0,
        lambda cupy, result: cupy.asnumpy(result),
        "cupy-cuda12x",
    ),
    _on_queue("pyopencl", "pyopencl", OnQueue),
    _on_queue("vkfft", "pyvkfft.opencl", OnQueue, package="pyvkfft"),
    _on_queue("clblast", "pyopencl", OnClblast, absent=no_clblast),
)


class OurCall(NamedTuple):
    """A public function, the arrays that it takes, and options."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    options: dict[str, Any]

    def explicit(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as a user would give them."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: value
            for name, value in self.options.items()
            if hasattr(value, "shape") or value != parameters[name].default
        }


class RanksCall(NamedTuple):
    """A function of `opencl_lab.distributed`, the whole arrays that it takes, and options."""

    name: str
    """With the module of the function there, if it has one: ``"fft.rfft"``."""
    arrays: tuple[Any, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class Calls:
    """The public call of an operation, and the corresponding calls of other libraries."""

    ours: Callable[[Any, Mapping[str, Any], str], OurCall | None]
    """``ours(problem, arrays, algorithm)`` returns the `OurCall` on arrays of either side, with
    ``algorithm="auto"`` the one that users make. None if no public function returns the result of
    this algorithm for the problem."""
    peers: Mapping[str, Call]
    """The calls by the names of libraries, with a suffix after a colon if a library has several."""
    resident: tuple[str, ...]
    """The inputs that a user has on the device; the others stay on the host."""
    algorithm: str = "auto"
    """The algorithm that the public function takes."""
    over_ranks: Callable[[Any, Mapping[str, Any]], RanksCall] | None = None
    """``over_ranks(problem, arrays)`` returns the call over ranks, whose arrays are distributed
    before. InvalidProblem is raised if there is none."""
    cost: Mapping[str, Callable[[Any], int]] = field(default_factory=dict)
    """For peers that may be very slow, as in a `CReference`."""
    shaped: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda problem, arrays: arrays
    """``shaped(problem, arrays)`` returns host arrays in the shapes that users of other libraries
    have: some are several times slower with dimensions of one."""
    returned: tuple[str, ...] = ()
    """Names of the outputs of the public call, if there are several. For problems with fewer
    outputs, these are the first."""
    peers_returned: tuple[str, ...] = ()
    """Names of the results of other libraries, if `Operation.compare` takes other ones."""

    def usual(self, problem: Any, arrays: Mapping[str, Any]) -> OurCall:
        """Return the call that users make."""
        call = self.ours(problem, arrays, "auto")
        assert call is not None  # there is a public function for every operation
        return call


def named(names: tuple[str, ...], result: Any) -> dict[str, Any]:
    """Return the results of a call by name."""
    several = len(names) > 1 and isinstance(result, tuple)
    return dict(zip(names, result if several else (result,), strict=False))


@dataclass(frozen=True)
class PeerReference:
    """Another library on a device; the fields are those of its `Calls`."""

    peer: str
    library: Library
    call: Call
    cost: Callable[[Any], int] | None = None
    shaped: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda problem, arrays: arrays
    returned: tuple[str, ...] = ()
    copies: bool = False
    """Whether it is called with host arrays, and each call copies them and the result."""

    threaded = False
    kind = "library"

    @property
    def name(self) -> str:
        """Name of its row."""
        return self.peer if self.copies else f"{self.peer}@device"

    def unavailable(self, device: Any = None) -> str | None:
        """Return why it cannot be compared with this OpenCL device; None if it can.

        With host arrays it may work on another device.
        """
        if self.copies:
            return self.library.missing()
        try:
            self.library.open(device)
        except ReferenceUnavailable as error:
            return str(error)
        return None


Reference: TypeAlias = CReference | HostReference | PeerReference | MpiReference


def residents(calls: Calls) -> list[PeerReference]:
    """Return the peers on device data."""
    return [
        PeerReference(
            peer,
            library,
            call,
            calls.cost.get(peer),
            calls.shaped,
            calls.peers_returned or calls.returned,
        )
        for library in LIBRARIES
        for peer, call in calls.peers.items()
        if library.side == "device" and peer.partition(":")[0] == library.name
    ]


def from_host(calls: Calls, peer: str) -> PeerReference:
    """Return the reference that calls a library on a device with host arrays."""
    there = next(item for item in residents(calls) if item.peer == peer)
    return replace(there, copies=True)


def libraries(cuda: bool) -> list[tuple[Library, Any]]:
    """Return the libraries that are installed; those on a CUDA device only if `cuda`."""
    wanted = [item for item in LIBRARIES if item.side == "host" or (cuda and item.opens is None)]
    return [(item, item.load()) for item in wanted if item.missing() is None]

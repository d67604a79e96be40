"""Other libraries as their users call them: on arrays of their own, one call after the other."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.clblast import OnClblast, no_clblast
from opencl_lab.lab.reference.descriptor import DeviceReference, imported, needs
from opencl_lab.lab.reference.on_queue import OnQueue

Call: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], Any]
"""``call(problem, module, arrays)`` returns a library's result, or None where it has none."""


@dataclass(frozen=True)
class Library:
    """How arrays get into a library, and how to wait for what it has been asked."""

    name: str
    module: str
    """What is imported and handed to a `Call`."""
    side: Literal["host", "device"] = "host"
    """Where its arrays are."""
    put: Callable[[Any, np.ndarray[Any, Any]], Any] = lambda module, array: array
    """``put(module, array)`` returns a NumPy array as one of the library's."""
    finish: Callable[[Any], None] = lambda module: None
    """``finish(module)`` waits until all calls are done."""
    ready: Callable[[Any], bool] = lambda module: True
    """``ready(module)`` returns whether its device is there."""
    get: Callable[[Any, Any], np.ndarray[Any, Any]] = lambda module, result: np.asarray(result)
    """``get(module, result)`` returns a result as a NumPy array."""
    package: str = ""
    """What pip installs it by, if that is not `name`."""
    absent: Callable[[], str | None] | None = None
    """Returns why it is not installed, or None, for what is no package of pip."""
    opens: Callable[[Any], Any] | None = None
    """``opens(device)`` returns what is handed on instead of the module: for a library that works
    on the OpenCL device that is measured. Others on a device have CUDA ones."""

    def load(self) -> Any:
        """Return the module, or None where it or its device is missing."""
        try:
            return self._imported()
        except ReferenceUnavailable:
            return None

    def missing(self) -> str | None:
        """Return why it or its device is missing, or None."""
        try:
            self._imported()
        except ReferenceUnavailable as error:
            return str(error)
        return None

    def open(self, device: Any) -> Any:
        """Return what is handed to a `Call` on data of an OpenCL device, if they can be there."""
        if self.opens is None and self.side == "device" and device.compute_capability is None:
            raise ReferenceUnavailable("it works on CUDA devices only")
        return self.reach(device)

    def reach(self, device: Any) -> Any:
        """Return what is handed to a `Call` on the device that it has: CUDA's, or the one given."""
        module = self._imported()
        return module if self.opens is None else self.opens(device)

    def _imported(self) -> Any:
        package, _, _ = self.module.partition(".")
        reason = (self.absent or needs(package, self.package or self.name))()
        if reason is not None:
            raise ReferenceUnavailable(reason)
        module = imported(self.module)
        try:
            ready = self.ready(module)
        except Exception as error:  # a broken installation says so in many ways
            raise ReferenceUnavailable(f"it does not work here: {_first_line(error)}") from error
        if not ready:
            raise ReferenceUnavailable("it finds no CUDA device")
        return module


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__


def _torch_is_ready(torch: Any) -> bool:
    """Return whether CUDA is there; products and convolutions are those of float32 then.

    By itself cuDNN rounds factors to TF32, and cuBLAS may add up parts of float16 in
    float16. cuDNN also looks for its fastest algorithm now.
    """
    if not torch.cuda.is_available():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of newer names, which older releases lack
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return True


def _on_queue(name: str, module: str, opens: Callable[[Any], Any], **more: Any) -> Library:
    """Return a library that works on the OpenCL queue that our calls take."""
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
        """Return the options that are not the default ones, as a user would give them."""
        parameters = inspect.signature(self.function).parameters
        return {
            name: value
            for name, value in self.options.items()
            if hasattr(value, "shape") or value != parameters[name].default
        }


@dataclass(frozen=True)
class Calls:
    """The public call of an operation, and what users of other libraries call instead of it."""

    ours: Callable[[Any, Mapping[str, Any], str], OurCall | None]
    """``ours(problem, arrays, algorithm)`` returns the `OurCall` on arrays of either side, with
    ``algorithm="auto"`` the one that users make. None where no public function returns what this
    algorithm gives for the problem."""
    peers: Mapping[str, Call]
    """By the names of libraries; with something after a colon where a library has several."""
    resident: tuple[str, ...]
    """The inputs that a user has on the device; the rest stays on the host."""
    algorithm: str = "auto"
    """The one that the public function takes."""
    cost: Mapping[str, Callable[[Any], int]] = field(default_factory=dict)
    """For peers that may be very slow, as of a `CReference`."""
    notes: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """``notes(problem)`` says what is special about the call of a peer, or nothing."""
    shaped: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda problem, arrays: arrays
    """``shaped(problem, arrays)`` returns arrays of the host as users of other libraries have them:
    some take several times as long where there are dimensions of one."""
    returned: tuple[str, ...] = ()
    """The outputs that the public call returns, where that is more than one. Where a problem asks
    for fewer, these are the first."""
    peers_returned: tuple[str, ...] = ()
    """What other libraries return, if `Operation.compare` takes it by other names."""

    def usual(self, problem: Any, arrays: Mapping[str, Any]) -> OurCall:
        """Return the call that users make."""
        call = self.ours(problem, arrays, "auto")
        assert call is not None  # there is a public function for every operation
        return call


def named(names: tuple[str, ...], result: Any) -> dict[str, Any]:
    """Return what a call gave by name: each array, where it may give several."""
    several = len(names) > 1 and isinstance(result, tuple)
    return dict(zip(names, result if several else (result,), strict=False))


@dataclass(frozen=True)
class Resident:
    """Another library on arrays that are on its device already; fields are those of its `Calls`."""

    peer: str
    library: Library
    call: Call
    cost: Callable[[Any], int] | None = None
    note: Callable[[Any], str] | None = None
    shaped: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda problem, arrays: arrays
    returned: tuple[str, ...] = ()

    threaded = False
    kind = "library"

    @property
    def name(self) -> str:
        """Name of its row."""
        return f"{self.peer}@device"

    def unavailable(self, device: Any) -> str | None:
        """Return why it cannot run beside this OpenCL device, or None."""
        try:
            self.library.open(device)
        except ReferenceUnavailable as error:
            return str(error)
        return None


def residents(calls: Calls) -> list[Resident]:
    """Return the peers that can have their data on a device."""
    return [
        Resident(
            peer,
            library,
            call,
            calls.cost.get(peer),
            calls.notes.get(peer),
            calls.shaped,
            calls.peers_returned or calls.returned,
        )
        for library in LIBRARIES
        for peer, call in calls.peers.items()
        if library.side == "device" and peer.partition(":")[0] == library.name
    ]


def from_host(calls: Calls, peer: str) -> DeviceReference:
    """Return the reference that takes arrays of the host to a library on a device, and back."""
    return DeviceReference(next(item for item in residents(calls) if item.peer == peer))


def libraries(cuda: bool) -> list[tuple[Library, Any]]:
    """Return the libraries that are installed; those on a CUDA device only if `cuda`."""
    wanted = [item for item in LIBRARIES if item.side == "host" or (cuda and item.opens is None)]
    found = ((item, item.load()) for item in wanted)
    return [(item, module) for item, module in found if module is not None]

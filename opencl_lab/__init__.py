"""OpenCL kernels that run on any device, measured against the libraries you would use otherwise.

The public names are listed here; everything else may move. A name is imported at its first use, so
that `import opencl_lab`, the command line's ``--help`` and child processes do not wait for OpenCL.
"""

import opencl_lab.core.early  # noqa: F401 - before all others: Ctrl-C may come at any time

# isort: split
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from opencl_lab._version import __version__ as __version__

if TYPE_CHECKING:  # what a type checker reads of `_REGISTRY`
    from opencl_lab import distributed as distributed
    from opencl_lab import fft as fft
    from opencl_lab import ndimage as ndimage
    from opencl_lab import scipy_backend as scipy_backend
    from opencl_lab import signal as signal
    from opencl_lab.core.device import Capabilities as Capabilities
    from opencl_lab.core.device import Device as Device
    from opencl_lab.core.errors import BuildError as BuildError
    from opencl_lab.core.errors import DeviceNotFound as DeviceNotFound
    from opencl_lab.core.errors import InvalidConfig as InvalidConfig
    from opencl_lab.core.errors import InvalidProblem as InvalidProblem
    from opencl_lab.core.errors import LaunchError as LaunchError
    from opencl_lab.core.errors import OclabError as OclabError
    from opencl_lab.core.errors import ReferenceUnavailable as ReferenceUnavailable
    from opencl_lab.drivers.discovery import DeviceFallbackWarning as DeviceFallbackWarning
    from opencl_lab.drivers.discovery import devices as devices
    from opencl_lab.drivers.discovery import select_device as select_device
    from opencl_lab.lab.compare import compare as compare
    from opencl_lab.lab.engine.row import Measurement as Measurement
    from opencl_lab.lab.tuning.result import TuneResult as TuneResult
    from opencl_lab.lab.tuning.tune_kernel import tune_kernel as tune_kernel
    from opencl_lab.lab.tuning.tuner import tune as tune
    from opencl_lab.ops.conv2d.functions import conv2d as conv2d
    from opencl_lab.ops.fft.functions.direct import dft as dft
    from opencl_lab.ops.gemm.functions import gemm as gemm
    from opencl_lab.ops.prepared import Prepared as Prepared
    from opencl_lab.ops.prepared import prepare as prepare
    from opencl_lab.ops.select.functions import searchsorted as searchsorted
    from opencl_lab.ops.select.functions import topk as topk
    from opencl_lab.ops.select.unique import unique as unique
    from opencl_lab.ops.sort.functions import argsort as argsort
    from opencl_lab.ops.sort.functions import sort as sort
    from opencl_lab.ops.sort.functions import sort_by_key as sort_by_key
    from opencl_lab.runtime.exchange import to_device as to_device
    from opencl_lab.runtime.exchange import to_dlpack as to_dlpack
    from opencl_lab.runtime.profiling import Profile as Profile
    from opencl_lab.runtime.profiling import profile as profile
    from opencl_lab.runtime.replay import free_memory as free_memory
    from opencl_lab.selftest.trust import SelfTestWarning as SelfTestWarning

_REGISTRY = {
    "lab.engine.row": ("Measurement",),
    "lab.compare": ("compare",),
    "core.device": ("Capabilities", "Device"),
    "drivers.discovery": ("DeviceFallbackWarning", "devices", "select_device"),
    "core.errors": (
        "BuildError",
        "DeviceNotFound",
        "InvalidConfig",
        "InvalidProblem",
        "LaunchError",
        "OclabError",
        "ReferenceUnavailable",
    ),
    "ops.fft.functions.direct": ("dft",),
    "ops.conv2d.functions": ("conv2d",),
    "ops.gemm.functions": ("gemm",),
    "ops.select.functions": ("searchsorted", "topk"),
    "ops.select.unique": ("unique",),
    "ops.sort.functions": ("argsort", "sort", "sort_by_key"),
    "ops.prepared": ("Prepared", "prepare"),
    "runtime.exchange": ("to_device", "to_dlpack"),
    "runtime.profiling": ("Profile", "profile"),
    "runtime.replay": ("free_memory",),
    "selftest.trust": ("SelfTestWarning",),
    "lab.tuning.tune_kernel": ("tune_kernel",),
    "lab.tuning.result": ("TuneResult",),
    "lab.tuning.tuner": ("tune",),
}
_MODULES = ("distributed", "fft", "ndimage", "scipy_backend", "signal")

__all__ = sorted((*chain(*_REGISTRY.values()), *_MODULES, "__version__"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"opencl_lab.{name}")
    for module, names in _REGISTRY.items():
        if name in names:
            value = getattr(import_module(f"opencl_lab.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

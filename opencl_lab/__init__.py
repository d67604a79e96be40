"""OpenCL kernels that run on any device, measured against the libraries you would use otherwise.

The public names are listed here; everything else may move.
"""

from opencl_lab import operations as operations
from opencl_lab.device import (
    Capabilities,
    Device,
    DeviceFallbackWarning,
    devices,
    select_device,
)
from opencl_lab.errors import (
    BuildError,
    DeviceNotFound,
    InvalidConfig,
    InvalidProblem,
    LaunchError,
    OclabError,
    ReferenceUnavailable,
)
from opencl_lab.operations.sort import argsort, sort, sort_by_key

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "Capabilities",
    "Device",
    "DeviceFallbackWarning",
    "DeviceNotFound",
    "InvalidConfig",
    "InvalidProblem",
    "LaunchError",
    "OclabError",
    "ReferenceUnavailable",
    "__version__",
    "argsort",
    "devices",
    "select_device",
    "sort",
    "sort_by_key",
]

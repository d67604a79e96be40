"""Sorting, matrix products, FFTs and convolutions of arrays that lie on many ranks of MPI.

Every rank calls the same functions with the same arguments (but for its own part of the data). Each
drives one device. `comm` is a communicator of mpi4py, by default that of all ranks; with one
rank, the functions are those of `opencl_lab`. See ``docs/distributed.md``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opencl_lab.distributed.array import DistArray as DistArray
    from opencl_lab.distributed.devices import device_of as device_of
    from opencl_lab.distributed.layout import block_cyclic as block_cyclic
    from opencl_lab.distributed.layout import blocks as blocks
    from opencl_lab.distributed.layout import slab as slab

_REGISTRY = {
    "array": ("DistArray",),
    "devices": ("device_of",),
    "layout": ("block_cyclic", "blocks", "slab"),
}

__all__ = sorted(name for names in _REGISTRY.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _REGISTRY.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

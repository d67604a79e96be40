"""Everything that calls OpenCL after discovery: building, memory, launching, timing."""

from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.execute import Execution, execute
from opencl_lab.runtime.session import Session, default_queue, session_of

__all__ = ["Execution", "Session", "default_queue", "execute", "is_device_array", "session_of"]

"""What a runtime itself costs: a launch of nothing, an allocation, launches of an executable."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pyopencl as cl

from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import device_call
from opencl_lab.runtime.session import session_of

NOTHING = "__kernel void nothing(void) {}"


class Bare:
    """A queue without profiling in the context of another, and what can be enqueued on it."""

    def __init__(self, queue: cl.CommandQueue):
        self.context = queue.context
        self.queue = cl.CommandQueue(queue.context, queue.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a log is no failure
            program = cl.Program(queue.context, NOTHING).build()
        self._nothing = cl.Kernel(program, "nothing")

    def finish(self) -> None:
        """Wait for all that was enqueued."""
        self.queue.finish()

    def launch(self) -> None:
        """Enqueue a kernel of one work-item that does nothing."""
        cl.enqueue_nd_range_kernel(self.queue, self._nothing, (1,), (1,))

    def launch_and_finish(self) -> None:
        """Enqueue that kernel and wait for it."""
        self.launch()
        self.queue.finish()

    def allocate(self, nbytes: int) -> Any:
        """Return new memory of the driver's."""
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(nbytes, 1))

    def launches(self, executable: Executable, inputs: Mapping[str, Any]) -> Callable[[], None]:
        """Return what enqueues an executable on device arrays, with its results in pooled memory.

        Nothing can be quicker from Python: no array is made, checked or looked up.
        """
        session = session_of(self.queue)
        fixed = [array.base_data for array in inputs.values()]
        outputs = executable.plan.with_role("out")
        fresh = [max(spec.nbytes, 1) for spec in outputs]
        call = device_call(executable, self.queue, (*inputs, *(spec.name for spec in outputs)))

        def enqueue() -> None:
            call.enqueue(fixed + [session.allocate(self.queue, nbytes) for nbytes in fresh])

        return enqueue

"""The launch baseline: the cost of an empty launch, an allocation, and an executable's launches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pyopencl as cl

from opencl_lab.core.queues import new_kernel, new_program
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import device_call
from opencl_lab.runtime.session import session_of

NOTHING = "__kernel void nothing(void) {}"


class LaunchBaseline:
    """Operations to time on a queue without profiling, in the context of another queue."""

    def __init__(self, queue: cl.CommandQueue):
        self.context = queue.context
        self.queue = cl.CommandQueue(queue.context, queue.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a build log is not a failure
            program = new_program(queue.context, NOTHING).build()
        self._nothing = new_kernel(program, "nothing")

    def finish(self) -> None:
        """Wait for all enqueued work."""
        self.queue.finish()

    def launch(self) -> None:
        """Enqueue an empty kernel of one work-item."""
        cl.enqueue_nd_range_kernel(self.queue, self._nothing, (1,), (1,))

    def launch_and_finish(self) -> None:
        """Enqueue that kernel and wait for it."""
        self.launch()
        self.queue.finish()

    def allocate(self, nbytes: int) -> Any:
        """Return a new buffer of the driver."""
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(nbytes, 1))

    def launches(self, executable: Executable, inputs: Mapping[str, Any]) -> Callable[[], None]:
        """Return a function that enqueues an executable on device arrays, with pooled results.

        It is the least that a call can cost from Python: no array is made, checked or looked up.
        """
        pool = session_of(self.queue).pool(self.queue)
        fixed = [array.base_data for array in inputs.values()]
        outputs = executable.plan.with_role("out")
        fresh = [max(spec.nbytes, 1) for spec in outputs]
        call = device_call(executable, self.queue, (*inputs, *(spec.name for spec in outputs)))

        def enqueue() -> None:
            blocks = list(map(pool.take, fresh))
            call.enqueue(fixed + blocks)
            for nbytes, block in zip(fresh, blocks, strict=True):
                pool.give(nbytes, block)

        return enqueue

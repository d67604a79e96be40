"""What comes before all else, Ctrl-C and the end of the process; it imports next to nothing."""

import atexit
import os
import signal
import sys

INTERRUPTED = 130  # the exit status


def interrupted(*signal_and_frame: object) -> None:
    """Print that the process was interrupted, and end it."""
    os.write(2, b"oclab: interrupted\n")
    os._exit(INTERRUPTED)


def _end_calls() -> None:
    if "opencl_lab.core.queues" in sys.modules:  # else OpenCL has not been used
        from opencl_lab.core.queues import end_calls

        end_calls()


atexit.register(_end_calls)  # before others: so functions that users register can still make calls


def is_command() -> bool:
    """Return whether this process was started as ``oclab`` or ``python -m opencl_lab``."""
    script = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - imports no more
    # Python replaces this -m when it has found the module to run.
    return script in ("oclab", "oclab.exe") or (script == "-m" and "opencl_lab" in sys.orig_argv)


# `opencl_lab.lab.interrupt.exit_at_interrupt` ends this. The parent may have Ctrl-C ignored.
if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, interrupted)

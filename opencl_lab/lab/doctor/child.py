"""The child of one probe: ``python -m opencl_lab.lab.doctor.child PROBE DEVICE_SPEC [held]``.

PROBE is ``module:function``. Every step that the function yields goes to stdout as one line of
JSON at once, so that the parent knows how far the probe came when the driver takes this process
down. A child that is held gets ready, and begins when its standard input is closed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from contextlib import suppress

# Longer than any limit of the parent: it only ends a child whose parent is gone.
ORPHAN_SECONDS = 300


def main(target: str, spec: str, held: str = "") -> None:
    """Run the probe `target` on the device `spec` and print its steps."""
    # What a driver prints must not mix with the steps: its stdout becomes our stderr.
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as steps:
        os.dup2(2, 1)
        from opencl_lab.drivers.discovery import select_device

        module, _, function = target.partition(":")
        probe = getattr(importlib.import_module(module), function)
        try:
            device = select_device(spec)
            if held:
                sys.stdin.read()
            for step in probe(device):
                print(json.dumps(step), file=steps)
        except Exception as error:
            # A step, so that this is no driver that ends the process with some status.
            print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=steps)
        from opencl_lab.drivers.pocl import record_built

        record_built()


def _prepare() -> None:
    """Arrange that a crash leaves no core file and an orphan ends by itself."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if hasattr(signal, "alarm"):
        signal.alarm(ORPHAN_SECONDS)


if __name__ == "__main__":
    _prepare()
    main(*sys.argv[1:])
    # A driver that fails while it is unloaded must not spoil what was found.
    os._exit(0)

"""Entry point of `oclab` and `python -m opencl_lab`; Ctrl-C is handled during imports, too."""

import sys

from opencl_lab.core.early import INTERRUPTED, command, interrupted, leave, watch


def main() -> int:
    """Run the command line and return its exit status."""
    watch()
    try:
        from opencl_lab.lab.cli import main as run

        command.raises = True
        command.status = status = run()
    except KeyboardInterrupt:  # before or after `run` handles it
        interrupted()
        return INTERRUPTED
    finally:
        command.raises = False
    if status == INTERRUPTED:
        leave(status, "")  # Python would wait for threads
    return status


if __name__ == "__main__":
    sys.exit(main())

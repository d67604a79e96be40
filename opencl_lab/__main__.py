"""Entry point of `oclab` and `python -m opencl_lab`; Ctrl-C is handled during imports, too."""

import sys

from opencl_lab.core.early import INTERRUPTED, interrupted
from opencl_lab.lab.interrupt import exit_at_interrupt


def main() -> int:
    """Run the command line and return its exit status."""
    try:
        with exit_at_interrupt():
            from opencl_lab.lab.cli import main as run
        return run()
    except KeyboardInterrupt:  # before or after `run` handles it
        interrupted()
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

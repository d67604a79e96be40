"""Entry point of `oclab` and `python -m opencl_lab`; Ctrl-C is handled during imports, too."""

import sys
from typing import Any

from opencl_lab.core.early import INTERRUPTED, command, interrupted, leave, watch


def main() -> int:
    """Run the command line and return its exit status."""
    watch()
    modules: dict[str, Any] = sys.modules
    # Mako would import Pygments, to colour pages of errors that it does not make here.
    modules.setdefault("mako.ext.pygmentplugin", None)
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

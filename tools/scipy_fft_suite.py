"""Run SciPy's FFT test suite with opencl_lab as backend, and list the skipped tests.

    python tools/scipy_fft_suite.py [--device SPEC] [FILE ...]

SciPy's calls go to opencl_lab; what it does not support goes on to SciPy, as for any user of
`scipy.fft.set_global_backend`. Prints the tests that were left out, with the reason, and how many
calls ran where. The exit status is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

LEFT_OUT = {
    # SciPy checks here how its own backends are chosen, and sets them itself.
    "test_backend.py": "sets backends itself",
    # opencl_lab has none.
    "test_fftlog.py": "Hankel transforms",
    # Many processes and threads over SciPy's own worker pool.
    "test_multithreading.py": "SciPy's worker threads",
    "test_multiprocess": "child processes made by fork cannot use OpenCL",
}


def main() -> int:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("OCLAB_DEVICE", "cpu"))
    parser.add_argument("files", nargs="*", help="such as test_basic.py; all by default")
    arguments = parser.parse_args()
    os.environ["OCLAB_DEVICE"] = arguments.device

    import scipy.fft.tests
    from scipy_ndimage_suite import run_suite

    import opencl_lab as ol

    folder = Path(scipy.fft.tests.__file__).parent
    # Global, so that threads use it too.
    scipy.fft.set_global_backend(ol.scipy_backend)
    status = run_suite([folder / name for name in arguments.files] or [folder], LEFT_OUT, [])
    print(f"on {ol.select_device()}: {ol.scipy_backend.calls}")
    if not ol.scipy_backend.calls["here"]:
        print("no call ran here: the backend was not used")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

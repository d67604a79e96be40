"""Run silx's and gputools' tests of their filters on those of opencl_lab.ndimage.

    pip install '.[pocl,test]' silx==3.1.3 gputools==0.3.1 scikit-image
    python tools/peer_suites.py [PYTEST OPTION ...]

The adapters of docs/examples take the places of their OpenCL code. silx's wheel has its tests;
pip downloads those of gputools. Prints what is left out; the exit status is that of pytest.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.datasets
import scipy.ndimage
from scipy_ndimage_suite import run_suite

sys.path.append(str(Path(__file__).parents[1] / "docs/examples"))
SILX = (
    "opencl/test/test_convolution.py",
    "opencl/test/test_medfilt.py",
    "image/test/test_medianfilter.py",
)
LEFT_OUT = {
    "test_rank_downscale.py": "ranks of blocks, not of windows",
    "test_convolve_spatial": "weights that depend on the place, by FFT",
}
"""Of gputools' tests of its convolutions, and why."""


def silx_suite(options: list[str]) -> int:
    """Run silx's tests, on a picture of noise in place of one that SciPy would download."""
    picture = np.random.default_rng(0).integers(0, 256, (512, 512))
    scipy.datasets.ascent = lambda: picture
    import silx
    import silx_adapter  # noqa: F401
    from silx.opencl.medfilt import MedianFilter2D

    folder = Path(silx.__file__).parent
    status = run_suite([folder / name for name in SILX], {}, options)
    found = MedianFilter2D(picture.shape)(picture.astype(np.float32), (11, 5))
    right = scipy.ndimage.median_filter(picture, (11, 5), mode="nearest")
    # Of PoCL's medians silx's test asks nothing.
    return status or int(not np.array_equal(found, right))


def gputools_suite(options: list[str]) -> int:
    """Run gputools' tests of the filters that the adapter has."""
    import gputools_adapter  # noqa: F401

    package = f"gputools=={version('gputools')}"
    with tempfile.TemporaryDirectory() as scratch:
        load = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*load, "-d", scratch, package], check=True)
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        tests = Path(scratch) / archive.name.removesuffix(".tar.gz") / "tests/convolve"
        return run_suite([tests], LEFT_OUT, options)


if __name__ == "__main__":
    sys.exit(silx_suite(sys.argv[1:]) or gputools_suite(sys.argv[1:]))

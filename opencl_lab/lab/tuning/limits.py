"""How long the steps of a search may take, and what it means where the first takes longer."""

from __future__ import annotations

import math

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.space import Config

GENEROUS = 60.0  # seconds for anything before the first measurement
HOST_SECONDS = 600.0  # inputs and expected results; no configuration is to blame for them
LEAST_BUILD, BUILD_FACTOR = 10.0, 10.0  # of the usual time
GRACE = 5.0
PHASE_SHARE = 1 / 3
"""Of the time limit, for one phase of a configuration: what needs more cannot be tried in time."""


def longest_phase(timeout: float | None, time_limit: float | None) -> float:
    """Return the seconds that no phase of a configuration may exceed on the device.

    Both limits are as `opencl_lab.tune` takes them.
    """
    share = math.inf if time_limit is None else max(GRACE, PHASE_SHARE * time_limit)
    return share if timeout is None else min(share, timeout)


def no_reference(first: Config, reason: str) -> LaunchError:
    """Return the error that nothing can be compared, as the first configuration does not run."""
    return LaunchError(
        f"the first configuration {first}, with which all others are compared, does not run: "
        f"{reason}; put one first that runs, or give its expected result (--check FILE), or more "
        "time (--timeout, --time-limit)"
    )

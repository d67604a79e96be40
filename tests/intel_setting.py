"""Intel's runtime for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys

NAMES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCLAB_INTEL")


DISCOVER = """
import json, os, sys
import opencl_lab as ol
from opencl_lab.drivers.discovery import choose_device
from opencl_lab.lab.doctor.installation import installation
found = [device.platform for device in ol.devices()]
rows = {tool.name: [tool.verdict, tool.detail, tool.advice] for tool in installation()}
print(json.dumps([found, rows, choose_device("cpu").reason]))
"""


def discover(program=DISCOVER, **environ):
    """Return the platforms, the installation and why a device is chosen, in a new process."""
    unset = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**unset, **environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)

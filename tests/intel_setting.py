"""Intel's runtime for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from opencl_lab.drivers import intel

NAMES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCLAB_INTEL")


def register(tmp_path):
    """Register as discovery does; return the folder that the loader is to read, None if its own."""
    intel.register(tmp_path / "root")
    name = os.environ.get("OPENCL_VENDOR_PATH")
    return Path(name) if name else None


def libraries(folder):
    """Return what the loader loads when it reads a folder."""
    return {path.read_text().split("\n")[0] for path in folder.glob("*.icd")}


DISCOVER = """
import json, os, sys
import opencl_lab as ol
from opencl_lab.core.device import Device
from opencl_lab.lab.doctor.installation import installation
from opencl_lab.core.errors import DeviceNotFound
found = [device.platform for device in ol.devices()]
rows = {tool.name: [tool.verdict, tool.detail, tool.advice] for tool in installation()}
print(json.dumps([found, rows, os.environ.get("OPENCL_VENDOR_PATH")]))
"""


def discover(program=DISCOVER, **environ):
    """Return the platforms, the installation and the folder of drivers in a new process."""
    unset = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**unset, **environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)

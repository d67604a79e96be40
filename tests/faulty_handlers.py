"""The child of the self-test on a device with a fault, which the environment names."""

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

from opencl_lab.core import template
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.ops.selftest import SelfTest
from opencl_lab.ops.sort.gather import GATHER
from opencl_lab.runtime import programs
from opencl_lab.selftest.child import TrialError
from opencl_lab.selftest.verdicts import DEVICE, Family


class Faulty(SelfTest):
    """Says what it tests in the file `TESTED`; breaks the families that `WRONG` names.

    The fault is `FAULT`: ``wrong``, ``crash``, ``hang``, ``once`` (a crash of the first child),
    ``killed``, ``raises``, ``garbage``,
    ``error`` (a trial's), ``refused`` (once), ``basics``, ``vanished`` (the device) or ``lost``.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if os.environ["FAULT"] == "lost":
            os._exit(3)
        if os.environ["FAULT"] == "vanished":
            raise DeviceNotFound("a second process finds another one in its place")

    def families(self):
        return Verdict(
            "ok", value=[(Family("gather", "words"), GATHER.algorithm("words").templates)]
        )

    def test(self, family):
        with Path(os.environ["TESTED"]).open("a", encoding="utf-8") as file:
            file.write(f"{family.key}\n")
        fault = os.environ["FAULT"]
        if family == DEVICE:
            return (
                Verdict("broken", "a loop ends early")
                if fault == "basics"
                else Verdict("ok", "", 1)
            )
        if family.algorithm in os.environ["WRONG"].split(","):
            if fault == "crash":
                os.abort()  # PoCL catches signals that were sent
            elif fault == "once" and _first():
                os.abort()
            elif fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif fault == "raises":
                raise ValueError("planted")
            elif fault == "garbage":
                return 7
            elif fault == "error" or (fault == "refused" and _first()):
                raise TrialError("some sort: CL_OUT_OF_RESOURCES")
            elif fault == "hang":
                time.sleep(600)
            elif fault == "wrong":
                programs.render = _without_a_byte
        return super().test(family)


def _first():
    path = Path(os.environ["TESTED"] + ".once")
    first = not path.exists()
    path.touch()
    return first


def _without_a_byte(path, params):
    """Render a sort that ignores one byte of each key."""
    source = template.render(path, params)
    code = r"(ukey_t code\(.*?return result)"
    text = re.sub(code, r"\1 & ~(ukey_t)0xff0000", source.text, count=1, flags=re.DOTALL)
    return replace(source, text=text)

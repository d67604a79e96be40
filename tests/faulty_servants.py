"""The child of the self-test on a device with a fault, which the environment names."""

import os
import time
from dataclasses import replace
from pathlib import Path

from opencl_lab.core import template
from opencl_lab.ops.selftest import SelfTest
from opencl_lab.ops.sort.gather import GATHER
from opencl_lab.runtime import programs
from opencl_lab.selftest.verdicts import BASICS, Family


class Faulty(SelfTest):
    """Says what it tests in the file `TESTED`; breaks the families that `WRONG` names.

    The fault is `FAULT`: ``wrong``, ``crash``, ``hang``, ``basics`` or ``lost``.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if os.environ["FAULT"] == "lost":
            os._exit(3)

    def families(self):
        return [(Family("gather", "words"), GATHER.algorithm("words").templates)]

    def test(self, family):
        with Path(os.environ["TESTED"]).open("a", encoding="utf-8") as file:
            file.write(f"{family.key}\n")
        fault = os.environ["FAULT"]
        if family == BASICS:
            return ("a loop ends early" if fault == "basics" else ""), 1
        if family.algorithm in os.environ["WRONG"].split(","):
            if fault == "crash":
                os.abort()  # PoCL catches signals that were sent
            elif fault == "hang":
                time.sleep(600)
            elif fault == "wrong":
                programs.render = _without_a_bit
        return super().test(family)


def _without_a_bit(path, params):
    """Render a sort that ignores one bit of each digit."""
    source = template.render(path, params)
    text = source.text.replace("& mask", "& mask & ~2u")
    return replace(source, text=text)

"""Documents as the commands write them, for tests of what reads them."""

import json

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times

DEVICE = {"name": "Some device", "platform": "Some platform", "driver": "1.0", "compute_units": 2}
OPTIONS = {"dtype": "int32", "order": "random", "seed": 0}


def row(name="opencl:radix", samples=(2.0, 2.1, 2.2, 2.3, 2.4), **other):
    kind, _, algorithm = name.partition(":")
    given = {"kind": kind, "algorithm": algorithm, "kernel_ms": 1.0, "threads": 1, **other}
    if samples and "total_ms" not in given:
        given["total_ms"] = Times.of(samples)
    return Measurement(name, **given)


def slower(factor, name="opencl:radix", **other):
    return row(name, [factor * ms for ms in (2.0, 2.1, 2.2, 2.3, 2.4)], **other)


def sweep(path, *rows, n=1000, **other):
    """Write a document as `oclab bench sort` does."""
    content = {
        "schema": "oclab/1", "command": "bench", "version": "0.1.0", "device": DEVICE,
        "problem": {"operation": "sort", "sizes": [n]}, "options": OPTIONS,
        "results": [{"n": n, **item.as_row()} for item in rows], **other,
    }  # fmt: skip
    path.write_text(json.dumps(content), encoding="utf-8")
    return path

"""Made-up rows of studies, to ask questions of."""

from dataclasses import replace

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import PartResult, StudyPoint


def row(name, milliseconds, spread=0.01, **more):
    kind, _, rest = name.partition(":")
    more.setdefault("algorithm", rest.partition("[")[0] if kind == "opencl" else name)
    times = Times(milliseconds, (1 - spread) * milliseconds, (1 + spread) * milliseconds, 5)
    if "kernel_ms" in more:
        kernel = more["kernel_ms"]
        more["kernel_times"] = Times(kernel, 0.99 * kernel, 1.01 * kernel, 5)
    return Measurement(
        name, kind if kind in ("opencl", "mpi", "c") else "library", total_ms=times, **more
    )


def result(rows_by_size, name="gemm", option="size"):
    part = replace(STUDIES["gemm"].parts[0], name=name)
    points = [(StudyPoint({option: size}), rows) for size, rows in rows_by_size.items()]
    return PartResult(part, points)

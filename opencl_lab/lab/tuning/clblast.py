"""CLBlast's tuning results for GEMM as configurations of the algorithm `blocked`.

CLBlast is column-major, so elements along its M are adjacent, as along our N. Its M is our N,
its A our B, and vice versa.

    CLBlast xgemm      xgemm_direct    blocked
    MDIMC              MDIMCD          WG_N
    NDIMC              NDIMCD          WG_M
    MWG / MDIMC        WGD / MDIMCD    WORK_N
    NWG / NDIMC        WGD / NDIMCD    WORK_M
    KWG                WGD             TILE_K
    0                  PADA or PADB    LOCAL_PAD
    1                  1               BUFFERS, SWIZZLE, SPLITS

Left out: whether and in which vectors matrices go through local memory (SA, SB, VWM, VWN, VWMD,
VWND), which follows from the matrices here; how items share the loads (MDIMA, NDIMB, MDIMAD,
NDIMBD) and which of an item's elements lie apart (STRM, STRN); how far loops are unrolled (KWI,
KWID); and the second kernel of xgemm (GEMMK 1, KREG), which has no local tiles. CLBlast tunes xgemm
on matrices that were packed beforehand, and does not time the packing. So its times only tell in
which order to try configurations.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from opencl_lab.core.records import parsed, typed
from opencl_lab.core.space import Config
from opencl_lab.core.wording import counted
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.interchange import Recording, reading, values_of

DTYPES = {32: "float32", 64: "float64"}
UNUSED = (
    "KREG", "KWI", "KWID", "MDIMA", "MDIMAD", "NDIMB", "NDIMBD", "SA", "SB", "STRM", "STRN", "VWM",
    "VWMD", "VWN", "VWND",
)  # fmt: skip


class _Result(Struct):
    parameters: dict[str, int]
    time: float


class _Results(Struct):
    kernel_family: str
    precision: int
    results: list[_Result]
    arg_m: int | None = None
    arg_n: int | None = None
    arg_k: int | None = None
    device: str = ""
    clblast_device_name: str = ""


@reading("result of CLBlast's GEMM tuners")
def from_clblast(text: str) -> Recording:
    """Return the run in the JSON that CLBlast's tuner of a GEMM kernel writes.

    Of configurations that differ only in what is left out, the fastest is kept.
    """
    content = typed(_Results, parsed(text), strict=False)  # most numbers are texts there
    family, precision = content.kernel_family, content.precision
    if not family.startswith("xgemm"):
        raise ValueError(f"kernel {family!r} has no counterpart here; only those of xgemm have one")
    if precision not in DTYPES:
        raise ValueError(f"precision {precision}; gemm has {' and '.join(map(str, DTYPES))} bits")
    best: dict[Config, Evaluation] = {}
    without, unused = 0, set()
    for result in content.results:
        parameters, time_ms = result.parameters, result.time
        unused |= {name for name in UNUSED if name in parameters}
        config = _config(parameters)
        if config is None or not time_ms > 0:
            without += 1
            continue
        if config not in best or time_ms < best[config].time_ms:
            best[config] = Evaluation(config, "correct", times_ms=(time_ms,))
    notes = []
    if unused:
        notes.append(f"{', '.join(sorted(unused))} have no counterpart here and are left out")
    if without:
        notes.append(
            f"left out: {counted(without, 'result')} without local tiles or without a time"
        )
    evaluations = sorted(best.values(), key=lambda evaluation: evaluation.time_ms)
    swapped = {"m": content.arg_n, "n": content.arg_m, "k": content.arg_k}
    sizes = {name: size for name, size in swapped.items() if size is not None}
    return Recording(
        content.device or content.clblast_device_name,
        family,
        tuple(sizes.values()),
        values_of(evaluations),
        evaluations,
        {
            "operation": "gemm",
            "algorithm": "blocked",
            "problem": {**sizes, "dtype": DTYPES[precision]},
        },
        tuple(notes),
    )


def _config(given: Mapping[str, int]) -> Config | None:
    """Return the corresponding configuration; None if there is none."""
    if "WGD" in given:
        columns = rows = depth = given["WGD"]
        items = given["MDIMCD"], given["NDIMCD"]
        pad = max(given.get("PADA", 0), given.get("PADB", 0))
    elif given.get("GEMMK", 0) == 0:
        columns, rows, depth = given["MWG"], given["NWG"], given["KWG"]
        items = given["MDIMC"], given["NDIMC"]
        pad = 0
    else:
        return None
    return Config(
        WORK_M=rows // items[1],
        WORK_N=columns // items[0],
        WG_M=items[1],
        WG_N=items[0],
        TILE_K=depth,
        BUFFERS=1,
        LOCAL_PAD=pad,
        SWIZZLE=1,
        SPLITS=1,
    )

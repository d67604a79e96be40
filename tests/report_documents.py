"""Documents that reports are made of."""

from documents import DEVICE, OPTIONS, row, slower, sweep

from opencl_lab.core.plan import Work
from opencl_lab.lab.measuring.difference import Difference

ENVIRONMENT = {
    "started": "2026-05-04T03:02:01+00:00", "system": "Linux", "cpu": "A CPU", "processors": 4,
    "memory_bytes": 3 << 30, "packages": {"numpy": "2.0", "mako": "1.3"},
    "compiler": {"path": "/usr/bin/cc", "version": "cc 12", "flags": ["-O3", "-fopenmp"]},
    "git": {"commit": "0123456789abcdef", "changed": True}, "variables": {"OMP_NUM_THREADS": "4"},
    "load": [3.5, 2.0, 1.0], "busy": "others keep 2 of 4 processors busy",
    "gpu": {"clock_mhz": 345, "max_clock_mhz": 1980, "power_w": 70.5, "throttled": []},
    "gpu_end": {"clock_mhz": 1980, "max_clock_mhz": 1980, "power_w": 310.0, "throttled": ["power"]},
}  # fmt: skip


def timed(factor, name, baseline=4.0, **other):
    given = {"work": Work(0, 8e3), "difference": Difference.exact(0.0, 0.0, True), **other}
    return slower(factor, name, speedup=baseline / factor, **given)


def write_sweep(path, name="opencl:radix"):
    """Write a sweep in which the first wins from 1000 on, one is missing and one fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    absent = row("blas", samples=(), status="unavailable", reason="no BLAS is installed")
    sizes = {
        100: [timed(8, name), timed(1, "c:seq"), timed(4, "numpy"), absent],
        1000: [timed(16, name), timed(64, "c:seq"), timed(32, "numpy"), absent],
        10000: [
            timed(100, name), timed(1000, "c:seq"), timed(110, "numpy"), absent,
            row("opencl:merge-path", samples=(), status="compile", reason="error: no such type"),
        ],
    }  # fmt: skip
    rows = [{"n": n, **item.as_row()} for n, items in sizes.items() for item in items]
    problem = {"operation": "sort", "sizes": list(sizes)}
    return sweep(path, problem=problem, results=rows)


def write_study(path):
    """Write a document as `oclab study` does."""
    shapes = {"square": [(8, 8, 8), (16, 16, 16)], "tall": [(8, 8, 8), (16, 8, 4)]}
    rows = [
        {"part": part, "dtype": "float64", **dict(zip("mnk", shape, strict=True)), **one.as_row()}
        for part in ("square", "tall")
        for shape in shapes[part]
        for one in (timed(3, "opencl:tiled", kind="opencl"), timed(9, "c:seq"))
    ]
    return sweep(
        path, command="study", study="matmul", scale="small", problem=None, options=None,
        answers=[{"question": "Which is the fastest?", "answer": ["opencl:tiled.", "By far."]}],
        notes=["TILE=32 is left out", "TILE=32 is left out"],
        results=rows,
    )  # fmt: skip


def many(path, sizes, *names, device=DEVICE, **more):
    """Write a sweep in which the first name is the fastest, each other one twice as slow."""
    rows = [
        {"n": n, **timed(n * 2**place, name, **more).as_row()}
        for n in sizes
        for place, name in enumerate(names)
    ]
    problem = {"operation": "sort", "sizes": list(sizes)}
    return sweep(path, problem=problem, results=rows, device=device)


def write_search(path):
    """Write a document as `oclab tune` does."""
    config = {"WG_SIZE": 64, "TILE": 8}
    tried = [
        {"config": {**config, "WG_SIZE": 64 + place}, "status": "correct", "reason": "",
         "times_ms": [9.0 / (1 + place), 9.5 / (1 + place)]}
        for place in range(6)
    ]  # fmt: skip
    tried.append({"config": config, "status": "compile", "reason": "no", "times_ms": []})
    best = row("opencl:tiled", samples=(), config={**config, "WG_SIZE": 69}, kernel_ms=1.5)
    default = row("opencl:tiled", samples=(), config=config, kernel_ms=3.0)
    spread = {"kernel_spread_ms": {"median": 1.5, "min": 1.4, "max": 1.6, "runs": 3}}
    finals = [{**best.as_row(), **spread}, default.as_row()]
    return sweep(
        path, command="tune", problem={"operation": "gemm", "m": 8}, algorithm="tiled",
        results=finals[:1], default=finals[1], finalists=finals, evaluations=tried, stable=True,
        speedup_over_default=2.0, seconds=4.2, stopped="budget", stored=True, notes=["a note"],
        removed={"total": 5000, "left": 1200, "exact": True},
    )  # fmt: skip


def write_all(folder):
    """Write a document of each kind, nested, and what is none; return how many rows there are."""
    write_sweep(folder / "a/results.json")
    write_study(folder / "b.json")
    single = [timed(1, "opencl:radix").as_row(), timed(2, "numpy", data="device").as_row()]
    arguments = ["sort", "--n", "5", "--json", "a b"]
    sweep(
        folder / "c.json", command="sort", results=single, problem={"n": 5},
        options={**OPTIONS, "n": 5}, arguments=arguments,
        environment=ENVIRONMENT,
    )  # fmt: skip
    call = {"what": "public call", "side": "host", "call_us": 12.0, "host_us": 8.0}
    calls = [{"n": 7, "problem": {}, "calls": [call], "launches": 2, "result_bytes": 9}]
    sweep(folder / "d.json", results=calls)
    (folder / "e.json").write_text("{")
    sweep(folder / "f.json", schema="oclab/2")
    sweep(folder / "g.json", command="doctor", results=[])
    (folder / "h.json").write_text('{"name": "a package"}')

"""The processes in which configurations are built and tried, so that none can harm the tuner.

Each has a role: ``trial`` checks and times, ``builder`` builds ahead. It reads from stdin: a
pickled dict of what its interpreter needs to find modules, a pickled `TuningTask`, then requests,
each a line of JSON:

    {"do": "evaluate" | "prove" | "again" | "build", "config": {...}, "best_ms": number | null,
     "whole": true | false, "alarm": seconds}

To stdout go lines of JSON: ``{"phase": ...}`` before each phase, then one of
``{"done": {...}}``, an `Evaluation`, and ``{"failed": text, "kind": ..., "details": {...}}``,
which ends it: an error by its class and its attributes.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["main"]

PREPARING_SECONDS = 3600
NICENESS = 5  # the measuring process goes first


def _isolate() -> None:
    """Arrange how this process may end: by itself when orphaned, first when memory is short."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the tuner decides
    signal.alarm(PREPARING_SECONDS)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _serve(role: str, requests: IO[bytes], answers: IO[str]) -> None:
    def say(**message: Any) -> None:
        print(json.dumps(message), file=answers)

    preparation = pickle.load(requests)
    if preparation is not None:  # the user's own script defines what is tuned
        from multiprocessing import spawn

        spawn.prepare(preparation)
    from opencl_lab.core.errors import OclabError
    from opencl_lab.core.space import Config
    from opencl_lab.lab.tuning.builder import Builder
    from opencl_lab.lab.tuning.trial import Trial

    try:
        made = {"trial": Trial, "builder": Builder}[role]
        trial: Any = made(pickle.load(requests), lambda phase: say(phase=phase))
    except OclabError as error:
        say(failed=error.sentence, kind=type(error).__name__, details=vars(error))
        return
    except Exception as error:
        say(failed=f"{type(error).__name__}: {error}", kind="", details={})
        return
    say(phase="ready")
    for line in requests:
        request = json.loads(line)
        # Beyond the tuner's own limit: it ends a worker that hangs when the tuner is gone.
        signal.alarm(math.ceil(request["alarm"]))
        config = Config(request["config"])
        if request["do"] == "build":
            answer = trial.build(config, request["whole"])
        elif request["do"] != "evaluate":
            answer = getattr(trial, request["do"])(config)
        else:
            best_ms = request["best_ms"]
            answer = trial.evaluate(config, math.inf if best_ms is None else best_ms)
        say(done=answer.as_dict())
        signal.alarm(0)


def main(role: str) -> None:
    """Answer until there are no more requests."""
    _isolate()
    if role == "builder":
        with suppress(AttributeError, OSError):
            os.nice(NICENESS)
    # What a driver prints must not mix with the answers: stdout becomes stderr.
    with (
        os.fdopen(os.dup(0), "rb") as requests,
        os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as answers,
    ):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        with suppress(BrokenPipeError, EOFError):  # the tuner is gone
            _serve(role, requests, answers)
    from opencl_lab.drivers.pocl import record_built

    record_built()
    sys.stderr.flush()
    # A driver that fails while it is unloaded has nothing to report any more.
    os._exit(0)

"""Run probes, each in a child process with a time limit."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.drivers.processes import default_threads, end, signal_name
from opencl_lab.lab.doctor.findings import VERDICTS, Finding, Probe

__all__ = ["examine"]

TIME_LIMIT = 20.0

TOGETHER, MOST_TOGETHER = 2, 8
"""Children that run at once: two, and on more processors half as many as there are."""
SPARE = 4
"""Processors from which on a child may start while another one measures a device beside them."""


class _Child:
    """A running probe: its process, and the steps it has reported so far."""

    def __init__(
        self, probe: Probe, device: Device, folder: Path, time_limit: float, held: bool = False
    ):
        self.probe, self.time_limit = probe, time_limit
        self.step: dict[str, Any] = {}
        self.garbage = False
        self._unread = b""
        private = folder / probe.name
        private.mkdir(mode=0o700)
        self._stderr = private / "stderr"
        target = probe.target or f"opencl_lab.lab.doctor.probes:{probe.name}"
        self.begin = time.monotonic()
        self.deadline = self.begin + time_limit
        arguments = [target, device.spec, *(["held"] if held else [])]
        with self._stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "opencl_lab.lab.doctor.child", *arguments],
                stdin=subprocess.PIPE if held else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(private),
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        assert self.process.stdout is not None
        self.pipe = self.process.stdout

    def release(self) -> None:
        """Let a child that was held begin: its time counts from now on."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it has ended already
            self.process.stdin.close()
        self.begin = time.monotonic()
        self.deadline = self.begin + self.time_limit

    def read(self) -> bool:
        """Take in the steps that the child has written; return False when no more can follow."""
        data = os.read(self.pipe.fileno(), 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                step = json.loads(line)
            except ValueError:
                step = None
            if not isinstance(step, dict):
                self.garbage = True
                return False
            self.step = step
            self.deadline = time.monotonic() + self.time_limit
        return bool(data)

    def kill(self) -> None:
        """End the child and whatever it has started."""
        end(self.process, group=True)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.pipe.close()

    def finding(self, timed_out: bool) -> Finding:
        """End the child and say what it has found."""
        if not timed_out and not self.garbage:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=2)  # it has closed its pipe: it is about to end
        status = self.process.poll()
        if status is None:
            self.kill()
        self.pipe.close()
        verdict, detail, value = self._conclude(timed_out, status)
        advice = self.probe.absent if verdict == "no" else self.probe.advice
        return Finding(
            self.probe.name,
            self.probe.title,
            verdict,
            detail,
            value,
            "" if verdict in ("ok", "unknown") else advice,
            round(time.monotonic() - self.begin, 3),
        )

    def _conclude(self, timed_out: bool, status: int | None) -> tuple[str, str, Any]:
        step = self.step
        if self.garbage:
            return "unknown", "the probe printed something that is not a finding", None
        if "failed" in step:
            return "unknown", f"the probe failed: {step['failed']}", None
        if step.get("verdict") in VERDICTS:
            return step["verdict"], str(step.get("detail", "")), step.get("value")
        if timed_out:
            reason = f"no answer within {self.time_limit:g} s"
        elif status is not None and status < 0:
            reason = f"the driver crashed ({signal_name(-status)})"
        elif status and "trying" in step:
            reason = f"the driver ended the process with status {status}{self._last_words()}"
        else:
            return "unknown", f"the probe ended without a verdict{self._last_words()}", None
        if "trying" not in step:
            return "broken", f"{reason} before the first kernel", None
        reached, attempt = step.get("value"), step["trying"]
        if reached is None:
            # A feature that nobody promised is merely absent, however its trial ends.
            verdict = "broken" if step.get("claimed", True) else "no"
            return verdict, f"{attempt}: {reason}", False
        detail = f"up to {step.get('reached', reached)}; {attempt}: {reason}"
        return "limited" if reached else "broken", detail, reached

    def _last_words(self) -> str:
        lines = self._stderr.read_text(encoding="utf-8", errors="replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        return f" ({written[-1][:120]})" if written else ""


def _environment(private: Path) -> dict[str, str]:
    """Return the environment of a child: the driver's own claims, and no kernel cached before."""
    package_root = str(Path(__file__).resolve().parents[3])
    search = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in search if part),
        "PYTHONSAFEPATH": "1",
        "OCLAB_CACHE_DIR": str(private),
        "PYOPENCL_NO_CACHE": "1",
        "POCL_CACHE_DIR": str(private / "pocl"),
        "CUDA_CACHE_DISABLE": "1",
    }


def examine(
    device: Device,
    probes: Sequence[Probe],
    *,
    time_limit: float = TIME_LIMIT,
    together: int | None = None,
) -> Iterator[Finding]:
    """Run probes on a device, each in a child process, and yield findings as they come.

    Parameters
    ----------
    device : Device
        The device to probe.
    probes : sequence of Probe, optional
        What to probe. Those that must run alone are best put last.
    time_limit : float, optional
        Seconds of silence after which a child is killed. It starts anew with
        every step that the child reports.
    together : int, optional
        How many children may run at once; by default so many as the processors allow.

    Yields
    ------
    Finding
        One for each probe, in the order in which they end.
    """
    waiting = list(probes)
    running: list[_Child] = []
    ahead: list[_Child] = []  # the next one that runs alone, if it is started already
    processors = default_threads()
    if together is None:
        together = max(TOGETHER, min(processors // 2, MOST_TOGETHER))
    starts_ahead = device.kind != "cpu" and processors >= SPARE
    with (
        tempfile.TemporaryDirectory(prefix="oclab-doctor-", ignore_cleanup_errors=True) as folder,
        selectors.DefaultSelector() as selector,
    ):
        try:
            while waiting or running:
                while waiting and _may_start(waiting[0], running, together):
                    probe = waiting.pop(0)
                    if ahead:
                        child = ahead.pop()
                        child.release()
                    else:
                        child = _Child(probe, device, Path(folder), time_limit)
                    running.append(child)
                    selector.register(child.pipe, selectors.EVENT_READ)
                    if starts_ahead and probe.alone and waiting and waiting[0].alone:
                        ahead.append(_Child(waiting[0], device, Path(folder), time_limit, True))
                patience = min(child.deadline for child in running) - time.monotonic()
                ready = {key.fileobj for key, _ in selector.select(max(patience, 0))}
                for child in list(running):
                    ended = child.pipe in ready and not child.read()
                    late = not ended and time.monotonic() >= child.deadline
                    if ended or late:
                        running.remove(child)
                        selector.unregister(child.pipe)
                        yield child.finding(timed_out=late)
        finally:
            for child in (*running, *ahead):
                child.kill()


def _may_start(probe: Probe, running: Sequence[_Child], together: int) -> bool:
    exclusive = probe.alone or any(child.probe.alone for child in running)
    return len(running) < (1 if exclusive else together)

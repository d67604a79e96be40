"""A probe, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

VERDICTS = ("ok", "no", "limited", "broken", "unknown")


@dataclass(frozen=True)
class Probe:
    """One question to the device.

    Parameters
    ----------
    name : str
        Name of the finding; where it is a field of `Capabilities` or `Peaks`, the value sets
        that field.
    title : str
        What is probed, in words.
    advice : str
        What a user can do when the verdict is neither ``ok`` nor ``no``.
    absent : str
        What a ``no`` means for the user; empty where it means nothing.
    alone : bool
        Whether other probes must not run meanwhile, because it measures time.
    target : str
        ``module:function`` of the probe; by default the function `name` of `probes`.
    """

    name: str
    title: str
    advice: str
    absent: str = ""
    alone: bool = False
    target: str = ""


@dataclass(frozen=True)
class Finding:
    """What a probe found.

    Parameters
    ----------
    name, title : str
        Those of the probe.
    verdict : str
        ``ok``; ``no`` where an optional feature is absent; ``limited`` where less works
        than is claimed; ``broken`` where it fails; ``unknown`` where the probe itself failed.
    detail : str
        What was seen, in words.
    value : bool, int, float or None
        The finding as a capability, or as a peak.
    advice : str
        What to do about it, or what it means; may be empty.
    seconds : float
        How long the child ran.
    """

    name: str
    title: str
    verdict: str
    detail: str
    value: bool | int | float | None = None
    advice: str = ""
    seconds: float = 0.0

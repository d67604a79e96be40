"""Look for the tools that references and distributed runs need, and say what to install."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tool", "toolchain"]


@dataclass(frozen=True)
class Tool:
    name: str
    verdict: str
    detail: str
    advice: str = ""


def toolchain() -> tuple[Tool, ...]:
    return ()

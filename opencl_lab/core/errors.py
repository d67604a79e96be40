"""The errors that users can get; each has one sentence that says what to do.

Every error of the library derives from `OclabError`, and each class has its exit status of the
command line.
"""

from __future__ import annotations

from opencl_lab.core.wording import visible

__all__ = [
    "BuildError",
    "DeviceNotFound",
    "InvalidConfig",
    "InvalidProblem",
    "LaunchError",
    "OclabError",
    "ReferenceUnavailable",
]


class OclabError(Exception):
    """Base of all errors raised on purpose by opencl_lab."""

    exit_status = 2

    @property
    def sentence(self) -> str:
        """What was wrong and what to do, in one line; names in it may be a stranger's."""
        return visible(str(self.args[0])) if self.args else type(self).__name__

    def __str__(self) -> str:
        return self.sentence


class DeviceNotFound(OclabError):
    """No OpenCL device matches what was asked for."""

    exit_status = 3


class InvalidProblem(OclabError, ValueError):
    """The arrays or options are not a problem that this library can solve."""


class InvalidConfig(OclabError, ValueError):
    """A kernel configuration breaks a constraint or a limit of the device."""


class ReferenceUnavailable(OclabError):
    """A reference that was asked for by name cannot run here."""

    exit_status = 3


class BuildError(OclabError):
    """An OpenCL program did not build.

    Attributes
    ----------
    log : str
        What the compiler of the device printed.
    source : str
        The rendered OpenCL C source.
    options : tuple of str
        The build options.
    """

    exit_status = 4

    def __init__(
        self, message: str, *, log: str = "", source: str = "", options: tuple[str, ...] = ()
    ):
        super().__init__(message)
        self.log = log
        self.source = source
        self.options = options

    def __str__(self) -> str:
        if not (self.log or self.source):
            return self.sentence
        return f"{self.sentence}\n\n{self.details()}"

    @property
    def first_error(self) -> str:
        """The log's first line with an error, or its first line, after a colon."""
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        named = (line for line in lines if "error" in line.lower())
        first = next(named, lines[0].partition(" - ")[0] if lines else "")
        return f": {first}" if first else ""

    def numbered_source(self) -> str:
        """Return the source with the line numbers that the build log refers to."""
        lines = self.source.splitlines()
        width = len(str(len(lines)))
        return "\n".join(f"{number:{width}d} | {line}" for number, line in enumerate(lines, 1))

    def details(self) -> str:
        """Return the options, the build log and the numbered source as one text."""
        options = " ".join(self.options) or "(none)"
        return f"build options: {options}\n\n{self.log.strip()}\n\n{self.numbered_source()}"


class LaunchError(OclabError):
    """A kernel could not be launched, or the device failed while it ran."""

    exit_status = 4

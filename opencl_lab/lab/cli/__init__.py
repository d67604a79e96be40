"""The command line `oclab`: one module a command, parsing and printing only."""

from opencl_lab.lab.cli.main import main

__all__ = ["main"]

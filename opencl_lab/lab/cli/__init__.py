"""The command line `oclab`: a module for each command, for parsing and printing only."""

from opencl_lab.lab.cli.main import main

__all__ = ["main"]

"""The version, alone in a module that setuptools can read without importing anything."""

__version__ = "0.1.0"

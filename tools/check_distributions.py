"""Check that the built sdist and wheel contain the files of the repository.

    git ls-files | python tools/check_distributions.py dist

The folder contains one sdist and one wheel. The sdist must contain all files listed on standard
input; the wheel all files of the two packages, including templates, C sources and data, and nothing
else but its metadata. Both must have the version of the package.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

PACKAGES = ("clkernels/", "opencl_lab/")
NOT_SHIPPED = (".gitignore",)
VERSION = re.compile(r'__version__ = "(.+)"')


def problems(listed: Iterable[str], sdist: Iterable[str], wheel: Iterable[str]) -> list[str]:
    """Return the files missing in either, and those too many in the wheel, each as a sentence.

    Parameters
    ----------
    listed, sdist, wheel : iterable of str
        Names of files, relative to the root of the repository, of the sdist and of the wheel.
    """
    repository = set(listed) - set(NOT_SHIPPED)
    packaged = {name for name in repository if name.startswith(PACKAGES)}
    held = {name for name in wheel if ".dist-info/" not in name}
    return [
        *(f"the sdist lacks {name}" for name in sorted(repository - set(sdist))),
        *(f"the wheel lacks {name}" for name in sorted(packaged - held)),
        *(f"the wheel has {name}" for name in sorted(held - packaged)),
    ]


def names_of(folder: Path, version: str) -> tuple[list[str], list[str]]:
    """Return the files in the sdist and in the wheel of `version`, which `folder` holds alone."""
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    root = f"opencl_lab-{version}"
    assert sdist.name == f"{root}.tar.gz", sdist.name
    assert wheel.name == f"{root}-py3-none-any.whl", wheel.name
    with tarfile.open(sdist) as archive:
        inside = [item.name.removeprefix(f"{root}/") for item in archive if item.isfile()]
    with zipfile.ZipFile(wheel) as archive:
        return inside, [name for name in archive.namelist() if not name.endswith("/")]


def main() -> int:
    """Print what is wrong; return whether anything is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with one sdist and one wheel")
    folder = parser.parse_args().folder
    text = Path(__file__).parents[1].joinpath("opencl_lab/_version.py").read_text(encoding="utf-8")
    found = VERSION.search(text)
    assert found is not None
    listed = sys.stdin.read().split("\n")
    sentences = problems(filter(None, listed), *names_of(folder, found[1]))
    print("\n".join(sentences) or "the sdist and the wheel hold what the repository holds")
    return bool(sentences)


if __name__ == "__main__":
    sys.exit(main())

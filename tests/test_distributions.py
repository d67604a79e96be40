"""What is built from the repository: the version, and which files."""

import io
import re
import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest

import opencl_lab

ROOT = Path(__file__).parents[1]
CHECK = runpy.run_path(str(ROOT / "tools/check_distributions.py"))

LISTED = (
    ".gitignore",
    "README.md",
    "clkernels/sort/radix.cl.mako",
    "opencl_lab/__init__.py",
    "opencl_lab/py.typed",
    "opencl_lab/lab/reference/csrc/sort.c",
    "tests/conftest.py",
)
SDIST = (*LISTED[1:], "PKG-INFO", "opencl_lab.egg-info/SOURCES.txt")
WHEEL = (*LISTED[2:6], "opencl_lab-0.1.0.dist-info/METADATA")


def test_complete_distributions_pass():
    assert CHECK["problems"](LISTED, SDIST, WHEEL) == []


@pytest.mark.parametrize("name", LISTED[1:])
def test_a_missing_file_is_named(name):
    kept = [item for item in SDIST if item != name], [item for item in WHEEL if item != name]
    found = CHECK["problems"](LISTED, *kept)
    assert f"the sdist lacks {name}" in found
    assert (f"the wheel lacks {name}" in found) == (name in WHEEL)


def test_the_wheel_has_nothing_else():
    found = CHECK["problems"](LISTED, SDIST, (*WHEEL, "tests/conftest.py"))
    assert found == ["the wheel has tests/conftest.py"]


def test_names_are_read_from_the_files(tmp_path):
    with tarfile.open(tmp_path / "opencl_lab-0.1.0.tar.gz", "w:gz") as archive:
        for name in ("README.md", "docs/a.md"):
            archive.addfile(tarfile.TarInfo(f"opencl_lab-0.1.0/{name}"), io.BytesIO())
    with zipfile.ZipFile(tmp_path / "opencl_lab-0.1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("opencl_lab/__init__.py", "")
    found = CHECK["names_of"](tmp_path, "0.1.0")
    assert found == (["README.md", "docs/a.md"], ["opencl_lab/__init__.py"])
    with pytest.raises(AssertionError):
        CHECK["names_of"](tmp_path, "0.2.0")


def test_the_changelog_begins_with_what_is_to_come_and_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads[0] == "Unreleased"
    assert re.fullmatch(re.escape(opencl_lab.__version__) + r" - \d{4}-\d\d-\d\d", heads[1])

"""The library's caches: whose they are, whether there is room, and what may be deleted."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from opencl_lab.core import trust
from opencl_lab.core.errors import OclabError
from opencl_lab.core.paths import record_name
from opencl_lab.core.trust import danger, temporary_place
from opencl_lab.drivers.caches import (
    remove_section,
    section_files,
    section_folder,
    sections,
    usable_folder,
)

LIBRARY = f"sort-{'0' * 20}-{'1' * 20}.so"
COMPILER = f"compiler-{'a' * 20}.json"
PROGRAM = f"NH/{'ABCDEFGHIJKLMNOP' * 2}/program.bc"
ABOUT_GPU = record_name("gpu/Maker A/1.2")


@pytest.fixture
def root(monkeypatch, tmp_path):
    """An empty folder that OCLAB_CACHE_DIR names."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(folder))
    return folder


def _fill(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def test_only_what_the_library_wrote_is_cleared(root):
    theirs = [
        *("a.so", "doctor.txt", "c/main.c", "c/libx.so", "c/sub/x.so", f"other/{LIBRARY}"),
        *("c/.build-notes/x", "c/.build-12345678.txt", "c/.build-1234567A/x", "c/.build-abcdefgh"),
        *(
            "verdicts/settings.json",
            "doctor/mine.json",
            "pocl/README",
            "pocl/NH/README",
            "pocl/AB/CD/x",
            "pocl/core2/mine",
            "AB/x",
        ),
    ]
    ours = [
        f"c/{LIBRARY}",
        f"c/{COMPILER}",
        "c/.build-x_9aab0c/built.so",
        f"doctor/{ABOUT_GPU}",
        f"verdicts/{ABOUT_GPU}",
    ]
    ours += [f"verdicts/.{ABOUT_GPU}.lock"]
    of_older_versions = [f"hybrid/{ABOUT_GPU}", f"binaries/{'0a' * 20}.seen"]
    ours += [f"binaries/{'0a' * 20}.bin", *of_older_versions]
    ours += [f"pocl/{PROGRAM}".replace("NH", "AC"), "pocl/checked", "pocl/tempfile_aB1_x9.cl"]
    ours += [f"pocl/haswell/{PROGRAM}", "pocl/haswell/checked.json"]
    ours += ["pocl/checked.json", f"pocl/.oclab-{'0a' * 8}.json"]
    _fill(root, *theirs, *ours)
    (root / "c" / "link").symlink_to(root / "other")
    (root / f"c/{LIBRARY[:-5]}2.so").symlink_to(root / "a.so")
    assert sections() == ["binaries", "c", "pocl", "verdicts", "doctor", "hybrid"]
    found = {str(path.relative_to(root)) for name in sections() for path in section_files(name)}
    assert found == set(ours)
    for name in sections():
        remove_section(name)
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {*theirs, f"c/{LIBRARY[:-5]}2.so"} and sections() == []


def test_folders_are_made_for_their_owner_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "new" / "cache"))
    folder = section_folder("c", 1)
    assert folder == tmp_path / "new" / "cache" / "c"
    folder.chmod(0o755)  # as older versions made it
    assert section_folder("c", 1) == folder
    for place in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("mode", "where", "used"),
    [
        (0o755, "", True),
        (0o775, "", False),
        (0o777, "", False),
        (0o1777, "", False),
        (0o777, "..", False),
        (0o775, "..", False),
        (0o1777, "..", True),
        (None, "", False),
        (None, "..", False),
    ],
)
def test_folders_that_others_can_change_are_not_used(open_path, caplog, mode, where, used):
    folder = open_path / "a" / "b"
    folder.mkdir(parents=True)
    place = folder / where
    if mode is not None:
        place.chmod(mode)
    elif os.geteuid():
        pytest.skip("only root can give folders away")
    else:
        os.chown(place, 1234, 1234)
    folder.parent.chmod(folder.parent.stat().st_mode | 0o055)  # whatever the umask is
    for _ in range(2):
        found = usable_folder(folder, 1)
        assert (found == folder) == used
        assert stat.S_IMODE(found.stat().st_mode) == (mode if used and not where else 0o700) or used
    assert len(caplog.records) == (not used)
    if not used:
        assert folder not in found.parents and str(place.resolve()) in caplog.text


def test_what_others_cannot_reach_is_used_whatever_its_mode(open_path, caplog):
    home = open_path / "home"
    folder = home / "cache" / "c"
    folder.mkdir(parents=True)
    for place in (folder, folder.parent):
        place.chmod(0o775)  # as with a umask of 002
    library = folder / LIBRARY
    library.touch(mode=0o700)
    home.chmod(0o700)
    assert usable_folder(folder, 1) == folder and danger(library) is None and not caplog.records
    library.chmod(0o777)
    assert danger(library) == f"others can write to {library}"
    library.chmod(0o700)
    for mode in (0o710, 0o701):
        home.chmod(mode)
        assert danger(folder) == f"others can write to {folder}"
    home.chmod(0o700)
    open_path.chmod(0o777)  # others could put another folder in place of `home`
    assert danger(folder) == f"others can write to {open_path}"


@pytest.mark.parametrize(
    ("mapped", "unknown", "safe"),
    [
        ("0 0 4294967295", 1234, False),  # no container: it is a user like any other
        ("0 1000 1", 1234, True),
        ("0 1000 1", 65534, False),
        ("0 100000 65536\n65536 7 1", 1234, True),
        (None, 1234, False),
    ],
)
def test_owners_that_a_container_does_not_know(
    open_path, tmp_path, monkeypatch, mapped, unknown, safe
):
    """Their folders may be above ours; what we use itself must be ours."""
    (tmp_path / "unknown").write_text(f"{unknown}\n")
    if mapped is not None:
        (tmp_path / "mapped").write_text(f"{mapped}\n")
    monkeypatch.setattr(trust, "UNKNOWN_USER", tmp_path / "unknown")
    monkeypatch.setattr(trust, "MAPPED_USERS", tmp_path / "mapped")
    folder = open_path / "cache"
    folder.mkdir(mode=0o700)
    plain = Path.stat

    def stat_of(path, **how):
        status = plain(path, **how)
        return os.stat_result((*status[:4], 1234, *status[5:])) if path == open_path else status

    monkeypatch.setattr(Path, "stat", stat_of)
    assert danger(folder) == (None if safe else f"{open_path} belongs to another user")
    assert danger(open_path) == f"{open_path} belongs to another user"


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_temporary_folders_cannot_be_replaced_by_others(open_path, monkeypatch, caplog, mode):
    """What is made in a folder that others can write to, without the sticky bit, is theirs, too."""
    open_path.chmod(mode)
    monkeypatch.setattr(tempfile, "tempdir", str(open_path))
    trust.warn.cache_clear()
    cache = open_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    made = {usable_folder(cache, 1).parent, temporary_place()}
    assert all(danger(folder, around=True) is None for folder in made)
    assert made == {open_path} if mode & stat.S_ISVTX else open_path not in made
    about = [record.message for record in caplog.records if "temporary files" in record.message]
    assert len(about) == (not mode & stat.S_ISVTX)
    trust.warn.cache_clear()
    monkeypatch.setattr(trust, "danger", lambda path, **how: f"others can write to {path}")
    with pytest.raises(OclabError, match=f"others can write to {open_path}; set TMPDIR"):
        temporary_place()

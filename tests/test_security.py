"""What SECURITY.md says of files from elsewhere: they are data, and nothing in them runs.

The caches' owners, modes and checksums: test_caches.py, test_binaries.py, test_pocl.py,
test_intel.py and test_reference_build.py. Reports: test_report.py. Workers at a port:
test_other_systems.py.
"""

from __future__ import annotations

import ast
import os
import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from tuned_entries import DEFAULT, GPU, N1024, VERSION, store, tuned, used

import opencl_lab
from opencl_lab.core import trust
from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers import probed
from opencl_lab.drivers.caches import SECTIONS, section_folder
from opencl_lab.lab.doctor import diagnose
from opencl_lab.lab.doctor.examine import Finding
from opencl_lab.lab.files import read_array
from opencl_lab.lab.files.blocks import NpyFile
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.host import hybrid
from opencl_lab.ops.gemm.host.hybrid import Model, Sample
from opencl_lab.selftest import verdicts
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import entry_of


class Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.npz:inner", "named.csv", "bare.npy"])
def test_pickles_in_files_of_arrays_are_not_run(tmp_path, name):
    made = tmp_path / "made"
    content = np.array([Runs(made)], dtype=object)
    path = tmp_path / name.partition(":")[0]
    with path.open("wb") as file:
        if path.suffix == ".npz":
            np.savez(file, inner=content)
        elif name.startswith("bare"):
            pickle.dump(content, file)
        else:
            np.save(file, content)
    with pytest.raises(InvalidProblem):
        read_array(tmp_path / name)
    with pytest.raises(InvalidProblem), NpyFile.opened(path):
        pass
    assert not made.exists()
    if path.suffix == ".npy":
        np.load(path, allow_pickle=True)
        assert made.exists()  # so it would have been run


def test_nothing_but_messages_of_workers_is_unpickled():
    """No module calls what runs pickles or texts, but for the two ends of a link."""
    risky = {"load", "loads", "Unpickler", "eval", "exec", "read_pickle", "system", "popen"}
    found = set()
    for path in Path(opencl_lab.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
                found.add((path.name, node.func.id))
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                owner, name = node.func.value.id, node.func.attr
                if owner in {"pickle", "marshal", "shelve", "os", "np"} and name in risky:
                    refused = any(
                        word.arg == "allow_pickle" and ast.unparse(word.value) == "False"
                        for word in node.keywords
                    )
                    if not refused:
                        found.add((path.name, f"{owner}.{name}"))
    assert found == {("link.py", "pickle.loads"), ("serving.py", "pickle.loads")}


def test_named_temporary_files_are_where_others_cannot_replace_them():
    """What is written, loaded or listened to by a name that they know could become theirs."""
    makers = {"mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"}
    calls = [
        (path, node)
        for path in Path(opencl_lab.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in makers
    ]
    for path, node in calls:
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        safe = "folder" if path.name == "build.py" else "temporary_place()"  # of the cache
        assert given.get("dir") == safe, f"{path}:{node.lineno}"
    assert calls


DEVICE = replace(GPU, name="Shared", capabilities=Capabilities(local_memory=1 << 15))
SINGLE = np.dtype(np.float32)
FINDINGS = [Finding("local_memory", "local memory", "ok", "", 1 << 40)]
MODEL = Model(SINGLE, (Sample(8, 8, 8, 1.0),))
MEASURED = {
    "doctor": (
        lambda: probed.probe_file(DEVICE.key),
        lambda: diagnose.store(DEVICE, FINDINGS),
        lambda: probed.corrected(DEVICE) != DEVICE,
    ),
    "selftest": (
        lambda: verdicts.verdict_file(DEVICE),
        lambda: verdicts.keep(DEVICE, {verdicts.DEVICE: verdicts.Verdict(digest="")}),
        lambda: bool(verdicts.kept(DEVICE)),
    ),
    "hybrid": (
        lambda: hybrid.model_file(DEVICE, SINGLE),
        lambda: hybrid._store(DEVICE, SINGLE, (MODEL, MODEL)),
        lambda: hybrid._read(DEVICE, SINGLE) is not None,
    ),
}
"""Where measurements are, what stores them, and whether they are believed."""


@pytest.mark.parametrize("section", MEASURED)
@pytest.mark.parametrize("how", ["owner", "mode", "folder", "above", "link"])
def test_what_others_could_have_measured_is_not_believed(
    section, how, open_path, monkeypatch, caplog
):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(open_path / "cache"))
    trust.warn.cache_clear()
    path, store, believed = MEASURED[section]
    file = path()
    file.parent.mkdir(parents=True)
    old = os.umask(0)  # nobody else can write to what is made, though the mask lets them
    try:
        store()
    finally:
        os.umask(old)
    assert believed() and not caplog.records
    if how == "owner":
        if os.geteuid():
            pytest.skip("only root can give files away")
        os.chown(file, 1234, 1234)
    elif how == "link":
        file.rename(open_path / "elsewhere")
        file.symlink_to(open_path / "elsewhere")
        file = open_path / "elsewhere"
        file.write_text("")
    else:
        {"mode": file, "folder": file.parent, "above": open_path}[how].chmod(0o777)
    assert not believed() and not believed()
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (how != "link")
    file.write_text("other")
    with suppress(OSError):  # not into what others could write to
        store()
    assert believed() == (how in ("owner", "mode", "link"))
    assert how in ("owner", "mode") or file.read_text() == "other"


def test_texts_of_tuned_configurations_are_those_of_the_algorithm():
    """They get into kernels."""
    packed = GEMM.algorithm("packed")
    default = packed.default_config(N1024, GPU)
    assert packed.space.check({"PACK_B": "panel"}, default)["PACK_B"] == "panel"
    with pytest.raises(InvalidConfig, match="PACK_B must be one of 'none', 'panel'"):
        packed.space.check({"PACK_B": "panel; } __kernel void f() {"}, default)


@pytest.mark.parametrize("change", [{"TILE": "16; }"}, {"MORE": 1}, {"TILE": [16]}])
def test_other_values_of_tuned_configurations_are_not_used(change, monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path))
    store(GPU, 1)
    assert used() == tuned(1)
    entry = entry_of(GPU, "gemm", "tiled", VERSION, N1024, tuned(2), 1.0)
    database.add([structs.replace(entry, config={**entry.config, **change})])
    assert used() == DEFAULT


def test_new_folders_of_the_cache_are_for_their_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "new"))
    before = os.umask(0)
    try:
        for name in SECTIONS:
            assert section_folder(name, 1).stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)

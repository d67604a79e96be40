"""What SECURITY.md says of files from elsewhere: they are data, and nothing in them runs.

The caches' owners, modes and checksums: test_caches.py, test_binaries.py, test_pocl.py,
test_intel.py and test_reference_build.py. Reports: test_report.py. Workers at a port:
test_other_systems.py.
"""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import pickle
import random
import sys
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import QUICK, oclab
from msgspec import structs
from PIL import Image
from rich.table import Table
from tuned_entries import DEFAULT, GPU, N1024, VERSION, store, tuned, used

import opencl_lab
from opencl_lab.core import trust
from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.records import parsed
from opencl_lab.core.wording import number_of, visible
from opencl_lab.distributed.array import _header
from opencl_lab.drivers import verdicts as stored
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.values import variants
from opencl_lab.lab.files import PICTURES, read_array, read_stored
from opencl_lab.lab.files.blocks import NpyFile
from opencl_lab.lab.ops.gemm.operation import GEMM
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


def believed():
    """Return whether the doctor's findings and the self-test's verdicts, of one file, are."""
    both = {stored.corrected(DEVICE) != DEVICE, bool(verdicts.kept(DEVICE))}
    assert len(both) == 1
    return both.pop()


def keep():
    stored.store_found(DEVICE.key, {"local_memory": 1 << 40})
    verdicts.keep(DEVICE, {verdicts.DEVICE: stored.Verdict("ok")})


@pytest.mark.parametrize("how", ["owner", "mode", "folder", "above", "link"])
def test_what_others_could_have_measured_is_not_believed(how, open_path, monkeypatch, caplog):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(open_path / "cache"))
    trust.warn.cache_clear()
    file = stored.verdict_file(DEVICE.key)
    file.parent.mkdir(parents=True)
    old = os.umask(0)  # nobody else can write to what is made, though the mask lets them
    try:
        keep()
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
        keep()
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


# ----------------------------------------------------------- names and damaged files

HOSTILE = "\x1b[31m\x9b1m\x07\u202e\r\noclab: all is well"
DESCRIPTIONS = (
    "'<f4'", "'|O'", "[('\\x1b[31m', '<f4')]", "'M8[ns]'", "'<U3'", "('<f4', (2,))", "''", "[]",
    "None", "{}", "(1,", "'V2147483647'", "'\\x1b]0;x\\x07'", "[[]]",
)  # fmt: skip
SHAPES = (
    "(3, 4)", "(-3, -4)", "(0, -1)", "(9223372036854775807,)", "(0, 4611686018427387904, 8)",
    f"(1{'0' * 5000},)", f"({'1,' * 70})", "(3L, 4L)", "(True, 4)", "(3.0,)", "3", "None", "(3 4)",
    "(1if 1else 2,)", "(" * 500, "(4294967296, 4294967296)",
)  # fmt: skip


def _odd(rng):
    """Return a `.npy` file: one with an odd header, or a good one that is cut or has wrong bits."""
    order, more = (
        rng.choice(["False", "True", "1", "None"]),
        rng.choice(["", ", '\x1b': 1", "\r\n "]),
    )
    text = f"{{'descr': {rng.choice(DESCRIPTIONS)}, 'fortran_order': {order}, 'shape': "
    text += rng.choice(SHAPES) + more + "}\n"
    head = bytes(rng.choice([(1, 0), (9, 9)])) + len(text).to_bytes(2, "little") + text.encode()
    good = io.BytesIO()
    np.save(good, np.arange(12.0).reshape(3, 4))
    content = bytearray(good.getvalue())
    content[rng.randrange(128)] ^= 1 << rng.randrange(8)
    cut = good.getvalue()[: rng.randrange(len(content))]
    return rng.choice([b"\x93NUMPY" + head + bytes(48), bytes(content), cut])


def _write_odd(rng, number):
    """Write an odd file, and return the arguments of a command that reads it."""
    path = f"{number}{HOSTILE}"
    if number % 4 == 0:
        results = [{"implementation": HOSTILE, "ok": True, HOSTILE: HOSTILE, "n": 9}]
        document = {"schema": "oclab/1", "device": {"name": HOSTILE}, "results": results}
        text = json.dumps(document | {"options": {HOSTILE: number}})
        digits = "9" * 5000 if rng.random() < 0.3 else "9"
        Path(f"{path}.json").write_text(text.replace("9", digits)[: rng.randrange(400)])
        Path("whole.json").write_text(text)
        reads = ["bench", "--compare", "whole.json"], ["tuning", "import"]
        return [*rng.choice(reads), f"{path}.json"]
    if number % 4 == 1:
        with zipfile.ZipFile(f"{path}.npz", "w") as archive:
            for index in range(rng.randrange(30)):
                archive.writestr(f"{index}{HOSTILE}.npy", _odd(rng))
        path = f"{path}.npz{rng.choice(['', ':x', ':0' + HOSTILE])}"
    else:
        path += ".npy"
        Path(path).write_bytes(_odd(rng))
    command = rng.choice(["sort", "dft", "unique", "topk --k 1", "conv2d --filter box"])
    return [*command.split(), path, *QUICK]


@pytest.mark.skipif(os.name == "nt", reason="names of files have no control characters there")
@pytest.mark.parametrize("seed", range(4))
def test_odd_files_are_refused_in_a_line_without_control_characters(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    refused = 0
    for number in range(50):
        arguments = _write_odd(rng, number)
        ended = oclab(*arguments, OCLAB_DATA_DIR=str(tmp_path))
        printed = ended.stdout + ended.stderr
        assert ended.returncode in (0, 1, 2) and "internal" not in printed, (arguments, printed)
        lines = ended.stderr.splitlines()
        assert all(line.startswith("oclab: ") and len(line) < 2000 for line in lines), printed
        assert ended.returncode != 2 or (len(lines) == 1 and not ended.stdout), printed
        assert all(letter in "\n" or letter.isprintable() for letter in printed), printed
        refused += ended.returncode == 2
    assert refused > 30


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_headers_that_no_array_has_are_refused_by_all_readers(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(48))
    if shape == "(3L, 4L)":  # of Python 2
        assert read_array(path).shape == (3, 4)
        return
    readers = (
        read_array,
        lambda path: NpyFile.opened(path).__enter__(),
        lambda p: _header(Path(p)),
    )
    told = set()
    for read in readers:
        with pytest.raises(InvalidProblem, match=f"cannot read {path}: ") as raised:
            read(path)
        told.add(str(raised.value))
    assert len(told) == 1 and "set_int_max" not in told.pop()


def test_what_others_print_is_visible_too(monkeypatch, capsys):
    """Warnings, sentences, cells and progress, whatever made them."""

    def show():
        warnings.warn(HOSTILE, stacklevel=1)
        print(HOSTILE, file=sys.stderr)
        logging.getLogger("opencl_lab").warning(HOSTILE)
        settings().say(HOSTILE)
        table = Table(HOSTILE, title="[b]")
        table.add_row(f"[/]{HOSTILE}")
        settings().show(table)
        return []

    monkeypatch.setattr("opencl_lab.lab.cli.cache.sections", show)
    with pytest.warns(UserWarning):
        assert main(["cache", "info"]) == 0
    out, err = capsys.readouterr()
    assert all(letter == "\n" or letter.isprintable() for letter in out + err)
    assert (
        visible(HOSTILE) in out
        and "[b]" in out
        and "[/]" in out
        and f"oclab: {visible(HOSTILE)}\n" in err
    )
    assert str(InvalidProblem(HOSTILE)) == visible(HOSTILE)


def test_names_of_columns_go_into_results_only_without_control_characters(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\u05d0\u200f,=SUM(A1)\n1,2\n", encoding="utf-8")
    assert read_stored(path).names == ("\u05d0\u200f", "=SUM(A1)")  # unchanged, as by pandas
    path.write_text("a\x1b[31m,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InvalidProblem, match=r"nor the name of a column: 'a\\x1b\[31m'"):
        read_stored(path)


def test_letters_of_all_languages_stay():
    kept = "Zürich\u00a0東京 ƒ→∞ \U0001f600\ue0b0 \\x1b"
    assert visible(kept) == kept
    odd = "\0\t\x7f\x85\u200f\u2028\ud800\ufffe"
    assert visible(odd) == repr(odd)[1:-1] and visible(odd, "\t").startswith("\\x00\t")


def test_numbers_and_pictures_that_are_too_large_are_refused_in_our_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="beyond the largest float64"):
        number_of("9" * 400)
    assert number_of("-inf") == -np.inf
    with pytest.raises(ValueError, match="thousands of digits"):
        parsed("9" * 5000)
    assert variants([f"A=--1,{'9' * 5000}"])["A=--1"] == {"A": "--1"}
    Image.new("L", (40, 40)).save("x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert read_array("x.png", PICTURES).shape == (40, 40)  # without Pillow's warning
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(InvalidProblem, match="more than 1,000 pixels"):
        read_array("x.png", PICTURES)
    Path("x.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")
    with pytest.raises(InvalidProblem, match="no image in one of the formats PNG"):
        read_array("x.png", PICTURES)  # Pillow would run Ghostscript

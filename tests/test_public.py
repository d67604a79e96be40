"""The public names."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import opencl_lab


def test_every_public_name_is_there():
    for name in opencl_lab.__all__:
        assert getattr(opencl_lab, name) is not None
    assert dir(opencl_lab) == sorted(opencl_lab.__all__)


def test_type_checkers_read_what_is_imported():
    tree = ast.parse(Path(opencl_lab.__file__).read_text(encoding="utf-8"))
    (block,) = (
        n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    )
    homes = {}
    for node in block.body:
        (item,) = node.names
        assert item.asname == item.name  # else it would not be handed on
        homes[item.name] = node.module
    assert {*homes, "__version__"} == set(opencl_lab.__all__)
    for name, home in homes.items():
        assert getattr(opencl_lab, name) is getattr(import_module(home), name)


def test_functions_are_not_hidden_by_packages():
    import opencl_lab.lab.compare

    assert callable(opencl_lab.compare) and callable(opencl_lab.sort)
    assert opencl_lab.compare is opencl_lab.lab.compare.compare


MODULES = ("fft", "ndimage", "scipy_backend", "signal")


def test_what_takes_a_queue_takes_a_device_and_events_too():
    homes = [opencl_lab, *(getattr(opencl_lab, name) for name in MODULES)]
    found = {}
    for name, item in ((name, getattr(home, name)) for home in homes for name in home.__all__):
        if inspect.isfunction(item):
            found[name] = inspect.signature(item).parameters
    taking = {name: given for name, given in found.items() if "queue" in given}
    assert {"sort", "gemm", "rfft", "sobel"} <= set(taking)
    for name, given in taking.items():
        assert "device" in given and given["device"].kind is given["queue"].kind, name
        events = given.get("wait_for")
        assert name == "to_device" or events.kind is inspect.Parameter.KEYWORD_ONLY, name


def test_importing_the_package_does_not_import_opencl():
    code = "import sys, opencl_lab; sys.exit('pyopencl' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["sort", "select", "gemm", "conv2d", "fft"])
def test_problems_are_made_without_opencl(name):
    code = f"import sys, opencl_lab.ops.{name}.problem; sys.exit('pyopencl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_environment_variable_is_documented():
    root = Path(opencl_lab.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in root.rglob("*.py")]
    used = set(re.findall(r"""["'](OCLAB_[A-Z_]+)["']""", "".join(texts)))
    document = Path(__file__).parents[1] / "docs/architecture.md"
    table = document.read_text(encoding="utf-8")
    table = table.partition("## Environment variables")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(OCLAB_[A-Z_]+)`", table))
    assert named == used and "OCLAB_DEVICE" in used


def test_unknown_names_are_attribute_errors():
    assert not hasattr(opencl_lab, "no_such_name")


@pytest.mark.full
def test_first_use_from_many_threads_at_once():
    code = """
import threading, warnings

warnings.simplefilter("ignore")
import opencl_lab as ol

x = [[1.0, 2.0], [3.0, 4.0]]
calls = (
    lambda: ol.fft.fft(x), lambda: ol.fft.ifft(x), lambda: ol.sort(x), lambda: ol.dft,
    lambda: ol.conv2d, lambda: ol.gemm, lambda: ol.compare, lambda: ol.tune,
)
start, failures = threading.Barrier(len(calls)), []

def first_use(call):
    start.wait()
    try:
        call()
    except BaseException as error:
        failures.append(error)

threads = [threading.Thread(target=first_use, args=(call,)) for call in calls]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""The layers of `docs/architecture.md`: who imports whom, inside functions and by name too."""

import ast
import os
import re
import subprocess
import sys
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import opencl_lab
from opencl_lab.lab.registry import operations

ROOT = Path(opencl_lab.__file__).parent
DOCUMENT = Path(__file__).parents[1] / "docs/architecture.md"
PLACE = re.compile(r"opencl_lab(\.\w+)+(:\w+)?")
BY_COMPUTED_NAME = {
    "__init__": "the public names, at their first use",
    "lab/cli/lazy": "the commands, whose places are written in `cli/main`",
    "lab/registry": "the operations, whose places it has",
    "ops/selftest": "the trials of each operation",
    "ops/solver": "the algorithms, whose places their solver names",
    "workers/serving": "what a worker serves with",
    "lab/reference/descriptor": "other libraries",
}
"""Modules that import what they are told; elsewhere a name is written where it is imported."""
NAMING_OPERATIONS = {
    "__init__": "the public names",
    "distributed": "the public names of operations over ranks",
    "distributed/fft": "the public names of transforms over ranks",
    "lab/registry": "the operations",
    "lab/studies/catalogue": "experiments, each with one operation",
    "lab/doctor/probes/barriers": "a kernel of its own that sorts",
}
"""Modules that may name an operation, and as what; those of `ops` and `lab/ops` do."""
assert DOCUMENT.exists(), "the tests are those of a checkout or of the sdist, which have it"


def short(name):
    """Return the place of a module as the document writes it."""
    return name.removeprefix("opencl_lab").removeprefix(".").replace(".", "/") or "__init__"


@lru_cache
def modules():
    """Return the files of all modules by place, a package under its own name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found["/".join(parts[:-1] if parts[-1] == "__init__" and parts[:-1] else parts)] = path
    return found


@lru_cache
def written():
    """Return the lines of the document, the highest first, and what it names beside them."""
    block = re.search(r"```layers\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for line in block[1].splitlines() if line]
    named = dict(line.split(":") for line in lines if ":" in line)
    return [line.split() for line in lines if ":" not in line], {
        name: tuple(text.split()) for name, text in named.items()
    }


def matches(pattern, place):
    """Return how exactly a pattern names a module or a package around it: 0 if not at all."""
    wanted, given = pattern.split("/"), place.split("/")
    if len(wanted) > len(given) or any(
        one not in ("*", other) for one, other in zip(wanted, given, strict=False)
    ):
        return 0
    return 2 * len(wanted) - wanted.count("*")


def line_of(place):
    """Return the number of the line that names a module most exactly, and the name there."""
    lines, _ = written()
    exact, number, pattern = max(
        (matches(pattern, place), number, pattern)
        for number, line in enumerate(lines)
        for pattern in line
    )
    assert exact, f"no line of the layers names {place}"
    return number, pattern


def outside_of(place, target, names):
    """Return whether a module that may be imported by `names` only is imported by another."""
    return target in names and not any(matches(name, place) for name in names[target])


class Imports(ast.NodeVisitor):
    """What a module imports: its own kind, of which `early` as it is imported, and others."""

    def __init__(self, place):
        self.place = place
        self.ours, self.early, self.others, self.computed = set(), set(), set(), False
        self._deferred = 0
        self.visit(ast.parse(modules()[place].read_text(encoding="utf-8")))

    def _add(self, name, attribute=""):
        if name.split(".")[0] != "opencl_lab":
            self.others.add(name.split(".")[0])
            return
        whole = short(f"{name}.{attribute}")
        target = whole if attribute and whole in modules() else short(name)
        if target in modules() and target != self.place:
            self.ours.add(target)
            if not self._deferred:
                self.early.add(target)

    def visit_Import(self, node):
        for item in node.names:
            self._add(item.name)

    def visit_ImportFrom(self, node):
        assert not node.level, f"{self.place} imports relatively"
        facade = short(node.module) in written()[1]["facades"]
        for item in node.names:
            self._add(node.module, "" if facade else item.name)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and PLACE.fullmatch(node.value):
            self._deferred += 1
            self._add(node.value.partition(":")[0])
            self._deferred -= 1

    def visit_Call(self, node):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("import_module", "__import__"):
            if isinstance(node.args[0], ast.Constant):
                self._add(node.args[0].value)
            else:
                self.computed = True
        self.generic_visit(node)

    def _later(self, node):
        self._deferred += 1
        self.generic_visit(node)
        self._deferred -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _later

    def visit_If(self, node):
        if getattr(node.test, "id", "") == "TYPE_CHECKING":
            self._later(node)
        else:
            self.generic_visit(node)


@lru_cache
def imports():
    """Return what every module imports."""
    return {place: Imports(place) for place in modules()}


def packages(place):
    """Return the packages around a module, but for the outermost one."""
    parts = place.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}


def test_every_name_in_the_layers_is_a_module_or_package():
    lines, named = written()
    for pattern in {name for line in [*lines, *named.values()] for name in line}:
        assert any(matches(pattern, place) for place in modules()), pattern


def test_no_module_imports_from_a_line_above_its_own():
    wrong, across = [], set()
    for place, found in imports().items():
        line, own = line_of(place)
        for target in found.ours:
            below, there = line_of(target)
            if below < line:
                wrong.append(f"{place} imports {target}")
            elif below == line and own != there:
                across.add((own, there))
    wrong += [f"{one} and {other} import each other" for one, other in across & {
        (other, one) for one, other in across
    }]  # fmt: skip
    assert not wrong, "\n".join(sorted(wrong))


def test_nothing_of_the_library_imports_the_lab():
    for place, found in imports().items():
        if place.split("/")[0] not in ("lab", "__init__", "__main__"):
            assert not [target for target in found.ours if target.split("/")[0] == "lab"], place


def test_other_libraries_are_imported_where_the_layers_say_so():
    _, named = written()
    for place, found in imports().items():
        for target in found.others:
            assert not outside_of(place, target, named), f"{place} imports {target}"
    for target in ("pyopencl", "mako"):
        for name in named[target]:
            assert any(
                target in found.others for place, found in imports().items() if matches(name, place)
            ), f"{name} does not import {target}"


def test_names_that_are_imported_are_written_where_the_test_can_read_them():
    assert {place for place, found in imports().items() if found.computed} == set(BY_COMPUTED_NAME)


@pytest.mark.parametrize("later", [False, True], ids=["as it is imported", "ever"])
def test_no_modules_import_each_other_in_a_circle(later):
    # Threads that enter a circle at different places wait for each other.
    facades = set(written()[1]["facades"])
    graph = {}
    for place, found in imports().items():
        if place == "__init__" and later:
            continue  # names every home
        around = packages(place)
        needed = set().union(*(({item} | packages(item)) for item in (
            found.ours if later else found.early
        ))) | around  # fmt: skip
        inside = next(iter(facades & {place, *around}), None)
        for item in needed - {place}:
            facade = next(iter(facades & packages(item)), inside)
            assert facade == inside, f"{place} reaches past {facade} for {item}"
        if inside is not None:  # a facade and its modules count as one
            needed = {item for item in needed if inside not in {item, *packages(item)}}
        graph.setdefault(inside or place, set()).update(needed - {place})
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError


def test_only_facades_import_their_own_modules():
    facades = set(written()[1]["facades"])
    for place, found in imports().items():
        if modules()[place].name == "__init__.py" and place not in ("__init__", *facades):
            assert not found.ours, f"{place} imports {found.ours}"


def test_operations_are_named_nowhere_else():
    # What an operation needs follows from the registry: see `CONTRIBUTING.md`.
    names = set(operations())
    for place, path in modules().items():
        if place.startswith(("ops/", "lab/ops/")) or place in NAMING_OPERATIONS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not said & names, f"{place} names {said & names}"


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["sort", "gemm", "conv2d", "dft", "topk", "fft"])
def test_a_public_function_loads_nothing_of_the_lab(name):
    code = f"import sys; from opencl_lab import {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
    )  # fmt: skip
    loaded = [item for item in done.stdout.split() if item.split(".")[0] == "opencl_lab"]
    assert loaded and not [item for item in loaded if short(item).split("/")[0] == "lab"]

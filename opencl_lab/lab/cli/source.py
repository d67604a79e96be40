"""`oclab source OPERATION`: the launches that would run here, and their OpenCL C to read."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import PurePath
from typing import Any

import click

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Argument, Buffer, Launch, LocalMemory, Plan, check_plan
from opencl_lab.core.records import as_json
from opencl_lab.core.space import Config
from opencl_lab.core.template import render
from opencl_lab.lab.cli.common import answer, global_options, option, settings
from opencl_lab.lab.cli.lazy import LazyGroup
from opencl_lab.lab.cli.options import compile_option, given_of, problem_options, used_options
from opencl_lab.lab.offline import TARGETS, Compiled, compile_for
from opencl_lab.lab.operation import Operation
from opencl_lab.ops.solver import Problem
from opencl_lab.runtime.programs import FLAGS

WIDTH, INDENT = 98, 4
NO_CODE = re.compile(r'/\*.*?\*/|//.*|"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])'")
HEAD = re.compile(r"(?:else\s+)?(?:if|for|while)\b.*\)|else|do")
LABEL = re.compile(r"(?:case\b.*|\w+)\s*:")


@click.group(
    "source",
    cls=LazyGroup,
    operation_place="opencl_lab.lab.cli.source:source_operation_command",
)
@global_options
def source_command() -> None:
    """Print what would run here: each launch, and the OpenCL C of its kernels.

    These kernels are neither built nor launched. With --pretend, they are those of such a GPU;
    with --compile, the compiler of a GPU says what registers and local memory they take.
    """


def source_operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that prints what one operation would run."""
    names = ", ".join(algorithm.name for algorithm in chosen.algorithms)
    help_text = f"Print the launches and the OpenCL C of {chosen.name}.\n\nAlgorithms: {names}"

    @click.command(chosen.name, help=help_text)
    @problem_options(chosen)
    @option("--algorithm NAME|auto", "Algorithm to print.", default="auto")
    @compile_option("Compile for a GPU, and say what its compiler tells of each kernel")
    @global_options
    def command(algorithm: str, compile_for: str, **given: Any) -> None:
        options = used_options(chosen, given_of(given))
        shown = _Shown.of(chosen, chosen.problem(**given_of(given)), algorithm, compile_for)
        answer("source", operation=chosen.name, options=options, **shown.content)
        text = shown.comment(chosen.name) + "".join(shown.code())
        settings().console.print(text, markup=False, soft_wrap=True, end="")

    return command


@dataclass(frozen=True)
class _Shown:
    """A problem, what it runs as, and where."""

    problem: Problem
    device: Device
    algorithm: str
    config: Config
    in_parts: str
    plan: Plan
    programs: Mapping[tuple[str, tuple[str, ...]], list[Launch]]
    """The launches of each program, by its text and its build options."""
    compiled: Mapping[tuple[str, tuple[str, ...]], list[Compiled]]
    """What a compiler says of the kernels of each program, if it was asked."""

    @classmethod
    def of(
        cls, chosen: Operation[Any], problem: Problem, algorithm: str, target: str = ""
    ) -> _Shown:
        """Plan a problem, for the device that a call on host arrays takes."""
        device = settings().select().device
        if device.pretended:
            device = replace(device, handle=None)  # nor is it tested, which takes launches
        device = chosen.side(problem, device, algorithm)
        taken = chosen.choose(problem, device, algorithm)
        config = taken.configure(problem, device)
        in_parts = chosen.in_parts(problem, device, taken.name, config)
        plan = taken.plan(problem, config, device)
        if not in_parts:
            check_plan(plan, device)
        programs: dict[tuple[str, tuple[str, ...]], list[Launch]] = {}
        for launch in plan.launches:
            text = render(launch.template, launch.params).text
            programs.setdefault((text, launch.options), []).append(launch)
        compiled = {
            (text, options): compile_for(TARGETS[target], text, (*options, *FLAGS))
            for text, options in (programs if target else ())
        }
        return cls(problem, device, taken.name, config, in_parts, plan, programs, compiled)

    @property
    def numbered(self) -> Iterator[tuple[Launch, int]]:
        """Each launch, with the index of its program."""
        places = {id(x): index for index, xs in enumerate(self.programs.values()) for x in xs}
        return ((launch, places[id(launch)]) for launch in self.plan.launches)

    @property
    def content(self) -> dict[str, Any]:
        """What the JSON document has."""
        return {
            "device": self.device.as_dict(),
            "problem": self.problem.as_dict(),
            "algorithm": self.algorithm,
            "config": dict(self.config),
            "in_parts": self.in_parts or None,
            "buffers": [
                {
                    "name": buffer.name,
                    "role": buffer.role,
                    "shape": buffer.shape,
                    "dtype": buffer.dtype.name,
                    "bytes": buffer.nbytes,
                    "made_by": buffer.table and buffer.table.function.__name__,
                }
                for buffer in self.plan.buffers
            ],
            "launches": [
                {
                    "kernel": launch.kernel,
                    "program": program,
                    "global_size": launch.global_size,
                    "local_size": launch.local_size,
                    "local_bytes": launch.local_bytes,
                    "arguments": {n: _argument(item) for n, item in launch.arguments.items()},
                }
                for launch, program in self.numbered
            ],
            "programs": [
                {
                    "template": str(_file(launches[0])),
                    "build_options": [*options, *FLAGS],
                    "parameters": as_json(launches[0].params),
                    "source": formatted(text),
                    "compiled": [item.as_dict() for item in self.compiled.get((text, options), ())],
                }
                for (text, options), launches in self.programs.items()
            ],
        }

    def comment(self, name: str) -> str:
        """Return a comment in C that says all but the code."""
        return _comment([line for part in self._parts(name) for line in part])

    def _parts(self, name: str) -> Iterator[list[str]]:
        config = " ".join(f"{parameter}={value}" for parameter, value in self.config.items())
        side = ", serial side: in the calling thread" * self.device.is_serial
        head = {
            "algorithm": self.algorithm,
            "configuration": config or "none",
            "device": f"{self.device}{side}",
        }
        if self.in_parts:
            head["in parts"] = f"{self.in_parts}; the launches below are on all at once"
        yield [f"{name}: {self.problem.title}", "", *_listed(head, "")]
        if not self.plan.launches:
            yield ["", "Nothing is launched: the result is empty, or known."]
            return
        buffers = {f"{item.role:8}{item.name}": _buffer_text(item) for item in self.plan.buffers}
        yield ["", "Buffers:", *_listed(buffers)]
        for number, (launch, program) in enumerate(self.numbered, 1):
            groups = math.prod(launch.global_size) // launch.work_group
            local = f", {launch.local_bytes:,} bytes of local memory" * bool(launch.local_bytes)
            yield [
                "",
                f"Launch {number} of {len(self.plan.launches)}: kernel {launch.kernel} of program "
                f"{program + 1}",
                f"    global size {_size(launch.global_size)}, local size "
                f"{_size(launch.local_size)}: {groups:,} group{'s' * (groups != 1)}{local}",
            ]
            yield _listed({n: _argument_text(item) for n, item in launch.arguments.items()})
        for number, ((text, options), launches) in enumerate(self.programs.items(), 1):
            said = f"Program {number} of {len(self.programs)}: {_file(launches[0])}"
            yield ["", f"{said}, built with {' '.join((*options, *FLAGS))}"]
            compiled = self.compiled.get((text, options), ())
            yield _listed({f"{item.kernel} on {item.target.name}": str(item) for item in compiled})
            yield _listed(dict(_parameters(launches[0].params)))

    def code(self) -> Iterator[str]:
        """Yield the OpenCL C of each program, below a line that says which."""
        for number, ((text, _), launches) in enumerate(self.programs.items(), 1):
            said = f"Program {number} of {len(self.programs)}: {_file(launches[0])}"
            yield f"\n/* {said} */\n{formatted(text)}"


def _comment(lines: list[str]) -> str:
    text = "".join(f" * {line}".rstrip() + "\n" for line in lines)
    return "/*\n" + text.replace("*/", "* /") + " */\n"


def _listed(items: Mapping[str, str], begin: str = " " * INDENT) -> list[str]:
    """Return names beside texts, which are wrapped."""
    room = max([15, *map(len, items)]) + 2
    return [
        line
        for name, text in items.items()
        for line in textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"{begin}{name:{room}}",
            subsequent_indent=begin + " " * room,
            break_on_hyphens=False,
        )
    ]


def _size(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def _file(launch: Launch) -> PurePath:
    return PurePath("clkernels", launch.template)  # a user's own has an absolute path


def _buffer_text(buffer: Buffer) -> str:
    text = f"{buffer.nbytes:,} bytes: {_size(buffer.shape)} {buffer.dtype.name}"
    return f"{text}, made by {buffer.table.function.__name__}" if buffer.table else text


def _argument(item: Argument) -> dict[str, Any]:
    if isinstance(item, str):
        return {"buffer": item}
    if isinstance(item, LocalMemory):
        return {"local_bytes": item.nbytes}
    return {"value": item.item(), "dtype": item.dtype.name}


def _argument_text(item: Argument) -> str:
    if isinstance(item, LocalMemory):
        return f"{item.nbytes:,} bytes of local memory"
    return item if isinstance(item, str) else f"{item} ({item.dtype})"


def _parameters(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a template; of steps in a launch of several, each."""
    for name, value in params.items():
        if not (isinstance(value, tuple) and value and is_dataclass(value[0])):
            yield name, str(value)
            continue
        if len(value) > 1:
            yield name, f"{len(value)}, fused: one after the other in the same launch"
        for index, part in enumerate(value):
            yield f"{name}[{index}]", str(part)


def formatted(text: str) -> str:
    """Return OpenCL C with lines indented by their brackets, and without needless empty lines.

    Templates write code into each other, each indented for a place of its own. Lines stay lines; a
    statement that goes on keeps its shape.
    """
    lines: list[str] = []
    # Whether statements are inside, where they begin, and where the line that closes it begins.
    brackets: list[tuple[bool, int, int]] = []
    heads: list[int] = []  # loops and conditions without braces, whose statement comes next
    ifs: dict[int, int] = {}  # the new column of the last `if` by the one it had, for its `else`
    begun, first, first_had = "", 0, 0  # a statement that goes on; columns of its first line
    shift: int | None = None  # of the lines of a comment
    for line in text.expandtabs(INDENT).split("\n"):
        code, had = line.strip(), len(line) - len(line.lstrip())
        if shift is not None:
            lines.append((" " * max(0, had + shift) + code).rstrip())
            shift = None if "*/" in code else shift
            continue
        if not code:
            lines += [""] * bool(lines and lines[-1] and not lines[-1].endswith("{"))
            continue
        if code.startswith("#") and not re.match(r"#pragma (?!OPENCL)", code):
            lines.append(re.sub(r" {4,}", f" \\\\\n{' ' * INDENT}", code))  # as the template has it
            continue
        if code[0] == "}" and lines and not lines[-1]:
            lines.pop()
        block, column, outside = brackets[-1] if brackets else (True, 0, 0)
        if code[0] in ")]}":
            column = outside
        elif block and begun:
            goes_on = bool(brackets) and code[0] != "{"
            column = first + max(INDENT, had - first_had) * goes_on
        elif block and code.startswith("else"):
            column = ifs.get(had, column)
        elif block and heads:
            column = heads[-1] + INDENT * (code[0] != "{")
        lines.append(" " * column + code)
        if code[0] == "#":
            continue
        plain, comment, _ = NO_CODE.sub(_blank, code).partition("/*")
        shift = column - had if comment else None
        for place, letter in enumerate(plain):
            if not begun and letter not in " }":
                first, first_had = column, had
                if code.startswith(("if", "else if", "} else if")):
                    ifs[had] = column
            if letter == "{" and not begun.rstrip().endswith(("=", "(", ",", "{")):
                brackets.append((True, first + INDENT, first))
                begun, heads = "", []
                continue
            if letter in "([{":
                inside = column + (place + 1 if plain[place + 1 :].strip() else INDENT)
                brackets.append((False, inside, column))
            elif letter in ")]}" and brackets and brackets.pop()[0]:
                begun, heads = "", []
                continue
            begun = (begun + letter).lstrip()
            if letter == ";" and (not brackets or brackets[-1][0]):
                begun, heads = "", []
        begun += " " * bool(begun)
        if not brackets or brackets[-1][0]:
            if HEAD.fullmatch(begun.strip()):
                begun, heads = "", [*heads, first]
            elif LABEL.fullmatch(begun.strip()):
                begun = ""
    return "\n".join(lines).strip() + "\n"


def _blank(found: re.Match[str]) -> str:
    """Return what takes the place of a comment or a string in code: nothing, or a value."""
    return (" " if found[0][0] == "/" else '"') * len(found[0])

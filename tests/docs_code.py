"""The code in README.md and docs: what is found in a document, and how each kind of it is run.

A fenced block says by its word what it is:

python, pycon    Run, all of a document in one process and one namespace, in this order. What a
                 `pycon` block prints is compared. Tuning ends after a second.
console          Commands behind ``$ ``, each followed by what it prints. All of a document run in
                 one folder; status 0 is asked for, and what is printed is compared, numbers to a
                 thousandth; a line ``...`` stands for any lines.
(none), sh       The same where the first line begins with ``$ ``. Else every line that is a command
                 of `oclab`, `python` or `pip` is checked: parsed by Click as far as to the
                 function that would run, or looked up in the script's or the package's own options.
                 Indented blocks and `oclab ...` between backquotes are checked so, too.
text and others  Not run. A command in a `text` block is an error.

Comments in front of a block change that, and each must have a reason:
``<!-- code: not run: REASON -->``, ``<!-- code: output varies: REASON -->``. A block behind
``<!-- ci -->`` is run by `.ci/run`.

Run as a script, it runs the `python` and `pycon` blocks of one document.
"""

from __future__ import annotations

import doctest
import math
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

NOT_CODE = ("c", "html", "json", "layers", "mermaid", "text", "toml")
SESSION = ("", "console", "sh")
KNOWN = (*SESSION, *NOT_CODE, "pycon", "python")
VERBS = ("not run", "output varies")
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NAMED = re.compile(r"<!-- (ci|code: (.*?)) -->")
TUNING = 1  # seconds


class DocumentError(AssertionError):
    """Something in a document that cannot be run, or does not give what it shows."""


@dataclass(frozen=True)
class Block:
    """A block of a document: its word, lines, the first one's number, and what a comment says."""

    word: str
    lines: tuple[str, ...]
    first: int
    comment: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def is_session(self) -> bool:
        return self.word in SESSION and self.lines[:1] != () and self.lines[0].startswith("$ ")

    @property
    def runs(self) -> bool:
        return not self.comment.startswith(("ci", "not run"))

    @property
    def varies(self) -> bool:
        return self.comment.startswith("output varies")


@dataclass(frozen=True)
class ShellCommand:
    """One command of a session with the output that the document shows."""

    text: str
    shown: tuple[str, ...]
    line: int


def blocks(text: str) -> list[Block]:
    """Return the fenced and the indented blocks of a document.

    Raises
    ------
    DocumentError
        For a fence that does not end, an unknown word, or a comment without a reason.
    """
    found, lines = [], text.split("\n")
    comment, at, blank = "", 0, True
    while at < len(lines):
        line = lines[at]
        if fence := re.match(r"( *)(```+|~~~+) *(\S*)", line):
            indent, mark, word = fence.groups()
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == mark), None)
            if end is None or word not in KNOWN:
                raise DocumentError(f"line {at + 1}: the fence does not end, or {word!r} is new")
            inside = tuple(item.removeprefix(indent) for item in lines[at + 1 : end])
            found.append(Block(word, inside, at + 2, comment))
            at, comment = end, ""
        elif line.startswith("    ") and blank:
            end = next((i for i in range(at, len(lines)) if not lines[i].startswith("    ")), at)
            found.append(Block("", tuple(item[4:] for item in lines[at:end]), at + 1, comment))
            at, comment = end - 1, ""
        elif named := NAMED.fullmatch(line.strip()):
            comment = _meaning(named, at + 1)
        elif line.strip():
            comment = ""
        blank = not lines[at].strip()
        at += 1
    return found


def _meaning(named: re.Match[str], line: int) -> str:
    if named[1] == "ci":
        return "ci"
    verb, _, reason = named[2].partition(": ")
    if verb not in VERBS or not reason.strip():
        raise DocumentError(f"line {line}: the comment needs {' or '.join(VERBS)}, and a reason")
    return named[2]


def commands(block: Block) -> Iterator[ShellCommand]:
    """Return the commands of a session: quotes and backslashes continue them over lines."""
    at = 0
    while at < len(block.lines):
        line = at
        text = block.lines[at].removeprefix("$ ")
        at += 1
        while text.endswith("\\") or _open(text):
            text += "\n" + block.lines[at]
            at += 1
        start = at
        while at < len(block.lines) and not block.lines[at].startswith("$ "):
            at += 1
        yield ShellCommand(text, block.lines[start:at], block.first + line)


def _open(text: str) -> bool:
    """Return whether a quote is open at the end of a shell command."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def listed(block: Block) -> Iterator[tuple[int, list[str]]]:
    """Return each single command in a list of them, as words, with the number of its line.

    What stands behind two spaces is a remark; lines that are no commands are left out.
    """
    text, first = "", 0
    for number, line in enumerate(block.lines, block.first):
        first = first if text else number
        text += " " * bool(text) + line.removesuffix("\\").strip()
        if line.endswith("\\") or (text.startswith("oclab") and _open(text.partition("  ")[0])):
            continue
        for words in simple_commands(text):
            yield first, words
        text = ""


def simple_commands(text: str) -> Iterator[list[str]]:
    """Return the words of every command in a line of shell, without variables set before them."""
    bare = re.sub(r"(?<=\S)(?: {2,}|\t)(?![-\s]).*", "", text.strip()).removeprefix("$ ")
    try:
        lexer = shlex.shlex(bare, posix=True, punctuation_chars="|&;")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # a table or a sentence
        return
    part: list[str] = []
    for word in (*words, ";"):
        if set(word) <= set("|&;"):
            while part and re.match(r"[A-Z_]+=", part[0]):
                part.pop(0)
            if part and Path(part[0]).name in ("oclab", "pip", "python"):
                yield [Path(part[0]).name, *part[1:]]
            part = []
        else:
            part.append(word)


def inline(text: str) -> Iterator[tuple[int, list[str]]]:
    """Return the commands of oclab between backquotes, with the numbers of their lines."""
    kept = re.sub(r"^( *)(```+|~~~+).*?^\1\2", _hollow, text, flags=re.DOTALL | re.MULTILINE)
    for span in re.finditer(r"(?<!`)`(oclab [a-z][^`]*)`(?!`)", kept):
        if not re.search(r"\.\.\.|[|\[\]…]|\n\n| [A-Z]+\b(?!\.)", span[1].partition(" -")[0]):
            words = shlex.split(span[1].replace("\\|", "|"))
            if not re.search(r"\.\.\.|[|\[\]…]", span[1]):
                yield kept.count("\n", 0, span.start()) + 1, words


def _hollow(block: re.Match[str]) -> str:
    return "\n" * block[0].count("\n")


def compare(shown: tuple[str, ...], printed: str) -> None:
    """Compare what a document shows with what was printed.

    Raises
    ------
    DocumentError
        If they differ in words, or in a number by more than a thousandth of it or of one.
    """
    lines = [line.rstrip() for line in printed.rstrip("\n").split("\n")]
    wanted = [line.rstrip() for line in shown]
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return
    if "..." in wanted:
        cut = wanted.index("...")
        tail = len(wanted) - cut - 1
        pairs = [*zip(wanted[:cut], lines, strict=False)]
        pairs += zip_longest(wanted[cut + 1 :], lines[len(lines) - tail :] if tail else [])
    else:
        pairs = [*zip_longest(wanted, lines)]
    for want, got in pairs:
        if want is None or got is None or not _alike(want, got):
            raise DocumentError(f"the document shows {want!r}, but printed was {got!r}")


def _alike(want: str, got: str) -> bool:
    if NUMBER.sub("0", want).split() != NUMBER.sub("0", got).split():
        return False
    numbers = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
    pairs = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in numbers]
    return all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3) for a, b in pairs)


def run_python(path: Path) -> None:
    """Run the `python` and `pycon` blocks of a document; the first failure is raised.

    Raises
    ------
    DocumentError
        If a `pycon` block prints something else.
    """
    import opencl_lab as ol

    for name in ("tune", "tune_kernel"):
        setattr(ol, name, _hurried(getattr(ol, name)))
    space: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.runs and block.word == "python":
            code = "\n" * (block.first - 1) + block.text
            exec(compile(code, str(path), "exec"), space)
        elif block.runs and block.word == "pycon":
            parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
            runner.optionflags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            test = parser.get_doctest(block.text, space, str(path), str(path), block.first - 1)
            if runner.run(test, clear_globs=False).failed:
                raise DocumentError(f"{path}, line {block.first}: it prints something else")
            space = test.globs


def _hurried(function):
    def call(*arguments, time_limit=TUNING, **options):
        return function(*arguments, time_limit=min(time_limit, TUNING), **options)

    return call


if __name__ == "__main__":
    run_python(Path(sys.argv[1]))

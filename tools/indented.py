"""Indents C as its brackets say, whatever its lines begin with.

Templates write pieces of code into each other, each indented for a place of its own. Lines stay
lines: only the space before them changes, and empty lines that separate nothing go. A statement
that goes on keeps its own shape; arguments are aligned behind their parenthesis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

WIDTH = 4
PAIRS = {")": "(", "]": "[", "}": "{"}
NO_CODE = re.compile(r'/\*.*?\*/|//.*|"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])'")
JOINED = re.compile(r" {4,}")
HEAD = re.compile(r"(?:else\s+)?(?:if|for|while)\b|else\b|do\b")


@dataclass
class _Bracket:
    block: bool  # whether statements are inside: no expression, no list of values
    inside: int  # where lines inside of it begin
    outside: int  # where the line begins that closes it
    heads: list[_Head] = field(default_factory=list)  # of which a block is the statement


@dataclass(frozen=True)
class _Head:
    """A loop or a condition: its statement follows."""

    column: int
    takes_else: bool


class _Indenter:
    """Goes through the lines of a file; what it holds is said of the place before the next one."""

    def __init__(self) -> None:
        self.brackets: list[_Bracket] = []
        self.heads: list[_Head] = []  # without braces, whose statement comes next
        self.ended: list[_Head] = []  # those of the statement that has just ended
        self.begun = ""  # what there is of a statement that goes on
        self.first = (0, 0)  # columns of its first line: the new one, and the one it had

    def column(self, code: str, had: int) -> int:
        """Return where a line begins that began at column `had`."""
        top = self.brackets[-1] if self.brackets else None
        if top and code[0] in PAIRS:
            return top.outside
        if top and not top.block:
            return top.inside
        if self.begun and code[0] == "{":
            return self.first[0]
        if self.begun:
            return self.first[0] + max(WIDTH, had - self.first[1]) * bool(top)
        if code.startswith("else"):
            return next((head.column for head in reversed(self.ended) if head.takes_else), 0)
        if self.heads:
            return self.heads[-1].column + (0 if code[0] == "{" else WIDTH)
        return top.inside if top else 0

    def read(self, code: str, column: int, had: int) -> None:
        """Go through a line without comments and strings."""
        for place, letter in enumerate(code):
            if letter != " ":
                self._read(letter, code[place:], column + place, column, had)
        if not self.brackets or self.brackets[-1].block:
            self._end_head()

    def _read(self, letter: str, rest: str, place: int, column: int, had: int) -> None:
        if not self.begun and letter != "}":
            self._begin(rest, column, had)
        if letter in "([{":
            if letter == "{" and not self.begun.rstrip().endswith(("=", "(", ",", "{")):
                heads = [*self.heads, *self._own_head()]
                self.brackets.append(_Bracket(True, self.first[0] + WIDTH, self.first[0], heads))
                self.heads, self.begun = [], ""
                return
            inside = place + 1 if rest[1:].strip() else column + WIDTH
            self.brackets.append(_Bracket(False, inside, column))
        elif letter in PAIRS and self.brackets:
            closed = self.brackets.pop()
            if closed.block:
                self._end(closed.heads)
                return
        self.begun += rest[: 1 + (rest[1:2] == " ")]
        if letter == ";" and (not self.brackets or self.brackets[-1].block):
            self._end([*self.heads, *self._own_head()])

    def _begin(self, rest: str, column: int, had: int) -> None:
        self.first = (column, had)
        if rest.startswith("else"):
            while self.ended and not self.ended[-1].takes_else:
                self.ended.pop()
            if self.ended:
                self.first = (self.ended.pop().column, had)
            self.heads = self.ended
        self.ended = []

    def _own_head(self) -> list[_Head]:
        """Return the head with which the statement begins, if it does."""
        if not HEAD.match(self.begun):
            return []
        return [_Head(self.first[0], bool(re.search(r"\bif\b", self.begun)))]

    def _end_head(self) -> None:
        """Wait for the statement of a loop or a condition, if a line ends with its head."""
        text = self.begun.strip()
        if HEAD.match(text) and (text.endswith(")") or text in ("else", "do")):
            self.heads, self.begun = [*self.heads, *self._own_head()], ""

    def _end(self, heads: list[_Head]) -> None:
        self.begun, self.ended, self.heads = "", heads, []


def indented(text: str) -> str:
    """Return C with its lines indented by four columns for each block they are in."""
    indenter, lines = _Indenter(), list[str]()
    comment: int | None = None  # how far a comment that goes on moves
    macro = False
    for line in text.expandtabs(WIDTH).split("\n"):
        code, had = line.strip(), len(line) - len(line.lstrip())
        if comment is not None:
            lines.append(" " * max(0, had + comment) * bool(code) + code)
            comment = None if "*/" in code else comment
        elif macro:
            lines.append(line.rstrip())
            macro = code.endswith("\\")
        elif not code:
            if lines and lines[-1] and not lines[-1].endswith("{"):
                lines.append("")
        elif code[0] == "#":
            inner = code.startswith("#pragma") and not code.startswith("#pragma OPENCL")
            # Mako joins the lines of a macro.
            pieces = JOINED.split(code) if code.startswith("#define") else [code]
            begin = " " * indenter.column("x", 0) if inner else ""
            lines += f" \\\n{' ' * WIDTH}".join([begin + pieces[0], *pieces[1:]]).split("\n")
            macro = code.endswith("\\")
        else:
            if code[0] == "}" and lines and not lines[-1]:
                lines.pop()
            column = indenter.column(code, had)
            lines.append(" " * column + code)
            plain = NO_CODE.sub(lambda found: _blank(found.group()), code)
            before, goes_on, _ = plain.partition("/*")
            indenter.read(before, column, had)
            comment = column - had if goes_on else None
    return "\n".join(lines).strip() + "\n"


def _blank(text: str) -> str:
    """Return what a comment or a string is to the indenter: nothing, or a value."""
    return " " * len(text) if text[0] == "/" else '"' * len(text)

"""Rendered examples are what the kernel files say now, and C is indented by its brackets."""

import runpy
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture(scope="module")
def tool():
    """Return the names of the tool, which imports others that lie beside it."""
    sys.path.insert(0, str(TOOLS))
    try:
        return runpy.run_path(str(TOOLS / "kernel_examples.py"))
    finally:
        sys.path.remove(str(TOOLS))


def test_every_kernel_file_has_a_fresh_example(tool):
    assert tool["complaints"](tool["fresh"]()) == [], "run tools/kernel_examples.py write"


def test_examples_that_are_missing_stale_or_too_many_are_named(tool, tmp_path):
    found = tool["fresh"]()
    for path, text in found.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert tool["complaints"](found, tmp_path) == []
    stale, missing = Path("gemm/naive.cl"), Path("gemm/tiled.cl")
    (tmp_path / stale).write_text("another")
    (tmp_path / missing).unlink()
    (tmp_path / "gemm/other.cl").write_text("")
    assert tool["complaints"](found, tmp_path) == [
        "gemm/other.cl: there is no such example",
        f"{stale}: not what the kernel file is rendered to now",
        f"{missing}: not what the kernel file is rendered to now",
    ]
    del found[stale]
    assert f"{stale}: the kernel file has no example" in tool["complaints"](found, tmp_path)


def test_examples_have_no_stray_lines(tool):
    for text in tool["fresh"]().values():
        assert "\n\n\n" not in text and "{\n\n" not in text and "\t" not in text
        assert not any(line.endswith(" ") for line in text.splitlines())


SOURCE = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
  void f(const int a,
     const int b) /* goes
                     on */
  {


#pragma unroll
        for (int i = 0; i < 3; ++i)
  if (a) {
x(a,
y);

            }
    else if (b)
    x = a
        ? "{" : b;
        else
 while (g(
  1)) {
 int s[] = {1,
      2}; }
    z;   // {
  }
#define LONG(a)      f(a,     b)
"""
INDENTED = """\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void f(const int a,
       const int b) /* goes
                       on */
{
    #pragma unroll
    for (int i = 0; i < 3; ++i)
        if (a) {
            x(a,
              y);
        }
        else if (b)
            x = a
                ? "{" : b;
        else
            while (g(
                1)) {
                int s[] = {1,
                           2}; }
    z;   // {
}
#define LONG(a) \\
    f(a, \\
    b)
"""


def test_c_is_indented_by_its_brackets(tool):
    assert tool["indented"](SOURCE) == INDENTED
    assert tool["indented"](INDENTED) == INDENTED

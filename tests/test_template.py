"""Rendering is strict: every argument declared, every argument given, no name left over."""

from __future__ import annotations

import builtins
import re

import pytest
from mako.lookup import TemplateLookup

from opencl_lab.core import template as module
from opencl_lab.core.errors import BuildError
from opencl_lab.core.template import Source, render


@pytest.fixture
def template(tmp_path):
    """Return a function that writes a template and returns its absolute path."""

    def write(text, name="kernel.cl.mako"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_renders_with_exactly_its_arguments(template):
    path = template('<%page args="A, B=2"/>a = ${A}, b = ${B};\n')
    assert render(path, {"A": 1}) == Source(path, "a = 1, b = 2;\n")
    assert render(path, {"A": 1, "B": 3}).text == "a = 1, b = 3;\n"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "arguments missing A"),
        ({"B": 1}, "arguments missing A"),
        ({"A": 1, "C": 1, "D": 1}, "arguments unknown C, D"),
        ({"C": 1}, "arguments missing A and unknown C"),
        ({"A": 1, "context": 1}, "arguments unknown context"),
        ({"A": 1, "pageargs": 1}, "arguments unknown pageargs"),
    ],
)
def test_strict_both_ways(params, message, template):
    with pytest.raises(BuildError, match=message):
        render(template('<%page args="A, B=2"/>${A}${B}'), params)


@pytest.mark.parametrize(
    "body",
    [
        "${UNDECLARED}",
        "% if UNDECLARED:\nx\n% endif\n",
        "<%def name='f()'>${UNDECLARED}</%def>${f()}",
    ],
)
def test_an_undeclared_name_is_an_error(body, template):
    with pytest.raises(BuildError, match="UNDECLARED"):
        render(template(f'<%page args="A"/>\n{body}\n'), {"A": 1})


def test_an_edit_shows_at_once(template):
    def text(own, part):
        template(part, "part.mako")
        return render(
            template(f'<%page args="A"/>{own}<%include file="part.mako"/>'), {"A": 1}
        ).text

    # More often than any clock of a file system ticks, and of the same length.
    for round_ in range(100, 120):
        assert text("a", f"{round_}") == f"a{round_}"
    assert text("b", "119") == "b119"
    assert text("a", "119") == "a119"


@pytest.mark.parametrize(
    "tag",
    [
        "<%include args=\"**dict(A=1 if 3 > 2 else 0)\" file='part.mako'/>",
        '<%include\n  file = "part.mako"\n/>',
        '<%namespace name="p" file="part.mako"/>${p.body()}',
        "<%def name='f()'><%include file='part.mako'/></%def>${f()}",
    ],
)
def test_every_way_to_include_is_seen(tag, template):
    for text in ("one", "two"):
        template(f'<%page args="A=0"/>{text}', "part.mako")
        assert render(template(tag), {}).text.strip() == text


def test_what_is_no_include_is_not_looked_for(template):
    text = "<%doc><%include file='no.mako'/></%doc>\n## <%include file='no.mako'/>\nplain\n"
    shown = "<%text><%include file='no.mako'/></%text>"
    assert render(template(text + shown), {}).text.strip() == "plain\n<%include file='no.mako'/>"
    for part in ("one", "two"):
        template(part, "part.mako")
        assert part in render(template(text + "<%include file='part.mako'/>"), {}).text
    with pytest.raises(BuildError, match=r"includes \$\{A\}: name the file"):
        render(template('<%page args="A"/><%include file="${A}"/>'), {"A": "part.mako"})


@pytest.mark.parametrize("name", ["sort/no_such.cl.mako", "/no/such/folder/kernel.cl.mako"])
def test_a_missing_template(name):
    with pytest.raises(BuildError, match=re.escape(name)):
        render(name, {})


@pytest.mark.parametrize("body", ["% if True:\n", "${1 +}", "<%nosuch:tag/>", "<%def>"])
def test_a_malformed_template(body, template):
    with pytest.raises(BuildError, match="did not render"):
        render(template(body), {})


def test_an_error_inside_a_template_names_its_place(template):
    with pytest.raises(BuildError, match="ZeroDivisionError") as caught:
        render(template('<%page args="A"/>\nfirst\n${1 // A}\n'), {"A": 0})
    assert "ZeroDivisionError" in caught.value.log
    assert "${1 // A}" in caught.value.log


BUILDING_BLOCKS = sorted(
    str(path.relative_to(module.ROOT))
    for path in module.ROOT.rglob("*.mako")
    if not path.name.endswith(".cl.mako")
)


@pytest.mark.parametrize("name", BUILDING_BLOCKS)
def test_building_blocks_get_all_that_they_use_by_arguments(name):
    """Not from the page of the file that calls them, and a kernel file has no other way in."""
    compiled = TemplateLookup([str(module.ROOT)], strict_undefined=True).get_template(f"/{name}")
    assert "<%page" not in compiled.source and "<%include" not in compiled.source
    read = set(re.findall(r"context(?:\.get\(|\[)'(\w+)'", compiled.code))
    assert read <= {"caller", "local", *dir(builtins)}  # two names of Mako's own

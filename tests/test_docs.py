"""The documents: links and anchors that exist, and no page that the README does not lead to."""

from __future__ import annotations

import math
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.registry import get_operation

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
TARGET = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def slugs(text):
    """Return the anchors of a page, as GitHub makes them of its headings."""
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        count = 0
        while (anchor := f"{slug}-{count}" if count else slug) in found:
            count += 1
        found.add(anchor)
    return found


def links(text):
    """Return the targets of the links and pictures of a page, but for those in code."""
    prose = CODE.sub("", FENCE.sub("", text))
    return [first or second for first, second in TARGET.findall(prose)]


def broken(page, text):
    """Yield what is wrong with each relative link of a page that leads nowhere."""
    for link in links(text):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not path.is_relative_to(ROOT):
            yield f"{page.name}: {link} leads out of the repository"
            continue
        if path != page and not path.exists():
            yield f"{page.name}: there is no {link}"
            continue
        there = text
        if path != page and path.suffix == ".md":
            there = path.read_text(encoding="utf-8")
        if parts.fragment and path.suffix == ".md" and parts.fragment not in slugs(there):
            yield f"{page.name}: {link} names no heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert not list(broken(page, page.read_text(encoding="utf-8")))


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        for link in links(page.read_text(encoding="utf-8")):
            path = urlsplit(link).path
            if path and not urlsplit(link).scheme:
                waiting.append((page.parent / unquote(path)).resolve())
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page not in reached]


def test_a_broken_link_is_found():
    """What the other tests rely on: files, anchors and code are told apart."""
    page = ROOT / "docs" / "no_such_page.md"
    text = (
        "# A page\n\n## It's `code`, twice\n## Twice\n## Twice\n\n"
        "[good](#its-code-twice) [good](#twice-1) [web](https://x.org/no.md#x)\n"
        "[good](architecture.md#environment-variables) [good](../README.md) `[code](nowhere.md)`\n"
        "[bad](#its-not) ![bad](nowhere.svg) [bad](architecture.md#nowhere) [bad](../../..)\n"
        "```\n[code](nowhere.md)\n# no heading\n```\n"
    )
    found = list(broken(page, text))
    assert [line.split(": ")[1].split(" names")[0] for line in found] == [
        "#its-not", "there is no nowhere.svg", "architecture.md#nowhere",
        "../../.. leads out of the repository",
    ]  # fmt: skip


def test_the_readme_has_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, found, rest = text.partition("<!-- ci -->\n```\n")
    assert found and len(rest.partition("\n```")[0].splitlines()) == 2


EXAMPLES = {
    (1 << 20, "cpu"): [(2, 1, 658_240)],
    (1 << 20, "gpu"): [(256, 256, 32_904)],
    (1_009, "cpu"): [(8, 256, 0), (1, 1, 32_768), (8, 256, 0), (1, 1, 32_768), (4, 256, 0)],
    (1_009, "gpu"): [(1, 128, 17_408)],
}
"""What docs/fft.md works through: groups, items and bytes of local memory of each launch."""


CPU = Device(
    "CPU", "cpu", compute_units=2, native_vector_bytes=64, unified_memory=True,
    max_work_items=(4096,) * 3,
    capabilities=Capabilities(
        max_work_group=4096, local_memory=1 << 20, vector_bytes=64, visible_writes=True
    ),
)  # fmt: skip
GPU = Device(
    "GPU", "gpu", compute_units=132, native_vector_bytes=16, max_work_items=(1024,) * 3,
    capabilities=Capabilities(
        inline_ptx=True, max_work_group=1024, local_memory=48 << 10, vector_bytes=16,
        visible_writes=True, forward_progress=True,
    ),
)  # fmt: skip
"""The devices of these examples."""


@pytest.mark.parametrize(("n", "kind"), EXAMPLES)
def test_the_examples_of_the_fft_are_its_plans(n, kind):
    dft, device = get_operation("dft"), {"cpu": CPU, "gpu": GPU}[kind]
    problem, algorithm = dft.problem(n=n), dft.algorithm("fft")
    plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
    launches = [
        (math.prod(launch.global_size) // items, items, launch.local_bytes)
        for launch in plan.launches
        for items in [math.prod(launch.local_size)]
    ]
    assert launches == EXAMPLES[n, kind]
    page = (ROOT / "docs/fft.md").read_text(encoding="utf-8")
    for _, _, local in launches:
        assert not local or f"{local:,}" in page

"""The gallery: its page is what the tool makes of its list, and every picture is there."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MOST_BYTES = 1_000_000  # of all pictures
TOOL = SimpleNamespace(**runpy.run_path(str(ROOT / "tools/gallery.py")))
NAMES = [entry.name for entry in TOOL.ENTRIES]
DEVICE = {"name": "Some GPU", "platform": "Some Platform", "driver": "1.2"}


@pytest.fixture(scope="module")
def page():
    return (DOCS / "gallery.md").read_text(encoding="utf-8")


def line_of(text):
    """Return what a place says about where and when it was made."""
    return re.search(r"^\((.*)\)$", text, re.MULTILINE)[1]


@pytest.mark.parametrize("entry", TOOL.ENTRIES, ids=NAMES)
def test_each_place_is_made_of_the_list(entry, page):
    begin, end = TOOL.markers(entry)
    assert page.count(begin) == page.count(end) == 1
    there = page[page.index(begin) : page.index(end) + len(end)]
    assert there == TOOL.section(entry, line_of(there))
    assert re.search(r", \d{4}-\d\d-\d\d$", line_of(there))


def test_places_stand_in_the_order_of_the_list(page):
    assert re.findall(r"<!-- made by tools/gallery.py: (\w+) -->", page) == NAMES
    assert len(set(NAMES)) == len(NAMES)
    assert TOOL.with_sections(page, {}) == page


def test_pictures_are_there_small_and_shown(page):
    shown = set(re.findall(r"\]\((gallery/[^)]+)\)", page))
    kept = {f"gallery/{path.name}" for path in (DOCS / "gallery").iterdir()}
    assert shown == kept == {entry.picture for entry in TOOL.ENTRIES}
    assert sum((DOCS / name).stat().st_size for name in kept) < MOST_BYTES
    for name in kept:
        with Image.open(DOCS / name) as image:
            assert 600 <= image.width <= TOOL.WIDTH
            corner = image.convert("RGBA").getpixel((0, 0))
        assert corner == (255, 255, 255, 255)  # a page of its own on dark ones


def test_one_place_made_anew_leaves_the_others(page):
    changed = TOOL.with_sections(page, {NAMES[1]: "elsewhere, 2030-01-02"})
    assert changed != page and changed.count("(elsewhere, 2030-01-02)") == 1
    assert (
        TOOL.with_sections(changed, {NAMES[1]: line_of(page.split(NAMES[1] + " -->")[1])}) == page
    )


def test_a_place_that_is_new_comes_where_the_list_has_it(page):
    begin, end = TOOL.markers(TOOL.ENTRIES[2])
    without = page[: page.index(begin)] + page[page.index(end) + len(end) :]
    line = line_of(page[page.index(begin) :])
    assert TOOL.with_sections(without, {NAMES[2]: line}) == page


def test_the_line_is_drawn_from_the_document():
    environment = {"started": "2030-01-02T03:04:05+00:00", "processors": 8}
    document = {"device": DEVICE, "environment": environment}
    assert TOOL.where(document) == "Some GPU, Some Platform 1.2, 8 processors, 2030-01-02"
    assert re.fullmatch(
        r"Some GPU, Some Platform 1\.2, \d{4}-\d\d-\d\d", TOOL.where({"device": DEVICE})
    )


def test_pictures_are_kept_smaller_and_on_white(tmp_path):
    image = Image.new("RGBA", (3000, 1500), (0, 0, 0, 0))
    image.paste((200, 30, 40, 255), (0, 0, 1500, 1500))
    image.save(tmp_path / "large.png")
    TOOL.keep(tmp_path / "large.png", tmp_path / "kept" / "small.png")
    with Image.open(tmp_path / "kept" / "small.png") as kept:
        assert kept.size == (TOOL.WIDTH, TOOL.WIDTH // 2) and len(kept.getcolors()) <= TOOL.COLOURS
        colours = [kept.convert("RGB").getpixel((x, 300)) for x in (10, TOOL.WIDTH - 10)]
    assert colours == [(200, 30, 40), (255, 255, 255)]


@pytest.mark.full
def test_what_is_missing_is_named_and_nothing_else_changes(tmp_path, page, capsys):
    entry = TOOL.Entry("x", "X", "oclab cache info", "no/such.png", "X.")
    with pytest.raises(TOOL.Missing, match=r"x: oclab cache info wrote no no/such\.png"):
        TOOL.run_entry(entry, tmp_path)
    wrong = TOOL.Entry("x", "X", "oclab sort --n -1", "x.png", "X.")
    with pytest.raises(TOOL.Missing, match="x: oclab sort --n -1: status 2"):
        TOOL.run_entry(wrong, tmp_path)
    with pytest.raises(SystemExit):
        TOOL.main(["--only", "nothing-of-that-name"])
    assert "nothing-of-that-name" in capsys.readouterr().err
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == page


def test_inputs_are_drawn_and_played(tmp_path):
    for entry in TOOL.ENTRIES:
        if entry.prepare is not None:
            entry.prepare(tmp_path)
            assert any(path.name in entry.command for path in tmp_path.iterdir())
    with Image.open(tmp_path / "scene.png") as scene:
        assert scene.size == (480, 320) and len(scene.getcolors()) > 50
    assert (tmp_path / "chord.wav").stat().st_size > 2 * TOOL.RATE

"""The gallery: its page shows commands with their pictures, which a tool makes again."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("PIL")
pytest.importorskip("scipy")
from PIL import Image

DOCS = Path(__file__).parents[1] / "docs"
MOST_BYTES = 1_000_000  # of all pictures
TOOL = SimpleNamespace(**runpy.run_path(str(DOCS.parent / "tools/gallery.py")))
PLACES = list(TOOL.PLACE.finditer((DOCS / "gallery.md").read_text(encoding="utf-8")))


def test_every_picture_is_small_and_shown_by_its_commands():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    kept = {path.stem for path in (DOCS / "gallery").iterdir()}
    assert sorted(kept) == sorted(place["name"] for place in PLACES)
    assert len(PLACES) == text.count("](gallery/") == text.count("## ")
    for place in PLACES:
        assert all(line.startswith("oclab ") for line in place["commands"].splitlines())
        assert re.search(r", \d{4}-\d\d-\d\d$", place["where"])
    assert sum(path.stat().st_size for path in (DOCS / "gallery").iterdir()) < MOST_BYTES
    for path in (DOCS / "gallery").iterdir():
        with Image.open(path) as image:
            assert 600 <= image.width <= TOOL.WIDTH
            corner = image.convert("RGBA").getpixel((0, 0))
        assert corner == (255, 255, 255, 255)  # a page of its own on dark ones


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
def test_a_place_is_made_again(tmp_path, monkeypatch):
    page = tmp_path / "docs/gallery.md"
    page.parent.mkdir()
    page.write_text((DOCS / "gallery.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setitem(TOOL.main.__globals__, "PAGE", page)
    TOOL.main(["edges"])
    assert (page.parent / "gallery/edges.png").is_file()
    lines = [place["where"] for place in TOOL.PLACE.finditer(page.read_text(encoding="utf-8"))]
    changed = [old["where"] != new for old, new in zip(PLACES, lines, strict=True)]
    assert sum(changed) == 1
    with pytest.raises(SystemExit, match="no place is called nothing"):
        TOOL.main(["nothing"])

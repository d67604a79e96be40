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
        for line in [] if place["language"] else place["commands"].splitlines():
            assert line.startswith("oclab ")
        assert re.search(r", \d{4}-\d\d-\d\d$", place["where"])
    assert sum(path.stat().st_size for path in (DOCS / "gallery").iterdir()) < MOST_BYTES
    for path in (DOCS / "gallery").iterdir():
        with Image.open(path) as image:
            assert 600 <= image.width <= TOOL.WIDTH
            corner = image.convert("RGBA").getpixel((0, 0))
        assert corner == (255, 255, 255, 255)  # a page of its own on dark ones


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
